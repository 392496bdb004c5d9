"""Hugging Face's Marian with the same weights: a second oracle of the whole model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.config import ModelConfig
from heedful.interop import marian_export as ours_to_theirs
from heedful.interop.marian_export import BIAS, EMBEDDING, marian_component_order
from heedful.model.embeddings import sinusoids
from heedful.model.transformer import Transformer

POSITIONS = 128  # Marian's table has an end, ours has none


def twin_marian(marian: Any, ours: Transformer, attention: str = "eager") -> Any:
    """Return a float64 `transformers.MarianMTModel` with the weights and mode of `ours`.

    `marian` is the module `transformers`, whose import takes seconds: only the tests that need it pay for it.
    """
    config = marian.MarianConfig(**marian_config(ours.config), attn_implementation=attention)
    theirs = marian.MarianMTModel(config).double()
    theirs.load_state_dict(marian_weights(ours))  # strict: none of its own random weights is left
    return theirs.train(ours.training)


def marian_config(config: ModelConfig) -> dict[str, Any]:
    return ours_to_theirs.marian_config(config, POSITIONS)


def marian_weights(ours: Transformer, positions: int = POSITIONS) -> dict[str, Tensor]:
    """Return all entries of the twin's state, with the tables and without the search bias."""
    weights = ours_to_theirs.marian_weights(ours)
    weights[BIAS] = torch.zeros_like(weights[BIAS])
    weights["lm_head.weight"] = weights[EMBEDDING]
    # Marian keeps its table in float32; the test of the logits is of everything else, so it gets ours, unrounded.
    table_TD = sinusoids(positions, ours.config.d_model)[:, marian_component_order(ours.config.d_model)]
    for stack in ("encoder", "decoder"):
        weights[f"model.{stack}.embed_tokens.weight"] = weights[EMBEDDING]
        weights[f"model.{stack}.embed_positions.weight"] = table_TD
    return weights
