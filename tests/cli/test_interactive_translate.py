"""`heedful translate` on a terminal: prompt, editing, history, and a clean exit."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PROMPT = b"> "
UP, LEFT = b"\x1b[A", b"\x1b[D"
_DEADLINE = 60.0  # seconds; loading torch on a busy machine takes some


class Terminal:
    """A program on its own pseudo-terminal."""

    def __init__(self, *arguments: str | Path) -> None:
        environment = {**os.environ, "TERM": "xterm", "PYTHONUNBUFFERED": "1", "INPUTRC": os.devnull}
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background shell job ignores it, and so would the program
            os.execve(sys.executable, [sys.executable, "-m", "heedful", *map(str, arguments)], environment)
        self.seen = b""

    def wait_for(self, text: bytes) -> bytes:
        """Return what was written up to and including `text`, since the last call."""
        deadline = time.monotonic() + _DEADLINE
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            assert self._read(), self.seen
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def type(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def end(self, keys: bytes) -> tuple[int, str]:
        """Type keys until the program ends.

        Return the exit code and what was written since the last call.

        Keys are repeated because CPython loses a signal that arrives just before readline waits.
        """
        deadline = time.monotonic() + _DEADLINE
        self.type(keys)
        seen = self.seen
        while self._read():
            assert time.monotonic() < deadline, self.seen
            if seen == self.seen:  # nothing for a second; where something was written, it is ending
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    self.type(keys)
        _, status = os.waitpid(self.process, 0)
        self.process = 0
        return os.waitstatus_to_exitcode(status), self.seen.decode()

    def close(self) -> None:
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.descriptor)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.descriptor], [], [], 1.0)
        if not ready:
            return True
        try:
            content = os.read(self.descriptor, 65_536)
        except OSError:  # Linux: the other end is closed
            return False
        self.seen += content
        return bool(content)


@pytest.fixture
def terminal(model: Path) -> Iterator[Terminal]:
    one = Terminal("translate", model, "--scores")
    yield one
    one.close()


def translation(terminal: Terminal) -> str:
    """The line that follows what was typed, up to the next prompt."""
    return terminal.wait_for(b"\r\n" + PROMPT).decode().split("\r\n")[-2]


def test_lines_are_translated_and_history_works(terminal: Terminal) -> None:
    terminal.wait_for(PROMPT)
    terminal.type(b"a b c\r")
    first = translation(terminal)
    terminal.type(b"d e f g\r")
    second = translation(terminal)
    terminal.type(UP + UP + b"\r")  # history
    assert translation(terminal) == first
    terminal.type(b"a c" + LEFT + b"b " + b"\r")  # editing
    assert translation(terminal) == first
    assert first != second
    float(first.split("\t")[0])  # --scores: the translation, not an echo


def test_ctrl_d_ends_with_0(terminal: Terminal) -> None:
    terminal.wait_for(PROMPT)
    code, rest = terminal.end(b"\x04")
    assert code == 0
    assert "Traceback" not in rest
    assert rest.endswith("\r\n")


def test_ctrl_c_ends_with_130(terminal: Terminal) -> None:
    terminal.wait_for(PROMPT)
    terminal.type(b"half a li")
    terminal.wait_for(b"half a li")
    code, rest = terminal.end(b"\x03")
    assert code == 130
    assert "Traceback" not in rest
    assert "Error" not in rest
    assert rest.endswith("\r\n")


def test_non_ascii_input(model: Path) -> None:
    terminal = Terminal("translate", model, "--format", "jsonl")
    try:
        terminal.wait_for(PROMPT)
        terminal.type("Größe 東京\r".encode())
        assert json.loads(translation(terminal))["source"] == "Größe 東京"
    finally:
        terminal.close()
