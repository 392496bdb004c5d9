"""--time: durations, shape and steps for a budget, and a run that was planned with one."""

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
from heedful.training import autoconfig, run_plan, time_budget
from heedful.training.autoconfig import CorpusSize
from heedful.training.run_plan import Speed, Trial, run_seconds
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


def budget_of(seconds: float, store: Store, printed: list[str] | None = None) -> Budget:
    lines = [] if printed is None else printed
    return Budget(seconds, Trial(store, store, 300, torch.device("cpu")), lines.append)


@pytest.mark.parametrize("seconds", [60.0, 600.0, 3_600.0])
@pytest.mark.parametrize("search", [0.3, 3.0])
def test_steps_and_validations_fit_into_the_budget(
    seconds: float, search: float, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    speed = Speed(step=0.25, losses=0.1, greedy=search / 3, beam=search)
    monkeypatch.setattr(run_plan, "measure", lambda *_: speed)
    choices, found = plan({}, SIZE, budget_of(seconds, store))
    recipe = recipes.build(autoconfig.apply({}, choices))
    assert found == speed
    assert len({(choice.section, choice.key) for choice in choices}) == len(choices)
    usual = autoconfig.reference_tokens(SIZE) / recipe.training.batch_tokens
    assert run_seconds(recipe, speed) <= seconds + 1.0  # one validation more or less at the last step
    assert run_seconds(recipe, speed) >= min(0.9 * seconds, 2.9 * usual * 0.25)
    assert recipe.training.steps % recipe.training.validate_every == 0 or recipe.training.validate_every > 7


def test_a_slow_search_leaves_fewer_validations(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for search in (0.1, 4.0, 100.0):
        monkeypatch.setattr(run_plan, "measure", lambda *_, s=search: Speed(0.05, s, s, s))
        printed: list[str] = []
        choices, _ = plan({}, SIZE, budget_of(120.0, store, printed))
        training = recipes.build(autoconfig.apply({}, choices)).training
        counts.append(-(-training.steps // training.validate_every))
        assert ("warning" in printed[-1]) == (search == 100.0)
    assert counts == [8, 2, 2]
    assert training.steps == 100  # too little time for anything; the plan says how long it takes


def test_given_steps_and_shape_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_plan, "measure", lambda *_: Speed(0.25, 0.1, 0.1, 0.1))
    given = {"training": {"steps": 77}, "model": {"d_model": 96}}
    choices, _ = plan(given, SIZE, budget_of(60.0, store))
    recipe = recipes.build(autoconfig.apply(given, choices))
    assert (recipe.training.steps, recipe.model.d_model) == (77, 96)
    assert not {"steps", "d_model"} & {choice.key for choice in choices}


def test_a_budget_is_planned_once_and_ignored_on_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time_budget, "_MEASURED_SECONDS", 0.0)
    settings = {**tasks.TINY, **tasks.tiny_corpus(tmp_path / "text"), "training.steps": 4}
    run = heedful.train(out=tmp_path / "run", overrides=settings, time="90s")
    assert "measuring the speed of this machine" in capfd.readouterr().err
    written = (run.path / "config.toml").read_text()
    heedful.train(out=tmp_path / "run", time="2h")
    assert "`--time` is ignored" in capfd.readouterr().err
    assert (run.path / "config.toml").read_text() == written
