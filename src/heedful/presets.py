"""Named model shapes: `presets.base(vocab_size=37_000)` is the paper's base model.

A preset for `heedful train --preset NAME` is a shape and, for the paper's own models, the training that section 5
gives them. The two small ones suit smaller corpora and machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from heedful.config import ModelConfig
from heedful.errors import ConfigError, nearest


def tiny(vocab_size: int = 2_000) -> ModelConfig:
    """Return a shape for a few thousand pairs, or a minute on a laptop."""
    return ModelConfig(vocab_size=vocab_size, N=2, d_model=128, d_ff=512, h=4, dropout=0.2)


def small(vocab_size: int = 8_000) -> ModelConfig:
    """Return a shape for tens of thousands of pairs, or an hour on a laptop."""
    return ModelConfig(vocab_size=vocab_size, N=3, d_model=256, d_ff=1024, h=4, dropout=0.2)


def base(vocab_size: int = 37_000) -> ModelConfig:
    """Return the paper's base model (Table 3, first row)."""
    return ModelConfig(vocab_size=vocab_size)


def big(vocab_size: int = 37_000) -> ModelConfig:
    """Return the paper's big model (Table 3, last row)."""
    return ModelConfig(vocab_size=vocab_size, d_model=1024, d_ff=4096, h=16, dropout=0.3)


def _varied(changed: Mapping[str, int | float | str], vocab_size: int = 37_000) -> ModelConfig:
    """Return the base model with changes; head widths follow from d_model and h unless given."""
    return replace(base(vocab_size), **{"d_k": 0, "d_v": 0, **changed})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Preset:
    model: Callable[[int], ModelConfig]
    training: Mapping[str, int | float | str]  # [training] keys of this model; empty: chosen for the corpus


# Section 5: 100,000 steps of 0.4 s and 300,000 of 1.0 s, about 25,000 tokens per side; the last 5 or 20 checkpoints,
# ten minutes apart, are averaged.
_BASE_TRAINING: Mapping[str, int | float | str] = MappingProxyType(
    {
        "steps": 100_000,
        "batch_tokens": 25_000,
        "warmup_steps": 4_000,
        "label_smoothing": 0.1,
        "save_every": 1_500,
        "average": 5,
        "patience": 0,
        "optimizer": "adam",
    }
)
_BIG_TRAINING = MappingProxyType({**_BASE_TRAINING, "steps": 300_000, "save_every": 600, "average": 20})
_CHOSEN: Mapping[str, int | float | str] = MappingProxyType({})


def _row(label_smoothing: float = 0.1, **changed: int | float | str) -> Preset:
    """Return a row of Table 3, trained like base but without checkpoint averaging."""
    training = {**_BASE_TRAINING, "label_smoothing": label_smoothing, "average": 1}
    return Preset(partial(_varied, changed), MappingProxyType(training))


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "tiny": Preset(tiny, _CHOSEN),
        "small": Preset(small, _CHOSEN),
        "base": Preset(base, _BASE_TRAINING),
        "big": Preset(big, _BIG_TRAINING),
        "table3-a-h1": _row(h=1, d_k=512, d_v=512),
        "table3-a-h4": _row(h=4, d_k=128, d_v=128),
        "table3-a-h16": _row(h=16, d_k=32, d_v=32),
        "table3-a-h32": _row(h=32, d_k=16, d_v=16),
        "table3-b-dk16": _row(d_k=16),
        "table3-b-dk32": _row(d_k=32),
        "table3-c-n2": _row(N=2),
        "table3-c-n4": _row(N=4),
        "table3-c-n8": _row(N=8),
        "table3-c-d256": _row(d_model=256, d_k=32, d_v=32),
        "table3-c-d1024": _row(d_model=1024, d_k=128, d_v=128),
        "table3-c-ff1024": _row(d_ff=1024),
        "table3-c-ff4096": _row(d_ff=4096),
        "table3-d-dropout0": _row(dropout=0.0),
        "table3-d-dropout2": _row(dropout=0.2),
        "table3-d-smoothing0": _row(label_smoothing=0.0),
        "table3-d-smoothing2": _row(label_smoothing=0.2),
        "table3-e-learned": _row(positions="learned"),
    }
)


def named(name: str) -> Preset:
    try:
        return PRESETS[name]
    except KeyError:
        raise ConfigError(f'Unknown preset "{name}".{nearest(name, PRESETS)}') from None
