"""--time: durations, the shape and the steps for a budget, and a run that was planned with one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import heedful
import synthetic_tasks as tasks
from heedful import recipes
from heedful.config import Recipe
from heedful.data.store import Store
from heedful.errors import UsageError
from heedful.training import autoconfig, time_budget
from heedful.training.autoconfig import CorpusSize
from heedful.training.time_budget import Budget, best_shape, parse_duration, plan

SIZE = CorpusSize(30_000, 440_000)


def planned_recipe(size: CorpusSize = SIZE) -> Recipe:
    return recipes.build(autoconfig.apply({}, autoconfig.choose({}, size, gpu=False)))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1_800), ("2h", 7_200), ("1.5h", 5_400), (" 5m ", 300)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "m", "-5m", "0s", "5 minutes", "1h30m", "5d", "nan", "1e3s"])
def test_other_durations_are_an_error_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a duration.*90s, 30m or 2h"):
        parse_duration(text)


def test_the_shape_follows_the_budget() -> None:
    recipe = planned_recipe()
    full = recipe.training.steps * 0.25  # seconds of the plan without a budget, at 0.25 s per step
    shapes = [best_shape(recipe, SIZE, 0.25, full * share) for share in (0.01, 0.1, 0.5, 1.0, 2.9)]
    assert shapes == [(2, 64), (2, 64), None, None, (4, 192)]


def test_an_unusual_shape_is_kept() -> None:
    given = {"model": {"N": 5, "d_model": 96, "h": 4}}
    recipe = recipes.build(autoconfig.apply(given, autoconfig.choose(given, SIZE, gpu=False)))
    assert best_shape(recipe, SIZE, 0.25, 1.0) is None


@pytest.mark.parametrize("seconds", [60.0, 600.0, 3_600.0])
def test_steps_and_validations_fit_into_the_budget(
    seconds: float, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_budget, "step_seconds", lambda *_: 0.25)
    budget = Budget(seconds, torch.device("cpu"), lambda _: None)
    choices = plan({}, SIZE, store, validation_tokens=15_000, budget=budget)
    recipe = recipes.build(autoconfig.apply({}, choices))
    assert len({(choice.section, choice.key) for choice in choices}) == len(choices)
    usual = autoconfig.reference_tokens(SIZE) / recipe.training.batch_tokens
    assert recipe.training.steps * 0.25 <= seconds
    assert recipe.training.steps * 0.25 >= min(0.5 * seconds, 2.9 * usual * 0.25)
    assert recipe.training.validate_every * 8 >= recipe.training.steps


def test_given_steps_and_shape_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_budget, "step_seconds", lambda *_: 0.25)
    given = {"training": {"steps": 77}, "model": {"d_model": 96}}
    printed: list[str] = []
    budget = Budget(60.0, torch.device("cpu"), printed.append)
    recipe = recipes.build(autoconfig.apply(given, plan(given, SIZE, store, 15_000, budget)))
    assert (recipe.training.steps, recipe.model.d_model) == (77, 96)
    assert printed[-1] == "a step takes 0.250 s on this machine: 77 steps take about 0:19, without validations"


def test_a_budget_is_planned_once_and_ignored_on_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time_budget, "_MEASURED_SECONDS", 0.0)
    settings = {**tasks.TINY, **tasks.tiny_corpus(tmp_path / "text"), "training.steps": 4}
    run = heedful.train(out=tmp_path / "run", overrides=settings, time="90s")
    assert "measuring the speed of this machine" in capfd.readouterr().err
    written = (run.path / "config.toml").read_text()
    heedful.train(out=tmp_path / "run", time="2h")
    assert "--time is ignored" in capfd.readouterr().err
    assert (run.path / "config.toml").read_text() == written


def test_measuring_leaves_the_state_of_torch_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_budget, "_MEASURED_SECONDS", 0.0)
    recipe = planned_recipe()
    torch.manual_seed(5)
    expected, threads = torch.get_rng_state(), torch.get_num_threads()
    assert time_budget.step_seconds(recipe, store, torch.device("cpu")) > 0
    assert torch.equal(torch.get_rng_state(), expected)
    assert torch.get_num_threads() == threads
