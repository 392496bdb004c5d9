"""The Transformer of "Attention Is All You Need", from text files to deployed translator.

translator = heedful.load("runs/demo")
translator.translate("a line of text").text
run = heedful.train("recipe.toml", out="runs/x", overrides={"training.steps": 1000})
model = heedful.Transformer(heedful.presets.base(vocab_size=37000))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from heedful.errors import HeedfulError
from heedful.version import __version__

if TYPE_CHECKING:
    from heedful import presets
    from heedful.config import ModelConfig
    from heedful.decoding.translator import Translation, Translator
    from heedful.engines.load import load
    from heedful.evaluation.comparison import Comparison, compare
    from heedful.model.transformer import Transformer
    from heedful.training.run import Run, train

__all__ = [
    "Comparison",
    "HeedfulError",
    "ModelConfig",
    "Run",
    "Transformer",
    "Translation",
    "Translator",
    "__version__",
    "compare",
    "load",
    "presets",
    "train",
]


# Imported on first use, so that `import heedful` and `heedful --help` start fast and do not load torch.
_HOMES = {
    "Comparison": "heedful.evaluation.comparison",
    "ModelConfig": "heedful.config",
    "Run": "heedful.training.run",
    "Transformer": "heedful.model.transformer",
    "Translation": "heedful.decoding.translator",
    "Translator": "heedful.decoding.translator",
    "compare": "heedful.evaluation.comparison",
    "load": "heedful.engines.load",
    "train": "heedful.training.run",
}


def __getattr__(name: str) -> Any:
    if name == "presets":
        return importlib.import_module("heedful.presets")
    if name not in _HOMES:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
