"""R4: disk full at any write: saved data intact, no leftovers, exit code 4 and a reason."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_injection import count, forked, tap
from tiny_runs import continued, copy_with, end_of, leftovers, sha256

import synthetic_tasks as tasks
from heedful import atomic_files
from heedful.cli.main import main
from heedful.storage.run_directory import RunDirectory
from heedful.training import checkpoints

pytestmark = pytest.mark.faults

FROM = 12  # the checkpoint the runs go on from, four steps and two saves before their end
WRITES = ("open", "write", "write half", "fsync", "mkdir", "rename", "replace", "exchange", "pwrite")
MESSAGE = r"heedful: Cannot write \S+: .* \((?:[\d,]+ bytes needed, )?[\d,]+ bytes free\)"
EVERY = count(4, 1)  # every fourth write, or each


@pytest.fixture
def arguments(settings: dict[str, Any]) -> list[str]:
    return ["train", *tasks.set_options(settings)]


def failing(call: int, number: int) -> Callable[[str, str], None]:
    """From the `call`-th write on the disk is full; removing is always possible."""
    made: list[str] = []

    def hit(what: str, path: str) -> None:
        made.extend([path] * (what in WRITES))
        if what in WRITES and len(made) >= call:
            raise OSError(number, os.strerror(number), path)

    return hit


def command(path: Path, arguments: list[str], call: int, number: int = errno.ENOSPC) -> tuple[int, str]:
    """`heedful train` on a disk that fills up: exit code and what it said."""
    log = path.parent / f"{path.name}-{call}.txt"

    def work() -> int:
        with pytest.MonkeyPatch.context() as patch:
            tap(patch, path, failing(call, number))
            return main([*arguments, "--out", str(path)])

    return forked(work, log), log.read_text()


def digests(run: RunDirectory, step: int) -> dict[str, str]:
    return {path.name: sha256(path) for path in run.checkpoint(step).iterdir()}


def test_full_at_every_write_of_a_continued_run(
    reference: Path, settings: dict[str, Any], arguments: list[str], tmp_path: Path, counted: Callable[[int, str], None]
) -> None:
    before, call, done = digests(RunDirectory(reference), FROM), 1, 0
    while True:
        run = copy_with(reference, tmp_path / "run", FROM)
        code, said = command(run.path, arguments, call)
        if code == 0:
            break
        assert code == 4, f"write {call}: {said}"
        assert re.search(MESSAGE, said.splitlines()[-1]), said
        assert "Traceback" not in said, said
        assert leftovers(run.path) == []
        assert run.valid_steps()
        assert all(run.is_valid(step) for step in run.steps())
        assert digests(run, FROM) == before
        if done % 8 == 0:
            continued(run.path, settings)
            assert end_of(run.path)["train"] == end_of(reference)["train"]
        shutil.rmtree(run.path)
        call, done = call + EVERY, done + 1
    assert done * EVERY > 60
    counted(done, "writes with ENOSPC")


def test_full_while_preparing(
    arguments: list[str], reference: Path, tmp_path: Path, counted: Callable[[int, str], None]
) -> None:
    for call in range(1, 40, EVERY):
        path = tmp_path / f"run-{call}"
        code, said = command(path, arguments, call)
        assert code == 4, f"write {call}: {said}"
        assert re.search(MESSAGE, said.splitlines()[-1]), said
        assert [name for name in leftovers(path) if "unfinished" in name] == []
        assert not (path / "checkpoints").exists() or not list((path / "checkpoints").iterdir())
    counted(len(range(1, 40, EVERY)), "writes of a new run")


@pytest.mark.parametrize("limit", [3_000, 20_000, 60_000])
def test_a_limit_of_the_system_itself(
    reference: Path, arguments: list[str], tmp_path: Path, limit: int, counted: Callable[[int, str], None]
) -> None:
    """EFBIG comes from the kernel, in the middle of whatever is written."""
    run = copy_with(reference, tmp_path / "run", FROM)
    before, log = digests(run, FROM), tmp_path / "log.txt"

    def work() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return main([*arguments, "--out", str(run.path)])

    assert forked(work, log) == 4, log.read_text()
    assert re.search(MESSAGE, log.read_text().splitlines()[-1])
    assert digests(run, FROM) == before
    assert leftovers(run.path) == []
    assert run.valid_steps()[-1] == FROM
    counted(1, "EFBIG")


def test_control_without_cleaning_up(reference: Path, arguments: list[str], tmp_path: Path) -> None:
    """A save that writes in place and does not convert errors."""
    from test_r02_sigkill import in_place

    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "new_directory", in_place)
        for call in (30, 36, 42):
            run = copy_with(reference, tmp_path / f"run-{call}", FROM)
            code, said = command(run.path, arguments, call)
            whole = all(run.is_valid(step) for step in run.steps())
            outcomes.append(code == 4 and whole and bool(re.search(MESSAGE, said)))
    assert not all(outcomes)


def test_control_without_our_errors(reference: Path, arguments: list[str], tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atomic_files, "DISK_ERRORS", set())
        run = copy_with(reference, tmp_path / "run", FROM)
        code, said = command(run.path, arguments, 20)
    assert code != 4 or not re.search(MESSAGE, said), "path, needed and free bytes are not said"
