"""Model shapes with a name: `presets.base(vocab_size=37_000)` is the paper's.

A preset for `heedful train --preset NAME` is a shape and, for the paper's own models, the training that section 5
gives them. The two small ones are for corpora and machines smaller than the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from heedful.config import ModelConfig
from heedful.errors import ConfigError, nearest


def tiny(vocab_size: int = 2_000) -> ModelConfig:
    """For a few thousand pairs, or a minute on a laptop."""
    return ModelConfig(vocab_size=vocab_size, N=2, d_model=128, d_ff=512, h=4, dropout=0.2)


def small(vocab_size: int = 8_000) -> ModelConfig:
    """For tens of thousands of pairs, or an hour on a laptop."""
    return ModelConfig(vocab_size=vocab_size, N=3, d_model=256, d_ff=1024, h=4, dropout=0.2)


def base(vocab_size: int = 37_000) -> ModelConfig:
    """The paper's base model (Table 3, first row)."""
    return ModelConfig(vocab_size=vocab_size)


def big(vocab_size: int = 37_000) -> ModelConfig:
    """The paper's big model (Table 3, last row)."""
    return ModelConfig(vocab_size=vocab_size, d_model=1024, d_ff=4096, h=16, dropout=0.3)


@dataclass(frozen=True)
class Preset:
    model: Callable[[int], ModelConfig]
    training: Mapping[str, int | float]  # keys of [training] that belong to the model's recipe; empty: chosen


# Section 5: 100,000 and 300,000 steps of about 25,000 tokens a side; the last 5 or 20 checkpoints are averaged.
_BASE_TRAINING = MappingProxyType(
    {"steps": 100_000, "batch_tokens": 25_000, "warmup_steps": 4_000, "label_smoothing": 0.1, "average": 5}
)
_BIG_TRAINING = MappingProxyType({**_BASE_TRAINING, "steps": 300_000, "average": 20})
_CHOSEN: Mapping[str, int | float] = MappingProxyType({})

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "tiny": Preset(tiny, _CHOSEN),
        "small": Preset(small, _CHOSEN),
        "base": Preset(base, _BASE_TRAINING),
        "big": Preset(big, _BIG_TRAINING),
    }
)


def named(name: str) -> Preset:
    try:
        return PRESETS[name]
    except KeyError:
        raise ConfigError(f'There is no preset "{name}".{nearest(name, PRESETS)}') from None
