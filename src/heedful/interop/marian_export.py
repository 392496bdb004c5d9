"""Exporter for Marian models of Hugging Face `transformers`.

config.json · generation_config.json · model.safetensors · source.spm · target.spm · vocab.json · tokenizer_config.json

Marian is the paper's model with post-norm layers, like heedful's. Its positional encodings have all sines before all
cosines; heedful interleaves them. The rest of the model is invariant to a permutation of the d_model components, so the
exporter permutes that axis of every weight: Marian's component j is heedful's component order[j].
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.atomic_files import new_directory
from heedful.config import BOS, EOS, PAD, UNK, ModelConfig
from heedful.errors import ModelError
from heedful.interop.export_constraints import (
    SUPPRESSED_TOKENS,
    SUPPRESSION_BIAS,
    position_table_size,
    require_standard_heads,
)
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model, write_tensors

CONFIG, GENERATION, WEIGHTS, VOCABULARY = "config.json", "generation_config.json", "model.safetensors", "vocab.json"
SOURCE, TARGET, TOKENIZER = "source.spm", "target.spm", "tokenizer_config.json"
EMBEDDING, BIAS, PROJECTION = "model.shared.weight", "final_logits_bias", "lm_head.weight"
SOURCE_EMBEDDING, TARGET_EMBEDDING = (f"model.{stack}.embed_tokens.weight" for stack in ("encoder", "decoder"))


def write_marian(model: Model, directory: Path) -> None:
    """Write a directory for `MarianMTModel` and `MarianTokenizer.from_pretrained`."""
    config = marian_config(model.transformer.config, position_table_size(model))
    vocabulary = model.tokenizer.tokens(range(model.tokenizer.vocab_size))
    json_files = {
        CONFIG: {**config, "heedful": {"text": asdict(model.text), "decoding": asdict(model.decoding)}},
        GENERATION: _generation_config(model, config),
        VOCABULARY: {name: number for number, name in enumerate(vocabulary)},
        TOKENIZER: _tokenizer_config(model, vocabulary, config),
    }
    with new_directory(directory, needed=4 * model.transformer.parameter_count()) as unfinished:
        for name, content in json_files.items():
            (unfinished / name).write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
        for name, tokenizer in ((SOURCE, model.tokenizer), (TARGET, model.tokenizer.target)):
            (unfinished / name).write_bytes(tokenizer.model)
        write_tensors(unfinished / WEIGHTS, marian_weights(model.transformer))


def marian_config(config: ModelConfig, positions: int) -> dict[str, Any]:
    """Return the keys of `MarianConfig` for a model with `positions` positions."""
    require_standard_heads(config, "MarianMT")
    if config.positions != "sinusoidal":
        raise ModelError(
            "MarianMT does not support model.positions = learned. Train with model.positions = sinusoidal to export."
        )
    if config.embedding_scale not in (0.0, 1.0):
        raise ModelError(
            f"MarianMT does not support model.embedding_scale = {config.embedding_scale}. It supports only 0 and 1. "
            "Train with one of these to export."
        )
    sizes = {"attention_heads": config.h, "ffn_dim": config.d_ff}
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "dtype": "float32",
        "encoder_layers": config.N,
        "decoder_layers": config.decoder_layers,
        **{f"{stack}_{name}": size for stack in ("encoder", "decoder") for name, size in sizes.items()},
        "vocab_size": config.vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "activation_function": config.activation,
        "scale_embedding": config.embedding_scale == 0.0,
        "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": config.tied_embeddings == "all",
        "tie_word_embeddings": config.tied_embeddings != "none",
        "max_position_embeddings": positions,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": 0.0,
        "is_encoder_decoder": True,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "forced_eos_token_id": EOS,
        "decoder_start_token_id": BOS,  # published Marian models start with <pad>
    }


def _generation_config(model: Model, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of `generate`, whose length penalty is |Y|^α."""
    tokens = ("pad_token_id", "bos_token_id", "eos_token_id", "forced_eos_token_id", "decoder_start_token_id")
    search = {"num_beams": model.decoding.beam, "length_penalty": model.decoding.power_alpha, "do_sample": False}
    # Other models have a bias that outweighs every logit of these tokens.
    never = {"bad_words_ids": [[token] for token in SUPPRESSED_TOKENS]} if model.transformer.config.output_bias else {}
    limit = {"max_length": config["max_position_embeddings"] // 2}
    return {**{key: config[key] for key in tokens}, **search, **never, **limit}


def _tokenizer_config(model: Model, vocabulary: list[str], config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": model.text.source_language,
        "target_lang": model.text.target_language,
        "unk_token": vocabulary[UNK],
        "bos_token": vocabulary[BOS],
        "eos_token": vocabulary[EOS],
        "pad_token": vocabulary[PAD],
        "separate_vocabs": False,
        "model_max_length": config["max_position_embeddings"] // 2,
    }


def marian_component_order(d_model: int) -> Tensor:
    """Return heedful's components in Marian's order: even (sines), then odd (cosines)."""
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


@torch.no_grad()
def marian_weights(ours: Transformer) -> dict[str, Tensor]:
    """Return the weights under Marian's names, and the bias of the suppressed tokens."""
    order = marian_component_order(ours.config.d_model)
    weights = {
        marian_name(name, ours.config): reorder_components(name, tensor, order)
        for name, tensor in ours.state_dict().items()
    }
    if not ours.config.output_bias:
        weights[BIAS] = suppression_bias(ours.config.vocab_size).to(ours.embedding.weight_VD.dtype)
    return weights


def suppression_bias(vocab_size: int) -> Tensor:
    """Return the bias, 1 × V, of a model without one of its own."""
    bias_1V = torch.zeros(1, vocab_size)
    bias_1V[0, list(SUPPRESSED_TOKENS)] = SUPPRESSION_BIAS
    return bias_1V


_MODULE_NAMES = {
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "after_self_attention.norm": "self_attn_layer_norm",
    "after_cross_attention.norm": "encoder_attn_layer_norm",
    "after_feed_forward.norm": "final_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
}
_EMBEDDING_NAMES = {
    "embedding.source_VD": SOURCE_EMBEDDING,
    "embedding.projection_VD": PROJECTION,
    "embedding.bias_V": BIAS,
}
_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def marian_name(name: str, config: ModelConfig) -> str:
    """Return Marian's name of a weight.

    encoder.0.self_attention.query.weight → model.encoder.layers.0.self_attn.q_proj.weight
    """
    if name == "embedding.weight_VD":
        return EMBEDDING if config.tied_embeddings == "all" else TARGET_EMBEDDING
    if name in _EMBEDDING_NAMES:
        return _EMBEDDING_NAMES[name]
    stack, layer, module, submodule, kind = name.split(".")
    theirs = _MODULE_NAMES.get(f"{module}.{submodule}") or f"{_MODULE_NAMES[module]}.{_PROJECTIONS[submodule]}"
    return f"model.{stack}.layers.{layer}.{theirs}.{kind}"


def reorder_components(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """Return a weight with its d_model axis reordered: columns are inputs, rows outputs."""
    if name == "embedding.bias_V":
        return tensor.reshape(1, -1)
    if name.endswith("_VD"):
        return tensor[:, order]
    if any(f".{reader}." in name for reader in ("query", "key", "value", "inner")):
        return tensor[:, order] if tensor.ndim == 2 else tensor
    return tensor[order]
