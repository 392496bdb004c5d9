"""The rule that chooses between heedful's own search and CTranslate2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heedful.errors import UsageError
from heedful.interop.ctranslate2_export import is_installed
from heedful.interop.export_constraints import has_standard_heads
from heedful.model.transformer import Transformer

ENGINES = ("auto", "heedful", "ctranslate2")


class Use(NamedTuple):
    """What an engine is used for."""

    in_batches: bool = False  # whole texts; False: one sentence at a time, or unknown
    needs: str = ""  # the option that only heedful's own search supports, for messages: "--scores"


class Choice(NamedTuple):
    engine: str
    reason: str

    def __str__(self) -> str:
        return f"engine {self.engine}: {self.reason}"


def choose_engine(asked: str, models: Sequence[Transformer], use: Use, precision: str = "fp32") -> Choice:
    """Resolve `auto` to one engine for all models.

    Return any other engine unchanged; raise if it cannot be used.
    """
    if asked not in ENGINES:
        raise UsageError(f'engine must be one of {", ".join(ENGINES)}, not "{asked}".')
    obstacle = next(filter(None, (_obstacle(model, precision) for model in models)), "")
    if asked == "ctranslate2" and obstacle:
        raise UsageError(f"Cannot use `--engine ctranslate2`: {obstacle}. Use `--engine heedful`.")
    if asked != "auto":
        return Choice(asked, "as requested")
    if use.needs:
        return Choice("heedful", f"`{use.needs}` needs heedful's own search")
    if obstacle:
        return Choice("heedful", obstacle)
    # docs/results/performance.md has the measurements behind this rule.
    if use.in_batches:
        return Choice("heedful", "faster in batches")
    if not is_installed():
        return Choice("heedful", "CTranslate2 is not installed")
    return Choice("ctranslate2", "faster for single sentences")


def _obstacle(model: Transformer, precision: str) -> str:
    """Return why CTranslate2 cannot run this model; empty if it can."""
    if precision != "fp32":
        return f"CTranslate2 runs in float32, not {precision}"
    if model.embedding.weight_VD.device.type != "cpu":
        return f"the model is on {model.embedding.weight_VD.device}"
    if not has_standard_heads(model.config):
        return "CTranslate2 supports only heads of width d_model / h"
    return ""
