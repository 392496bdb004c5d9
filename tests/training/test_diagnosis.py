"""The diagnosis of real runs with each problem, and of logs at the limits of its rules."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import synthetic_tasks
from heedful.config import Recipe, TrainingConfig
from heedful.training.diagnosis import diagnose
from heedful.training.run import train
from synthetic_tasks import Pairs

# Seconds each: a small model that learns quickly, validated often on short outputs.
QUICK = {
    **synthetic_tasks.TINY,
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.dropout": 0.0,
    "training.learning_rate": 0.5,
    "training.warmup_steps": 40,
    "training.batch_tokens": 256,
    "training.save_every": 1_000,
    "training.average": 1,
    "decoding.max_extra": 8,
}


def diagnosed(directory: Path, training: Pairs, validation: Pairs, **settings: Any) -> str:
    """Train, and diagnose the run from its log."""
    synthetic_tasks.write(directory, "train", training)
    synthetic_tasks.write(directory, "valid", validation)
    keys = {f"training.{key}": value for key, value in settings.items()}
    run = train(out=directory / "run", overrides={**synthetic_tasks.corpus_in(directory), **QUICK, **keys})
    return diagnose(run.log(), run.recipe, finished=run.progress.step >= run.recipe.training.steps)


def copies(count: int, **lengths: int) -> tuple[Pairs, Pairs]:
    training = synthetic_tasks.pairs(synthetic_tasks.copy, range(count), **lengths)
    return training, synthetic_tasks.held_out(synthetic_tasks.copy, 20, training, **lengths)


def unrelated(pairs: Pairs, seed: int) -> Pairs:
    """Targets that no source explains: what can be learned of them can only be memorised."""
    draw = random.Random(seed)
    return [(source, " ".join(draw.choices(synthetic_tasks.LETTERS, k=6))) for source, _ in pairs]


def constant(pairs: Pairs) -> Pairs:
    return [(source, "a b c d e f") for source, _ in pairs]


def test_a_run_that_memorises(tmp_path: Path) -> None:
    training, validation = copies(30)
    said = diagnosed(tmp_path, unrelated(training, 1), unrelated(validation, 2), steps=250, validate_every=50)
    assert said.startswith("Memorising: since step ")
    assert "more training text or model.dropout above 0 would help, more steps would not." in said


def test_a_run_whose_outputs_are_too_short(tmp_path: Path) -> None:
    """The training targets are only the first halves."""
    training, validation = copies(300, shortest=6, longest=10)
    halves = [(source, " ".join(target.split()[: len(target.split()) // 2])) for source, target in training]
    said = diagnosed(tmp_path, halves, validation, steps=100, validate_every=25)
    assert "Outputs are too short: 0." in said


def test_a_run_that_still_improves(tmp_path: Path) -> None:
    training, validation = copies(400)
    said = diagnosed(tmp_path, training, validation, steps=110, validate_every=10)
    assert said.startswith("Still improving: since step 80 BLEU went from ")
    assert said.endswith("Continue with the same command and `--set training.steps=220`.")


def test_a_run_that_has_converged(tmp_path: Path) -> None:
    training, validation = copies(400)
    said = diagnosed(tmp_path, constant(training), constant(validation), steps=160, validate_every=20)
    assert said.startswith("Converged: over the last 2 validations BLEU (at best 100.00)")
    assert "too short" not in said


def test_a_run_that_learns_nothing(tmp_path: Path) -> None:
    training, validation = copies(100)
    said = diagnosed(tmp_path, training, validation, steps=30, validate_every=5, learning_rate=1e-7)
    assert said.startswith("Learned little: the best BLEU is ")


def log(*figures: tuple[float | None, float], training: float = 1.0, ratio: float = 1.0) -> list[dict[str, Any]]:
    """Return a log with validations of (nll, bleu) every 10 steps.

    The training loss falls to `training` times its value in each.
    """
    entries: list[dict[str, Any]] = []
    for number, (nll, bleu) in enumerate(figures, start=1):
        entries.append({"step": 10 * number, "kind": "train", "nll": 3.0 * training**number})
        entries.append({"step": 10 * number, "kind": "valid", "nll": nll, "bleu": bleu, "length_ratio": ratio})
    return entries


RECIPE = Recipe(training=TrainingConfig(steps=100, validate_every=10))


def test_too_few_validations() -> None:
    assert diagnose([], RECIPE, finished=False) == (
        "Too few validations to judge: 0; at least 3 are needed. Continue the run."
    )
    said = diagnose(log((3.0, 1.0), (2.0, 9.0)), RECIPE, finished=True)
    assert said.startswith("Too few validations to judge: 2")
    assert "Lower training.validate_every from 10" in said


def test_a_loss_that_is_not_finite() -> None:
    said = diagnose(log((3.0, 1.0), (2.0, 9.0), (2.0, 9.0), (None, 0.0)), RECIPE, finished=False)
    assert said.startswith("The validation loss is not finite: training has diverged.")
    # A non-finite loss earlier in the run is not reported.
    assert "not finite" not in diagnose(log((None, 0.0), (2.0, 9.0), (2.0, 9.0), (2.0, 9.0)), RECIPE, finished=False)


def test_a_rising_validation_loss_alone_is_not_memorising() -> None:
    """The training loss must fall: if both rise, the training itself is at fault."""
    rising = [(2.0, 20.0), (2.2, 20.0), (2.4, 20.0), (2.6, 20.0)]
    assert diagnose(log(*rising, training=0.9), RECIPE, finished=True).startswith("Memorising: since step 10")
    assert not diagnose(log(*rising, training=1.1), RECIPE, finished=True).startswith("Memorising")


@pytest.mark.parametrize(("ratio", "short"), [(0.94, True), (0.96, False), (1.3, False), (0.0, True)])
def test_short_is_a_brevity_penalty_below_95_percent(ratio: float, short: bool) -> None:
    """exp(1 − 1 / 0.94) = 0.938, exp(1 − 1 / 0.96) = 0.959."""
    said = diagnose(log(*[(2.0, 20.0)] * 4, ratio=ratio), RECIPE, finished=True)
    assert ("Outputs are too short" in said) is short
    assert said.endswith("`--alpha` above 0.6.") is short


def test_short_outputs_of_a_run_that_still_improves_call_for_more_steps() -> None:
    said = diagnose(log((3.0, 5.0), (2.5, 10.0), (2.0, 15.0), (1.5, 20.0), ratio=0.5), RECIPE, finished=True)
    assert "Outputs are too short: 0.50 words per reference word, a brevity penalty of 0.37." in said
    assert said.endswith("`--set training.steps=200`.")
    assert said.count(". ") == 2  # three sentences


def test_an_unfinished_run_continues_as_it_is() -> None:
    said = diagnose(log((3.0, 5.0), (2.5, 10.0), (2.0, 15.0), (1.5, 20.0)), RECIPE, finished=False)
    assert said == (
        "Still improving: since step 30 BLEU went from 15.00 to 20.00 and the validation loss from 2.00 to 1.50 nats "
        "per token. Continue the run."
    )
    assert diagnose(log(*[(2.0, 20.0)] * 4), RECIPE, finished=False).startswith("Not improving at present")


def test_a_log_without_length_ratios_is_read() -> None:
    entries = [{key: value for key, value in one.items() if key != "length_ratio"} for one in log(*[(2.0, 20.0)] * 4)]
    assert diagnose(entries, RECIPE, finished=True).startswith("Converged")
