"""R5: a truncated checkpoint is detected, and the run resumes from the newest valid one."""

from __future__ import annotations

import logging
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_injection import count
from tiny_runs import LAST, continued, copy_with, end_of

from heedful.cli.main import main
from heedful.storage import run_directory
from heedful.storage.run_directory import RunDirectory

pytestmark = pytest.mark.faults

LENGTHS = count(50, 500)
FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST.json")


@pytest.fixture
def run(reference: Path, tmp_path: Path) -> RunDirectory:
    return copy_with(reference, tmp_path / "run", 12, 14, LAST)


def truncations(directory: Path, number: int) -> Iterator[tuple[Path, int]]:
    """Files in turn, each cut to nothing, to all but one byte, and to random lengths."""
    draw = random.Random(5)
    for index in range(number):
        path = directory / FILES[index % len(FILES)]
        size = path.stat().st_size
        cuts = (0, size - 1, size // 2, draw.randrange(size))
        yield path, cuts[min(index // len(FILES), len(cuts) - 1)]


def accepted(run: RunDirectory, number: int) -> int:
    """Return how many truncated checkpoints were accepted."""
    taken = 0
    for path, length in truncations(run.checkpoint(LAST), number):
        whole = path.read_bytes()
        os.truncate(path, length)
        taken += run.valid_steps(1) != [14]
        path.write_bytes(whole)
    assert run.valid_steps(1) == [LAST]
    return taken


def test_every_truncation_is_detected_with_one_warning(
    run: RunDirectory, caplog: pytest.LogCaptureFixture, counted: Callable[[int, str], None]
) -> None:
    with caplog.at_level(logging.WARNING, "heedful"):
        assert accepted(run, LENGTHS) == 0
    assert len(caplog.records) == LENGTHS
    assert all("skipping a damaged checkpoint" in record.getMessage() for record in caplog.records)
    counted(LENGTHS, "lengths")


@pytest.mark.parametrize("name", FILES)
def test_run_resumes_from_the_previous_checkpoint(
    run: RunDirectory, reference: Path, settings: dict[str, Any], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = run.checkpoint(LAST) / name
    os.truncate(path, path.stat().st_size * 2 // 3)
    continued(run.path, settings)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert end_of(run.path) == end_of(reference)


def test_none_valid(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    before = run.steps()
    for step, name in zip(before, FILES, strict=False):
        os.truncate(run.checkpoint(step) / name, 10)
    assert main(["train", "--out", str(run.path)]) == 3
    assert "None of the checkpoints" in capsys.readouterr().err
    assert run.steps() == before


def test_control_without_digests(
    run: RunDirectory, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run_directory, "verify_manifest", lambda *_: {})
    assert accepted(run, 20) == 20
    shutil.rmtree(run.checkpoint(14))
    os.truncate(run.checkpoint(LAST) / "optimizer.safetensors", 1_000)
    assert main(["train", "--out", str(run.path)]) != 0
