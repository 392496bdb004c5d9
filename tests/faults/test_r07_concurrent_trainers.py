"""R7: a second trainer is rejected within a second; the lock of a dead one is recovered."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_injection import Phases, count, forked
from tiny_runs import continued, end_of

import synthetic_tasks as tasks
from heedful import locks
from heedful.cli.main import main
from heedful.storage.ownership import marker_bytes

pytestmark = pytest.mark.faults

PLACES = [("begin", 1, 6), ("save", 2, 8), ("step", 5, 2), ("validation", 2, 1), ("prune", 6, 3), ("average", 1, 6)]


class Trainer:
    """A trainer process that pauses at an event."""

    def __init__(self, path: Path, settings: dict[str, Any], place: tuple[str, int, int]) -> None:
        self.log = path.parent / "first.txt"
        ready, there = os.pipe()

        def stand_still() -> None:
            os.write(there, b"x")
            time.sleep(60)

        def work() -> None:
            with pytest.MonkeyPatch.context() as patch:
                Phases(*place, stand_still).watch(patch, path)
                continued(path, settings)

        self.pid = os.fork()
        if self.pid == 0:
            os._exit(forked_inline(work, self.log))
        os.close(there)  # the child has the only one, so that its death ends the read
        with os.fdopen(ready, "rb") as signals:
            assert signals.read(1) == b"x", self.log.read_text()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def forked_inline(work: Callable[[], None], log: Path) -> int:
    """The body of a child that is already there."""
    import sys
    import traceback

    signal.alarm(120)
    sys.stdout = sys.stderr = log.open("a", buffering=1, encoding="utf-8")
    try:
        work()
    except BaseException:
        traceback.print_exc()
        return 99
    return 0


@pytest.mark.parametrize("place", PLACES[: count(3, len(PLACES))], ids=lambda place: place[0])
def test_second_trainer_is_rejected_and_dead_lock_recovered(
    reference: Path,
    settings: dict[str, Any],
    tmp_path: Path,
    place: tuple[str, int, int],
    capsys: pytest.CaptureFixture[str],
    counted: Callable[[int, str], None],
) -> None:
    path = tmp_path / "run"
    first = Trainer(path, settings, place)
    try:
        before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
        began = time.monotonic()
        assert main(["train", *tasks.set_options(settings), "--out", str(path)]) == 3
        assert time.monotonic() - began < 1
        assert f"Another process (PID {first.pid}) is training in {path}" in capsys.readouterr().err
        assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before
    finally:
        first.kill()
    continued(path, settings)
    assert end_of(path) == end_of(reference)
    counted(1, "rejected starts and recoveries")


def test_a_marker_without_a_holder_is_not_a_lock(reference: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    (path / ".heedful").write_bytes(marker_bytes())
    continued(path, settings)
    assert end_of(path) == end_of(reference)


def test_control_without_the_lock(settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks.fcntl, "flock", lambda *_: None)
    path = tmp_path / "run"
    first = Trainer(path, settings, ("save", 2, 8))
    try:
        # The second trainer is let in, and clears away what the first is writing.
        unfinished = list((path / "checkpoints").glob(".unfinished-*"))
        code = forked(lambda: continued(path, settings), tmp_path / "second.txt")
        assert code == 0
        assert unfinished
        assert not unfinished[0].exists()
    finally:
        first.kill()
