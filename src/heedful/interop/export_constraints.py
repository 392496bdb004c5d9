"""What the other tools' architectures have in common, and ours can go beyond."""

from __future__ import annotations

from heedful.config import BOS, PAD, UNK, ModelConfig
from heedful.errors import ModelError
from heedful.storage.model_directory import Model

# Tokens that search never says. Other tools know of no such rule, so it goes into the weights: a bias of the projection
# that no logit makes up for, and that half precision can still hold.
SUPPRESSED_TOKENS = (PAD, UNK, BOS)
SUPPRESSION_BIAS = -10_000.0


def require_standard_heads(config: ModelConfig, tool: str) -> None:
    """Table 3 (B) has rows with d_k ≠ d_v."""
    if not config.d_k == config.d_v == config.d_model / config.h:
        raise ModelError(
            f"{tool} cannot express this model: its heads have d_model / h = {config.d_model} / {config.h} for "
            f"queries, keys and values, and here d_k = {config.d_k}, d_v = {config.d_v}."
        )


def position_table_size(model: Model) -> int:
    """How many positions a tool's fixed table gets: ours has no end, theirs must be chosen. Powers of two."""
    if model.transformer.config.positions == "learned":
        return model.transformer.config.max_positions
    longest = model.text.max_length + min(model.decoding.max_extra, model.text.max_length)
    return max(1_024, 1 << (longest - 1).bit_length())
