"""Ctrl-C at any moment: exit code 130, no traceback and no misleading message."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from heedful.cli import main as cli
from heedful.cli.interrupts import InterruptHandler
from heedful.errors import InputError, Interrupted

# Ctrl-C while `{module}` is imported, by code that discards KeyboardInterrupt as C extensions do.
PROGRAM = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000): pass
            except KeyboardInterrupt:
                pass

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
from heedful.cli.main import main
sys.meta_path.insert(0, Interrupt())
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["argparse", "torch"])
def test_ctrl_c_during_imports(module: str) -> None:
    given = [sys.executable, "-c", PROGRAM.format(module=module), "translate", "/does/not/exist"]
    done = subprocess.run(given, capture_output=True, text=True, timeout=600, input="a\n")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_little_is_imported_before_ctrl_c_is_handled() -> None:
    code = "import sys\nfrom heedful.cli.main import main\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert not {"argparse", "ctypes", "dataclasses", "difflib", "logging", "heedful.config"} & set(done.stdout.split())


@pytest.fixture
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ctrl_c(then: BaseException | None) -> Callable[[object, InterruptHandler], None]:
    def run(_: object, handler: InterruptHandler) -> None:
        handler.start_raising()
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            if then is not None:
                raise then from None

    return run


@pytest.mark.parametrize(
    ("then", "message"),
    [
        (KeyboardInterrupt(), ""),
        (None, ""),  # discarded by a library
        (InputError("Cannot read model.safetensors. Restore it from a backup."), ""),
        (ValueError("an error of a C extension"), ""),
        (Interrupted("Nothing was written.", signal.SIGINT), "heedful: Nothing was written.\n"),
    ],
)
@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_in_a_library(
    then: BaseException | None, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "run", ctrl_c(then))
    assert cli.main(["export"]) == 130
    assert capsys.readouterr() == ("", message)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ignored_ctrl_c_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with InterruptHandler(ends_process=False):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_after_the_command_has_ended() -> None:
    code = (
        "import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from heedful.cli.main import main\ncode = main()\nos.kill(os.getpid(), signal.SIGINT)\nraise SystemExit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_that_cannot_be_written(option: str, unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        given = [sys.executable, "-m", "heedful", option]
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(given, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, timeout=600)
    assert done.returncode == 4
    assert done.stderr.startswith("heedful: Cannot access the output: no space left on device.")
