"""Constraints that all export formats share."""

from __future__ import annotations

from heedful.config import BOS, PAD, UNK, ModelConfig
from heedful.errors import ModelError
from heedful.storage.model_directory import Model

# heedful's search never generates these tokens. Other tools have no such rule, so the exported projection gets a bias
# that outweighs every logit and is still representable in half precision.
SUPPRESSED_TOKENS = (PAD, UNK, BOS)
SUPPRESSION_BIAS = -10_000.0


def has_standard_heads(config: ModelConfig) -> bool:
    """Return whether d_k = d_v = d_model / h, which Table 3 (B) does not always satisfy."""
    return config.d_k == config.d_v == config.d_model / config.h


def require_standard_heads(config: ModelConfig, tool: str) -> None:
    """Raise if a format cannot express the model's heads."""
    if not has_standard_heads(config):
        raise ModelError(
            f"{tool} does not support this model: d_k = {config.d_k} and d_v = {config.d_v}. It supports only "
            f"d_k = d_v = d_model / h = {config.d_model} / {config.h}. Train a model with those sizes to export it."
        )


def position_table_size(model: Model) -> int:
    """Return the size of the exported position table: a power of two, at least 1,024."""
    if model.transformer.config.positions == "learned":
        return model.transformer.config.max_positions
    longest = model.text.max_length + min(model.decoding.max_extra, model.text.max_length)
    return max(1_024, 1 << (longest - 1).bit_length())
