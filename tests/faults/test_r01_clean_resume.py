"""R1: a run resumed from any step ends like an uninterrupted one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fault_injection import count, forked
from tiny_runs import SETTINGS, continued, copy_with, end_of, load_without_moments

import synthetic_tasks as tasks
from heedful.storage.run_directory import RunDirectory
from heedful.training import checkpoints
from heedful.training import trainer as trainer_module

pytestmark = pytest.mark.faults

STEPS = 60
EVERY = {
    **SETTINGS,
    "training.steps": STEPS,
    "training.batch_tokens": 40,  # 20 batches an epoch or so
    "training.save_every": 1,
    "training.validate_every": 20,
    "training.keep": STEPS,
    "training.ema_decay": 0.9,
    "training.select_final": True,
}
RESUMED = [step for step in range(1, STEPS + 1) if step % (STEPS // count(6, 60)) == 0]
PARTS = 2


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 steps with a checkpoint at each."""

    def build(directory: Path) -> None:
        continued(directory / "run", {**tasks.tiny_corpus(directory / "text"), **EVERY})

    return tasks.once(tmp_path_factory, "straight", build) / "run"


@pytest.fixture
def every(straight: Path) -> dict[str, Any]:
    return {**tasks.corpus_in(straight.parent / "text"), **EVERY}


def end(path: Path) -> dict[str, Any]:
    """Return the final state without the checkpoint count, which differs after a resume."""
    return {
        key: value
        for key, value in end_of(path, STEPS).items()
        if key not in ("checkpoints", "model/model.safetensors")
    }


def resumed_at(step: int, straight: Path, every: dict[str, Any], tmp_path: Path) -> Path:
    run = copy_with(straight, tmp_path / f"from-{step}", step)
    assert forked(lambda: continued(run.path, every), tmp_path / "log.txt") == 0, (tmp_path / "log.txt").read_text()
    return run.path


def test_the_run_crosses_two_epoch_borders(straight: Path) -> None:
    log = [json.loads(line) for line in RunDirectory(straight).log.read_text().splitlines()]
    assert [entry["epoch"] for entry in log if entry["kind"] == "train"][-1] > 2
    assert RunDirectory(straight).steps() == list(range(1, STEPS + 1))


@pytest.mark.parametrize("part", range(PARTS))
def test_resumed_from_each_step(
    straight: Path, every: dict[str, Any], tmp_path: Path, part: int, counted: Callable[[int, str], None]
) -> None:
    expected = end(straight)
    for step in RESUMED[part::PARTS]:
        assert end(resumed_at(step, straight, every, tmp_path)) == expected, f"resumed from {step}"
    counted(len(RESUMED[part::PARTS]), f"of {STEPS} steps")


@pytest.mark.parametrize("forgotten", ["moments", "dropout", "position"])
def test_control_forgets(
    straight: Path, every: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: str
) -> None:
    load = checkpoints.load
    if forgotten == "moments":
        monkeypatch.setattr(checkpoints, "load_state_tensors", load_without_moments)
    elif forgotten == "dropout":
        monkeypatch.setattr(trainer_module, "seed_dropout", lambda *_: torch.rand(1))
    else:

        def a_batch_ahead(*arguments: Any) -> checkpoints.Progress:
            progress = load(*arguments)
            progress.step += 1
            return progress

        monkeypatch.setattr(checkpoints, "load", a_batch_ahead)
    assert end(resumed_at(40, straight, every, tmp_path)) != end(straight)
