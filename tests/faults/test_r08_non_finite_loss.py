"""R8: a non-finite loss or gradient stops the run before the update, or is skipped."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from fault_injection import count
from tiny_runs import LAST

from heedful.data.batches import Batches
from heedful.data.store import Store
from heedful.errors import NonFiniteError
from heedful.storage.run_directory import RunDirectory
from heedful.training import parallel
from heedful.training import trainer as trainer_module
from heedful.training.checkpoints import read_progress
from heedful.training.progress import StepResult
from heedful.training.run import train
from heedful.training.trainer import Trainer

pytestmark = pytest.mark.faults

VALUES = (math.nan, math.inf, -math.inf)
STEPS = (1, 6, 11) if count(1, 2) == 2 else (6,)


def poison(patch: pytest.MonkeyPatch, step: int, where: str, value: float) -> None:
    """In that update the loss is `value`, or one number of one gradient is."""
    train_step, accumulate, batch_loss = Trainer.train_step, Trainer._accumulate_gradients, parallel.batch_loss
    now = [0]

    def noted(self: Trainer, batches: Any) -> StepResult:
        now[0] = self.progress.step + 1
        return train_step(self, batches)

    def poisoned_loss(*arguments: Any) -> Any:
        sums = batch_loss(*arguments)
        return sums._replace(smoothed=sums.smoothed * value) if now[0] == step else sums

    def poisoned_gradient(self: Trainer, *arguments: Any) -> Any:
        result = accumulate(self, *arguments)
        if now[0] == step:
            gradient = list(self.model.parameters())[2].grad
            assert gradient is not None
            gradient.view(-1)[3] = value
        return result

    patch.setattr(Trainer, "train_step", noted)
    if where == "loss":
        patch.setattr(parallel, "batch_loss", poisoned_loss)
    else:
        patch.setattr(Trainer, "_accumulate_gradients", poisoned_gradient)


def newest_is_finite(run: RunDirectory) -> bool:
    [step] = run.valid_steps(1) or [0]
    files = [run.checkpoint(step) / name for name in ("model.safetensors", "optimizer.safetensors") if step]
    return all(np.isfinite(value).all() for file in files for value in safetensors.numpy.load_file(file).values())


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("where", ["loss", "gradient"])
@pytest.mark.parametrize("value", VALUES, ids=str)
def test_stops_before_the_update(
    settings: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    where: str,
    value: float,
    counted: Callable[[int, str], None],
) -> None:
    poison(monkeypatch, step, where, value)
    with pytest.raises(NonFiniteError, match=f"Step {step}: the {where}") as caught:
        train(out=tmp_path / "run", overrides=settings)
    run = RunDirectory(tmp_path / "run")
    recipe = run.recipe()
    batches = Batches(Store(run.data / "training"), recipe.training.batch_tokens, recipe.training.seed)
    named = re.search(r"update used lines ([\d, ]+)", str(caught.value))
    assert named is not None
    assert [int(line) for line in named.group(1).split(",")] == list(batches[step - 1].lines)[:10]
    assert run.steps()[-1:] == [step - 1 - (step - 1) % 2][: step > 2]
    assert newest_is_finite(run)
    counted(1, "injections")


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_non_finite_update_is_skipped_and_counted(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    poison(monkeypatch, 6, where, math.nan)
    run = train(out=tmp_path / "run", overrides={**settings, "training.non_finite": "skip"})
    assert run.progress.skipped == read_progress(RunDirectory(run.path).checkpoint(LAST)).skipped == 1
    assert newest_is_finite(RunDirectory(run.path))


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_control_without_the_check(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    poison(monkeypatch, 6, where, math.nan)
    monkeypatch.setattr(trainer_module.math, "isfinite", lambda _: True)
    # The model then says nothing that could be decoded; what counts here are the weights.
    monkeypatch.setattr("heedful.training.validation.Validation._translate", lambda self, *_: [""] * len(self.pairs))
    monkeypatch.setattr("heedful.training.run_writer.perplexity", lambda _: 0.0)
    monkeypatch.setattr("heedful.training.validation.perplexity", lambda _: 0.0)
    train(out=tmp_path / "run", overrides=settings)
    assert not newest_is_finite(RunDirectory(tmp_path / "run"))


def test_skipping_is_not_in_the_weights(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights before and after a skipped update are the same."""
    seen: list[list[torch.Tensor]] = []
    poison(monkeypatch, 6, "gradient", math.inf)
    train_step = Trainer.train_step

    def watched(self: Trainer, batches: Any) -> StepResult:
        seen.append([parameter.detach().clone() for parameter in self.model.parameters()])
        return train_step(self, batches)

    monkeypatch.setattr(Trainer, "train_step", watched)
    train(out=tmp_path / "run", overrides={**settings, "training.non_finite": "skip", "training.steps": 8})
    same = [all(map(torch.equal, seen[step], seen[step + 1])) for step in range(7)]
    assert same == [False] * 5 + [True, False]
