"""Choose the settings that were not given, from the size of the corpus and the device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from heedful import presets
from heedful.config import DataConfig
from heedful.formatting import plural
from heedful.recipes import Settings, merged
from heedful.training.precision import automatic_precision

_FINE_TUNING_RATE = 0.1  # peak learning rate of fine-tuning, as a fraction of the one from scratch
_MANY_EPOCHS = 40  # beyond this, a model memorises the text despite dropout


@dataclass(frozen=True)
class CorpusSize:
    """The size of a training corpus."""

    pairs: int
    tokens: int  # target tokens of all pairs, end tokens included


@dataclass(frozen=True)
class Choice:
    """A setting that heedful chose, and the reason."""

    section: str
    key: str
    value: Any
    why: str

    def __str__(self) -> str:
        return f"{self.section}.{self.key} = {self.value} — {self.why}"


def vocabulary(pairs: int) -> Choice:
    """Choose the vocabulary size: about 5,000 for 30,000 pairs, at most 37,000."""
    tokens = 1_000 * (max(pairs, 1) / 1_000) ** 0.45
    size = int(min(37_000, max(500, round(tokens / 100) * 100)))
    return Choice("data", "vocab_size", size, plural(pairs, "pair"))


def choose_precision(given: Settings, device: torch.device) -> list[Choice]:
    """Choose the precision that the device is built for, unless one was given."""
    if "precision" in given.get("training", {}):
        return []
    return [Choice("training", "precision", *automatic_precision(device))]


def choose(given: Settings, size: CorpusSize, gpu: bool) -> list[Choice]:
    """Choose every key that was not given and depends on the text.

    Later choices depend on earlier ones.
    """
    longest = given.get("data", {}).get("max_length", DataConfig().max_length)
    choices = [*_shape(size, gpu, given.get("model", {})), *_batch(size, gpu, longest)]
    settings = merged(_as_settings(choices), given)
    choices += _length(size, settings, gpu)
    settings = merged(_as_settings(choices), given)
    choices += _intervals(settings)
    if has_automatic_schedule(given):
        if is_fine_tuning(given):
            choices += _fine_tuning_schedule(settings)
        else:
            choices += [*_schedule(size, settings), *_selection(given)]
    return [choice for choice in choices if choice.key not in given.get(choice.section, {})]


def has_automatic_schedule(given: Settings) -> bool:
    """Return whether heedful chooses the optimizer and its schedule, which it does together.

    A recipe that sets one of these keys is used unchanged; the others have the paper's values.
    """
    return not {"optimizer", "warmup_steps", "learning_rate", "cooldown_steps"} & set(given.get("training", {}))


def is_fine_tuning(given: Settings) -> bool:
    return bool(given.get("training", {}).get("init"))


def apply(given: Settings, choices: list[Choice]) -> Settings:
    """Return the given settings completed with the choices."""
    return merged(_as_settings(choices), given)


def from_preset(name: str, given: Settings) -> Settings:
    """Return the settings of a preset: its shape and, for the paper's models, its training.

    The paper's warmup and checkpoint interval fit only its own number of steps. With another number they are chosen.
    """
    preset = presets.named(name)
    shape = preset.model(1)
    keys = ["N", "d_model", "d_ff", "h", "dropout", "positions"]
    # Head widths that equal d_model / h follow d_model and h if those are given.
    keys += [key for key in ("d_k", "d_v") if getattr(shape, key) * shape.h != shape.d_model]
    training = dict(preset.training)
    if "steps" in given.get("training", {}):
        for key in ("warmup_steps", "save_every"):
            training.pop(key, None)
    return {"model": {key: getattr(shape, key) for key in keys}, "training": training}


def _as_settings(choices: list[Choice]) -> Settings:
    settings: Settings = {}
    for choice in choices:
        settings.setdefault(choice.section, {})[choice.key] = choice.value
    return settings


def _shape(size: CorpusSize, gpu: bool, given: Mapping[str, Any]) -> list[Choice]:
    """Choose a shape that suits the corpus size and trains within an hour on a CPU.

    Small corpora get small models. Given keys are kept, and the others adapt to them.
    """
    pairs = size.pairs
    if pairs < 12_000:
        N, d_model, h, dropout = 3, 128, 4, 0.3
    elif pairs < 100_000:
        N, d_model, h, dropout = (4, 256, 4, 0.3) if gpu else (4, 128, 4, 0.2)
    else:
        N, d_model, h, dropout = (6, 512, 8, 0.1) if gpu else (4, 192, 4, 0.1)
    h = given.get("h", h)
    d_model = given.get("d_model", _multiple_of(h, d_model))
    if "h" not in given:
        h = next(heads for heads in (h, 4, 2, 1) if d_model % heads == 0)
    shape = {"N": N, "d_model": d_model, "d_ff": 4 * d_model, "h": h}
    why = f"{plural(pairs, 'pair')} on a {'GPU' if gpu else 'CPU'}"
    return [
        *(Choice("model", key, value, why) for key, value in shape.items()),
        Choice("model", "dropout", dropout, f"smaller corpora get more dropout ({plural(pairs, 'pair')})"),
    ]


def _multiple_of(h: int, width: int) -> int:
    """Return the next even multiple of h (sinusoids come in pairs)."""
    step = math.lcm(max(h, 1), 2)
    return -(-width // step) * step


def _batch(size: CorpusSize, gpu: bool, longest: int) -> list[Choice]:
    if size.pairs < 12_000:
        tokens = 1_024
    elif size.pairs < 100_000:
        tokens = 2_048
    else:
        tokens = 25_000 if gpu else 4_096
    if tokens < longest:
        return [Choice("training", "batch_tokens", longest, "the longest sentence must fit")]
    return [Choice("training", "batch_tokens", tokens, "small corpora need many small updates")]


def _length(size: CorpusSize, settings: Settings, gpu: bool) -> list[Choice]:
    """Choose the steps by the size of the corpus, and a warmup of at most a tenth of them.

    A corpus ten times as large gets three times the training, so that on two cores a few thousand pairs take
    minutes and a few hundred thousand an hour (docs/how-to/own-data.md). A GPU gets ten times as much.
    """
    training, fine_tuning = settings["training"], is_fine_tuning(settings)
    tokens = training_tokens(size, fine_tuning) * (10 if gpu and not fine_tuning else 1)
    per_step = training["batch_tokens"] * training.get("accumulate", 1)
    chosen = min(100_000, max(100 if fine_tuning else 1_000, round(tokens / per_step, -2)))
    steps = training.get("steps", int(chosen))
    warmup = max(1, min(4_000, steps // 10))
    return [
        Choice("training", "steps", steps, f"about {steps * per_step / size.tokens:.0f} epochs"),
        Choice("training", "warmup_steps", warmup, "a tenth of the steps, at most the paper's 4,000"),
        _rate(settings["model"]["d_model"], training.get("warmup_steps", warmup), fine_tuning),
    ]


def training_tokens(size: CorpusSize, fine_tuning: bool) -> float:
    """Return the target tokens to train on; fine-tuning takes only a few epochs."""
    if not fine_tuning:
        return reference_tokens(size)
    epochs = 10 if size.pairs < 12_000 else 5 if size.pairs < 100_000 else 3
    return min(reference_tokens(size), float(epochs * size.tokens))


def reference_tokens(size: CorpusSize) -> float:
    """Return the target tokens to train on with two cores, such as 9.2 million for Multi30k."""
    return float(9_200_000 * (size.tokens / 440_000) ** 0.48)


def _rate(d_model: int, warmup_steps: int, fine_tuning: bool) -> Choice:
    """Choose a factor that limits the schedule's peak, (d_model · warmup_steps)^-0.5.

    A short warmup makes the peak too high. The limit trained well at each width (docs/results/experiments.md). That of
    fine-tuning has not been measured.
    """
    highest = 0.0025 * min(1.0, (192 / d_model) ** 0.5) * (_FINE_TUNING_RATE if fine_tuning else 1.0)
    factor = round(min(1.0, highest * (d_model * warmup_steps) ** 0.5), 4 if fine_tuning else 3)
    peak = factor * (d_model * warmup_steps) ** -0.5
    why = f"a peak learning rate of {peak:.5f}, a tenth of that from scratch: larger steps forget more"
    return Choice("training", "learning_rate", factor, why if fine_tuning else f"a peak learning rate of {peak:.4f}")


def _fine_tuning_schedule(settings: Settings) -> list[Choice]:
    """Choose the end of fine-tuning; dropout depends on the corpus size, as from scratch."""
    training = settings["training"]
    choices = [
        Choice("training", "cooldown_steps", training["steps"] // 3, "the learning rate falls to 0 over the last third")
    ]
    if "average" not in training:
        choices.append(Choice("training", "select_final", True, "the weights with the best validation BLEU"))
    return choices


def _schedule(size: CorpusSize, settings: Settings) -> list[Choice]:
    """Choose optimizer, cooldown and regularisation (tested in docs/results/experiments.md)."""
    steps = settings["training"]["steps"]
    choices = [
        Choice("training", "optimizer", "muon", "learns in fewer steps than Adam at these sizes"),
        Choice("training", "cooldown_steps", steps // 3, "the learning rate falls to 0 over the last third"),
    ]
    if size.pairs < 100_000:
        choices.append(
            Choice("training", "dropout_warmup_steps", steps // 4, "dropout delays learning to attend to the source")
        )
    epochs = steps * settings["training"]["batch_tokens"] * settings["training"].get("accumulate", 1) / size.tokens
    if epochs > _MANY_EPOCHS:
        choices += [
            Choice("model", "word_dropout", 0.1, f"in {epochs:.0f} epochs the model would memorise the text"),
            Choice("training", "bidirectional_steps", steps // 3, "both directions teach the same words"),
        ]
    return choices


def _selection(given: Settings) -> list[Choice]:
    """Let the validation text decide the final weights and the length penalty."""
    choices = []
    if "average" not in given.get("training", {}):
        choices.append(Choice("training", "select_final", True, "the weights with the best validation BLEU"))
    if "alpha" not in given.get("decoding", {}):
        choices.append(Choice("decoding", "alpha", 1.4, "with the paper's 0.6, small models translate too short"))
        choices.append(Choice("decoding", "power_alpha", 1.0, "the same for CTranslate2 and Marian"))
        choices.append(Choice("decoding", "select_alpha", True, "tuned on the validation text when training ends"))
    return choices


def _intervals(settings: Settings) -> list[Choice]:
    steps = settings["training"]["steps"]
    every = max(1, -(-steps // 12))
    return [
        Choice("training", "validate_every", every, f"{plural(-(-steps // every), 'time')} per run"),
        Choice("training", "save_every", -(-steps // 25), "the last five, a fifth of the run, are averaged"),
        Choice("training", "patience", 4, "validations without improvement: a third of the run"),
    ]
