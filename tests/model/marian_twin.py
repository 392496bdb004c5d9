"""The same weights in Hugging Face's Marian: a second oracle of the whole model, embeddings and positions included.

Its positions have all sines first and then all cosines (ours alternate). Nothing else in the model knows one component
of d_model from another, so Marian's component j is our component order[j], in every weight that has such an axis.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.config import BOS, EOS, PAD, ModelConfig
from heedful.model.embeddings import sinusoids
from heedful.model.transformer import Transformer

POSITIONS = 128  # Marian's table has an end, ours has none


def twin_marian(marian: Any, ours: Transformer, attention: str = "eager") -> Any:
    """`transformers.MarianMTModel` with the weights of `ours`, in float64 and in the same mode.

    `marian` is the module `transformers`, whose import takes seconds: only the tests that need it pay for it.
    """
    config = marian.MarianConfig(**marian_shape(ours.config), attn_implementation=attention)
    theirs = marian.MarianMTModel(config).double()
    theirs.load_state_dict(marian_weights(ours))  # strict: none of its own random weights is left
    return theirs.train(ours.training)


def marian_shape(config: ModelConfig) -> dict[str, Any]:
    if not config.d_k == config.d_v == config.d_model / config.h or config.positions != "sinusoidal":
        raise ValueError("Marian has heads of d_model / h and sinusoids, nothing else")
    stacks = {f"{stack}_layers": config.N for stack in ("encoder", "decoder")}
    heads = {f"{stack}_attention_heads": config.h for stack in ("encoder", "decoder")}
    widths = {f"{stack}_ffn_dim": config.d_ff for stack in ("encoder", "decoder")}
    special = {"pad_token_id": PAD, "eos_token_id": EOS, "forced_eos_token_id": EOS, "decoder_start_token_id": BOS}
    return {
        **(stacks | heads | widths | special),
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "activation_function": "relu",
        "scale_embedding": True,
        "max_position_embeddings": POSITIONS,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
    }


def sines_then_cosines(d_model: int) -> Tensor:
    """order: our components in Marian's order, the even ones (sines) before the odd ones (cosines)."""
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


@torch.no_grad()
def marian_weights(ours: Transformer) -> dict[str, Tensor]:
    """Every entry of the twin's state, by Marian's names."""
    order = sines_then_cosines(ours.config.d_model)
    shared_VD = ours.embedding.weight_VD[:, order]
    # Marian keeps its table in float32; the test of the logits is of everything else, so it gets ours, unrounded.
    positions_TD = sinusoids(POSITIONS, ours.config.d_model)[:, order]
    weights = {
        "model.shared.weight": shared_VD,
        "lm_head.weight": shared_VD,
        "final_logits_bias": torch.zeros(1, ours.config.vocab_size, dtype=torch.float64),
    }
    for stack in ("encoder", "decoder"):
        weights[f"model.{stack}.embed_tokens.weight"] = shared_VD
        weights[f"model.{stack}.embed_positions.weight"] = positions_TD
    for name, tensor in ours.state_dict().items():
        if name != "embedding.weight_VD":
            weights[_marian_name(name)] = _permuted(name, tensor, order)
    return weights


_NAMES = {
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "after_self_attention.norm": "self_attn_layer_norm",
    "after_cross_attention.norm": "encoder_attn_layer_norm",
    "after_feed_forward.norm": "final_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
}
_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def _marian_name(name: str) -> str:
    """encoder.0.self_attention.query.weight → model.encoder.layers.0.self_attn.q_proj.weight."""
    stack, number, part, own, kind = name.split(".")
    theirs = _NAMES.get(f"{part}.{own}") or f"{_NAMES[part]}.{_PROJECTIONS[own]}"
    return f"model.{stack}.layers.{number}.{theirs}.{kind}"


def _permuted(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """The axis of d_model reordered: what a layer reads is in the columns, what it says is in the rows."""
    if any(f".{reader}." in name for reader in ("query", "key", "value", "inner")):
        return tensor[:, order] if tensor.ndim == 2 else tensor
    return tensor[order]
