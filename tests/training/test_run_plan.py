"""The plan line, the estimated duration, and the measurements behind it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
import synthetic_tasks as tasks
from heedful import recipes
from heedful.config import Recipe
from heedful.data.store import Store
from heedful.model.transformer import Transformer
from heedful.storage.file_names import TRAINING, VALIDATION
from heedful.storage.run_directory import RunDirectory
from heedful.training import final_model, run_plan
from heedful.training.run_plan import Speed, Trial, measure, measure_short, run_seconds, summary
from heedful.training.trainer import Trainer
from heedful.training.validation import Validation

PLAN = re.compile(r"^plan: 1 layer, d_model 16, ([\d,]+) steps of at most 64 tokens(.*)$", re.MULTILINE)


@pytest.fixture
def trial(tiny_run: Path) -> Trial:
    data = RunDirectory(tiny_run).data
    return Trial(Store(data / TRAINING), Store(data / VALIDATION), 300, torch.device("cpu"))


@pytest.fixture
def recipe(tiny_run: Path) -> Recipe:
    return RunDirectory(tiny_run).recipe()


def with_training(recipe: Recipe, **changed: object) -> Recipe:
    return replace(recipe, training=replace(recipe.training, **changed))  # type: ignore[arg-type]


def test_the_plan_is_one_line_with_the_duration_if_it_is_known(recipe: Recipe) -> None:
    assert summary(recipe) == "plan: 1 layer, d_model 16, 12 steps of at most 64 tokens"
    deep = replace(recipe, model=replace(recipe.model, N=12, N_decoder=2))
    assert summary(deep) == "plan: 12 encoder and 2 decoder layers, d_model 16, 12 steps of at most 64 tokens"
    assert summary(recipe, 840.0) == f"{summary(recipe)}, about 14 minutes on this machine"


def test_the_duration_is_that_of_steps_validations_and_choices(recipe: Recipe) -> None:
    speed = Speed(step=2.0, losses=3.0, greedy=5.0, beam=7.0)
    recipe = with_training(recipe, steps=12, validate_every=5)  # validations at 5, 10 and 12
    assert run_seconds(recipe, speed) == 12 * 2 + 3 * (3 + 5)
    recipe = with_training(recipe, select_final=True)  # last, average and best
    assert run_seconds(recipe, speed) == 12 * 2 + 3 * (3 + 5) + 3 * 5
    recipe = replace(recipe, decoding=replace(recipe.decoding, select_alpha=True))
    assert run_seconds(recipe, speed) == 12 * 2 + 3 * (3 + 5) + 3 * 5 + 8 * 7
    recipe = with_training(recipe, ema_decay=0.9)
    assert run_seconds(recipe, speed) == 12 * 2 + 3 * (3 + 5) + 4 * 5 + 8 * 7


def test_validations_and_choices_happen_as_often_as_the_estimate_says(tmp_path: Path) -> None:
    """The oracle is a run: its log, and the searches of its end."""
    settings = {**tasks.TINY, **tasks.tiny_corpus(tmp_path / "text"), "training.steps": 13}
    settings |= {"training.select_final": True, "training.ema_decay": 0.9, "decoding.select_alpha": True}
    beams: list[int] = []

    def recorded(self: Validation, model: Transformer, beam: int, *given: Any) -> float:
        beams.append(beam)
        return bleu(self, model, beam, *given)

    bleu = Validation.bleu
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Validation, "bleu", recorded)
        run = heedful.train(out=tmp_path / "run", overrides=settings)
    greedy, beam = final_model.searches(run.recipe)
    assert greedy - 1 <= beams.count(1) <= greedy  # the best checkpoint may be the last
    assert abs(beams.count(4) - beam) <= 2
    validations = [entry for entry in run.log() if entry["kind"] == "valid"]
    assert run_seconds(run.recipe, Speed(0.0, 1.0, 0.0, 0.0)) == len(validations)


def test_only_a_run_of_some_length_is_measured(recipe: Recipe, trial: Trial) -> None:
    assert measure_short(recipe, trial) is None
    assert measure_short(with_training(recipe, steps=200), trial) is not None


def test_measuring_takes_a_small_share_of_the_steps(
    recipe: Recipe, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []
    train_step = Trainer.train_step
    monkeypatch.setattr(Trainer, "train_step", lambda *given: (numbers.append(1), train_step(*given))[1])
    measure_short(with_training(recipe, steps=500), trial)
    assert len(numbers) <= 3 + 500 // 50


def test_several_processes_share_the_batches_of_a_step(
    recipe: Recipe, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    train_step = Trainer.train_step
    monkeypatch.setattr(
        Trainer, "train_step", lambda self, given: (counts.append(len(b := list(given))), train_step(self, b))[1]
    )
    measure(with_training(recipe, accumulate=6), replace(trial, processes=2), 0.0)
    assert counts == [1, 1, 1, 3]


def test_a_search_translates_to_the_length_of_the_source(
    recipe: Recipe, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untrained model may end at once or never; either would falsify the measurement."""
    lengths: list[tuple[int, int]] = []
    search = run_plan.beam_search

    def recorded(ready: object, sources: list[list[int]], *given: int, **keys: int) -> object:
        found = search(ready, sources, *given, **keys)  # type: ignore[arg-type]
        lengths.extend((len(source), len(best[0].ids)) for source, best in zip(sources, found, strict=True))
        return found

    monkeypatch.setattr(run_plan, "beam_search", recorded)
    recipe = replace(recipe, decoding=replace(recipe.decoding, select_alpha=True))
    assert measure(recipe, trial, 0.0).beam > 0
    assert len(lengths) == 2 * len(trial.valid)
    assert all(source == translation for source, translation in lengths)


def test_measuring_leaves_the_state_of_torch_alone(recipe: Recipe, trial: Trial) -> None:
    torch.manual_seed(5)
    expected, threads = torch.get_rng_state(), torch.get_num_threads()
    assert measure(recipe, trial, 0.0).step > 0
    assert torch.equal(torch.get_rng_state(), expected)
    assert torch.get_num_threads() == threads


def test_the_plan_depends_on_the_text_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two machines of very different speed get the same settings, and each its own duration."""
    shape = {key: value for key, value in tasks.TINY.items() if key.startswith(("data", "model"))}
    settings = {**shape, **tasks.tiny_corpus(tmp_path / "text"), "training.threads": 1, "training.batch_tokens": 64}
    written, durations = [], []
    for name, step in (("fast", 1e-6), ("slow", 1e6)):
        monkeypatch.setattr(run_plan, "measure", lambda *_, s=step: Speed(s, 0.0, 0.0, 0.0))
        monkeypatch.setattr(Trainer, "train", lambda *_: None)
        run = heedful.train(out=tmp_path / name, overrides=settings)
        written.append(recipes.to_toml(run.recipe))
        durations.append(PLAN.findall(capfd.readouterr().err)[0][1])
    assert written[0] == written[1]
    assert durations[0] == ", about 0 seconds on this machine"
    assert durations[1].endswith("years on this machine")
