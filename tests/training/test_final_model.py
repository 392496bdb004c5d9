"""The end of a run: the weights and length penalty with the highest BLEU are taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heedful.config import Recipe
from heedful.decoding.search import Penalty, length_penalty, power_penalty
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import read_model, write_model
from heedful.storage.run_directory import RunDirectory
from heedful.training.averaging import averaged_model
from heedful.training.final_model import climb, has_final_model, select_final_model, write_final_model
from heedful.training.validation import MOST_DECODED


class FavouriteWeights:
    """A validation that scores one set of weights highest, and one alpha."""

    def __init__(self, weights: Transformer | None = None, alpha: float = 1.4, power_alpha: float = 0.45) -> None:
        self.weights = weights
        self.power_alpha = power_alpha
        self.alpha = alpha
        self.beams: list[int] = []

    def bleu(
        self,
        model: Transformer,
        beam: int,
        alpha: float | None = None,
        lines: int = MOST_DECODED,
        penalty: Penalty = length_penalty,
    ) -> float:
        self.beams.append(beam)
        found = self.weights is None or same(model, self.weights)
        favourite = self.power_alpha if penalty is power_penalty else self.alpha
        return 10.0 * found - abs((alpha or favourite) - favourite)


def same(one: Transformer, other: Transformer) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def recipe_with(run: RunDirectory, select_final: bool, select_alpha: bool, alpha: float = 1.4) -> Recipe:
    recipe = run.recipe()
    return replace(
        recipe,
        training=replace(recipe.training, select_final=select_final),
        decoding=replace(recipe.decoding, select_alpha=select_alpha, alpha=alpha),
    )


@pytest.mark.parametrize("steps", [[12], [12, 8, 4]], ids=["last", "average"])
def test_the_weights_with_the_highest_bleu_are_written(own_run: Path, steps: list[int]) -> None:
    run = RunDirectory(own_run)
    favourite = averaged_model(run, steps).transformer
    recipe = recipe_with(run, select_final=True, select_alpha=False)
    printed: list[str] = []
    select_final_model(run, recipe, 12, FavouriteWeights(favourite), printed.append)  # type: ignore[arg-type]
    model = read_model(run.model)
    assert same(model.transformer, favourite)
    assert model.history["averaged_steps"] == sorted(steps)
    assert "final model: " in printed[0]
    assert has_final_model(run, recipe, 12)


def test_an_earlier_checkpoint_may_be_the_best(own_run: Path) -> None:
    run = RunDirectory(own_run)
    best = read_model(run.best)
    changed = {name: tensor + 1.0 for name, tensor in best.transformer.state_dict().items()}
    best.transformer.load_state_dict(changed)
    write_model(run.best, replace(best, history={**best.history, "steps": 8}))
    recipe = recipe_with(run, select_final=True, select_alpha=False)
    select_final_model(run, recipe, 12, FavouriteWeights(best.transformer), print)  # type: ignore[arg-type]
    model = read_model(run.model)
    assert same(model.transformer, best.transformer)
    assert (model.history["steps"], model.history["averaged_steps"]) == (12, [8])


def test_alpha_is_tuned_with_the_beam_and_stored_in_the_model(own_run: Path) -> None:
    run = RunDirectory(own_run)
    recipe = recipe_with(run, select_final=False, select_alpha=True)
    planned = run.recipe().decoding
    validation = FavouriteWeights(alpha=planned.alpha + 0.8, power_alpha=planned.power_alpha - 0.4)
    select_final_model(run, recipe, 12, validation, print)  # type: ignore[arg-type]
    for directory in (run.model, run.best):
        decoding = read_model(directory).decoding
        assert decoding.alpha == pytest.approx(planned.alpha + 0.8)
        assert decoding.power_alpha == pytest.approx(planned.power_alpha - 0.4)
    assert set(read_model(run.model).history["power_alpha_scores"]) == {"0.05", "0.45", "0.85"}
    assert set(validation.beams) == {recipe.decoding.beam}


def test_an_interrupted_run_chooses_nothing_and_is_not_final(own_run: Path) -> None:
    run = RunDirectory(own_run)
    recipe = recipe_with(run, select_final=True, select_alpha=True)
    write_final_model(run, recipe, 12)
    assert not has_final_model(run, recipe, 12)
    assert has_final_model(run, run.recipe(), 12)


def test_alphas_selected_twice_are_the_same(own_run: Path) -> None:
    """A run killed between the two models selects again, though best/ has the values."""
    run = RunDirectory(own_run)
    recipe = recipe_with(run, select_final=True, select_alpha=True)
    found = []
    for _ in range(2):
        select_final_model(run, recipe, 12, FavouriteWeights(alpha=2.2), print)  # type: ignore[arg-type]
        found.append(read_model(run.model))
    assert found[0].decoding == found[1].decoding
    assert found[0].history == found[1].history


@pytest.mark.parametrize(
    ("peak", "found"),
    [(0.6, 0.6), (1.0, 1.0), (1.4, 1.4), (1.8, 1.8), (2.6, 2.6), (0.2, 0.2), (9.0, 3.0), (-9.0, 0.2)],
)
def test_climbing_finds_the_peak(peak: float, found: float) -> None:
    scores = climb(1.4, lambda alpha: -abs(alpha - peak))
    assert max(scores, key=lambda alpha: scores[alpha]) == pytest.approx(found)


def test_climbing_a_plateau_stays_at_the_start() -> None:
    assert climb(1.4, lambda _: 5.0) == {1.4: 5.0, 1.8: 5.0, 1.0: 5.0}
