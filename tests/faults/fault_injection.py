"""Fault injection by event: every disk change, every phase of a run, and process death.

Children are forks with everything imported, so that hundreds of crashes take seconds.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful import atomic_files
from heedful.training import checkpoints, final_model, run_setup
from heedful.training.run_writer import RunWriter
from heedful.training.trainer import Trainer
from heedful.training.validation import Validation

Hit = Callable[[str, str], None]  # what is about to happen, and to which path

NIGHT = os.environ.get("HEEDFUL_FAULTS") == "night"
_LONGEST_CHILD = 300  # seconds; a child that hangs is killed, and the test sees it


def count(every_change: int, night: int) -> int:
    return night if NIGHT else every_change


def forked(work: Callable[[], int | None], log: Path) -> int:
    """Run `work` in a forked process; return its exit code, or the negative signal number."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            signal.alarm(_LONGEST_CHILD)
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell job ignores it
            sys.stdout = sys.stderr = log.open("a", buffering=1, encoding="utf-8")
            code = work() or 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class _Tapped:
    """A file that reports each write before, halfway through and after it."""

    def __init__(self, file: Any, path: str, hit: Hit) -> None:
        self._file, self._path, self._hit = file, path, hit

    def write(self, data: Any) -> int:
        half = len(data) // 2
        self._hit("write", self._path)
        self._file.write(data[:half])
        self._file.flush()
        self._hit("write half", self._path)
        self._file.write(data[half:])
        self._file.flush()
        return len(data)

    def __enter__(self) -> _Tapped:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _opens_for_writing(arguments: tuple[Any, ...]) -> bool:
    mode = arguments[1] if len(arguments) > 1 else "r"
    return bool(mode & (os.O_WRONLY | os.O_RDWR)) if isinstance(mode, int) else bool(set(mode) & set("wax+"))


def tap(patch: pytest.MonkeyPatch, root: Path, hit: Hit) -> None:
    """Call `hit` before every call that changes something below `root`."""
    hit = _below(root, hit)
    for name in ("fsync", "rename", "replace", "mkdir", "unlink", "rmdir", "ftruncate", "pwrite"):
        patch.setattr(os, name, _reported(getattr(os, name), name, hit))
    patch.setattr(atomic_files, "_exchange", _reported(atomic_files._exchange, "exchange", hit))
    os_open, io_open = os.open, io.open

    def tapped_os_open(*arguments: Any, **named: Any) -> int:
        if _opens_for_writing(arguments):
            hit("open", str(arguments[0]))
        return os_open(*arguments, **named)

    def tapped_io_open(*arguments: Any, **named: Any) -> Any:
        if not _opens_for_writing(arguments) or "tfevents" in str(arguments[0]):
            return io_open(*arguments, **named)
        hit("open", str(arguments[0]))
        return _Tapped(io_open(*arguments, **named), str(arguments[0]), hit)

    patch.setattr(os, "open", tapped_os_open)
    patch.setattr(io, "open", tapped_io_open)


def _reported(function: Callable[..., Any], name: str, hit: Hit) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        hit(name, str(arguments[0]))
        return function(*arguments, **named)

    return wrapped


def _below(root: Path, hit: Hit) -> Hit:
    """Call `hit` only for paths below `root`, or descriptors: libraries write elsewhere."""

    def only(what: str, path: str) -> None:
        if not path.startswith("/") or path.startswith(str(root)):
            hit(what, path)

    return only


class Phases:
    """Tracks the phase of a run and calls `act` at one event of one phase."""

    # Where a run can be, and the calls inside that count as events besides those of the disk.
    PLACES: tuple[tuple[str, Any, str], ...] = (
        ("begin", run_setup, "begin"),
        ("step", Trainer, "train_step"),
        ("validation", Validation, "run"),
        ("best", RunWriter, "save_best"),
        ("save", checkpoints, "write"),
        ("prune", checkpoints, "prune"),
        ("average", final_model, "select_final_model"),
    )
    INSIDE: tuple[tuple[Any, str], ...] = (
        (Trainer, "_accumulate_gradients"),
        (Trainer, "_clip_gradients"),
        (Validation, "_losses"),
        (Validation, "_translate"),
    )

    def __init__(self, phase: str, visit: int, event: int, act: Callable[[], None]) -> None:
        """Call `act` once, at an event of the `visit`-th time that `phase` is entered.

        The event is the `event`-th, or the last.
        """
        self.phase, self.visit, self.event, self.act = phase, visit, event, act
        self.now: list[str] = []
        self.visits: Counter[str] = Counter()
        self.seen: Counter[tuple[str, int]] = Counter()

    def watch(self, patch: pytest.MonkeyPatch, root: Path) -> None:
        tap(patch, root, lambda *_: self._hit())
        for phase, owner, name in self.PLACES:
            patch.setattr(owner, name, self._entering(phase, getattr(owner, name)))
        for owner, name in self.INSIDE:
            patch.setattr(owner, name, _reported(getattr(owner, name), name, lambda *_: self._hit()))

    def _entering(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            self.now.append(phase)
            self.visits[phase] += 1
            try:
                result = function(*arguments, **named)
                self._hit(last=True)
                return result
            finally:
                self.now.pop()

        return wrapped

    def _hit(self, last: bool = False) -> None:
        """A phase within a phase (a best model while validating) counts as the inner one."""
        phase = self.now[-1] if self.now else ""
        visit = self.visits[phase]
        self.seen[phase, visit] += 1
        reached = self.seen[phase, visit] == self.event or (last and self.seen[phase, visit] < self.event)
        if (phase, visit) == (self.phase, self.visit) and reached:
            self.act()


def die() -> None:
    """Die as from `kill -9`, without cleanup."""
    os.kill(os.getpid(), signal.SIGKILL)
