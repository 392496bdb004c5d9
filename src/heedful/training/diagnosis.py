"""Diagnose a run from its log: what is wrong, if anything, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from heedful.config import Recipe
from heedful.formatting import plural

Entry = dict[str, Any]

FEWEST_VALIDATIONS = 3  # fewer show no trend
_RECENT = 4  # the last quarter of the validations is compared with those before
_BLEU_GAIN = 0.5  # points; smaller changes on a validation set are noise
_NLL_GAIN = 0.03  # nats per token: 3% of the perplexity
_NLL_RISE = 0.1  # nats per token; BLEU often still rises while the loss rises by less
_LITTLE_BLEU = 5.0
_BREVITY_PENALTY = 0.95  # below it, short outputs cost more than 5% of BLEU


def diagnose(entries: Sequence[Entry], recipe: Recipe, finished: bool) -> str:
    """Return the diagnosis of a run from the entries of its log.jsonl."""
    validations = [entry for entry in entries if entry["kind"] == "valid"]
    if validations and validations[-1].get("nll") is None:
        rate = recipe.training.learning_rate
        return (
            "The validation loss is not finite: training has diverged. Train again with "
            f"training.learning_rate below {rate:g}."
        )
    finite = [entry for entry in validations if entry.get("nll") is not None]
    if len(finite) < FEWEST_VALIDATIONS:
        return _too_few(len(finite), recipe, finished)
    memorizing, improving = _memorizing(entries, finite, recipe), _improving(finite, recipe, finished)
    trend, advice = memorizing or improving or _flat(finite, finished)
    if short := _too_short(finite[-1], recipe):
        # While the model still improves, longer training is the first remedy.
        return f"{trend} {short[0]} {advice if improving and not memorizing else short[1]}"
    return f"{trend} {advice}"


def _too_few(count: int, recipe: Recipe, finished: bool) -> str:
    found = f"Too few validations to judge: {count}; at least {FEWEST_VALIDATIONS} are needed."
    if not finished:
        return f"{found} Continue the run."
    return f"{found} Lower training.validate_every from {recipe.training.validate_every:,}, or train for more steps."


def _memorizing(entries: Sequence[Entry], validations: Sequence[Entry], recipe: Recipe) -> tuple[str, str] | None:
    """The validation loss rises while the training loss falls."""
    lowest, last = min(validations, key=lambda entry: entry["nll"]), validations[-1]
    before, after = (_training_nll(entries, entry["step"], recipe.training.validate_every) for entry in (lowest, last))
    if last["nll"] - lowest["nll"] < _NLL_RISE or before is None or after is None or after >= before:
        return None
    best = max(validations, key=lambda entry: entry["bleu"])
    return (
        f"Memorising: since step {lowest['step']:,} the validation loss rose from {lowest['nll']:.2f} to "
        f"{last['nll']:.2f} nats per token while the training loss fell from {before:.2f} to {after:.2f}.",
        f"Use best/, the model of step {best['step']:,}; more training text or model.dropout above "
        f"{recipe.model.dropout:g} would help, more steps would not.",
    )


def _training_nll(entries: Sequence[Entry], step: int, interval: int) -> float | None:
    """Return the mean training loss of the interval that ends at a validation."""
    logged = [
        entry["nll"]
        for entry in entries
        if entry["kind"] == "train" and step - interval < entry["step"] <= step and entry.get("nll") is not None
    ]
    return sum(logged) / len(logged) if logged else None


def _improving(validations: Sequence[Entry], recipe: Recipe, finished: bool) -> tuple[str, str] | None:
    """BLEU or loss of the last validations is clearly better than all before."""
    recent = math.ceil(len(validations) / _RECENT)
    bleu = [max(entry["bleu"] for entry in part) for part in (validations[:-recent], validations)]
    nll = [min(entry["nll"] for entry in part) for part in (validations[:-recent], validations)]
    if bleu[1] - bleu[0] < _BLEU_GAIN and nll[0] - nll[1] < _NLL_GAIN:
        return None
    more = f"Continue with the same command and `--set training.steps={2 * recipe.training.steps}`."
    return (
        f"Still improving: since step {validations[-recent - 1]['step']:,} BLEU went from {bleu[0]:.2f} to "
        f"{bleu[1]:.2f} and the validation loss from {nll[0]:.2f} to {nll[1]:.2f} nats per token.",
        more if finished else "Continue the run.",
    )


def _flat(validations: Sequence[Entry], finished: bool) -> tuple[str, str]:
    recent = math.ceil(len(validations) / _RECENT)
    bleu = max(entry["bleu"] for entry in validations)
    if bleu < _LITTLE_BLEU:
        return (
            f"Learned little: the best BLEU is {bleu:.2f}, and neither BLEU nor the validation loss improves.",
            "Check that line n of one file is the translation of line n of the other, or train on more text.",
        )
    state = "Converged" if finished else "Not improving at present"
    return (
        f"{state}: over the last {plural(recent, 'validation')} BLEU (at best {bleu:.2f}) and validation loss have "
        "hardly changed.",
        "More steps would gain little; more training text or a larger model could gain more.",
    )


def _too_short(last: Entry, recipe: Recipe) -> tuple[str, str] | None:
    """The brevity penalty of BLEU, exp(1 − 1 / ratio), of the last validation."""
    ratio = last.get("length_ratio")
    if ratio is None or ratio >= 1:  # None: not logged, or not finite
        return None
    penalty = math.exp(1 - 1 / ratio) if ratio else 0.0
    if penalty >= _BREVITY_PENALTY:
        return None
    return (
        f"Outputs are too short: {ratio:.2f} words per reference word, a brevity penalty of {penalty:.2f}.",
        f"Check that the training targets are complete, and translate with `--alpha` above {recipe.decoding.alpha:g}.",
    )
