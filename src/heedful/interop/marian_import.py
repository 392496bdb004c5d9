"""Importer for Marian directories that heedful exported, or compatible ones.

A compatible model has ReLU, sinusoidal positions, one SentencePiece model with byte fallback for both sides, and
heedful's special tokens. Published Marian models have another activation and two tokenizers; the importer rejects them
and names the difference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.atomic_files import read_at_most
from heedful.config import BOS, EOS, PAD, DecodingConfig, ModelConfig
from heedful.errors import ConfigError, ModelError, as_sentence, cause
from heedful.interop.export_constraints import SUPPRESSED_TOKENS
from heedful.interop.marian_export import (
    BIAS,
    CONFIG,
    EMBEDDING,
    SOURCE,
    TARGET,
    VOCABULARY,
    WEIGHTS,
    marian_component_order,
    marian_name,
    reorder_components,
)
from heedful.model.embeddings import sinusoids
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model, TextFacts, read_tensors, require_size, with_weights
from heedful.text.tokenizer import Tokenizer
from heedful.typed_dataclasses import build_dataclass

_MAX_JSON_BYTES = 50_000_000  # enough for a vocabulary of a million tokens
# Redundant tensors that a file may contain: copies of the tied embedding, and sinusoids.
_TIED_COPIES = ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
_POSITION_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_FLOAT_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
# Key -> required value, and Marian's default if the key is absent.
_REQUIRED: dict[str, tuple[Any, Any]] = {
    "model_type": ("marian", ""),
    "activation_function": ("relu", "gelu"),
    "scale_embedding": (True, False),
    "static_position_embeddings": (True, True),
    "share_encoder_decoder_embeddings": (True, True),
    "normalize_before": (False, False),
    "pad_token_id": (PAD, 58_100),
    "eos_token_id": (EOS, 0),
    "decoder_start_token_id": (BOS, 58_100),
}


def read_marian(directory: Path) -> Model:
    """Return the model in a Marian directory; raise if heedful cannot represent it."""
    if not directory.is_dir():
        raise ModelError(f"Directory {directory} does not exist. Pass one written by save_pretrained.")
    if not (directory / CONFIG).exists():
        raise ModelError(
            f"{directory} is not a MarianMT model: it has no {CONFIG}. Pass the directory written by save_pretrained."
        )
    content = _read_json(directory / CONFIG)
    config = _read_config(content, directory / CONFIG)
    tokenizer = _read_tokenizer(directory, config)
    tensors = _read_weights(directory)
    require_size(config, tensors, directory / WEIGHTS)
    transformer = with_weights(config, _convert_weights(tensors, config, directory / WEIGHTS), directory / WEIGHTS)
    text, decoding = _read_text_and_decoding(content, directory / CONFIG)
    return Model(transformer.eval(), tokenizer, text, decoding, {"imported_from": "marian"})


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_at_most(path, _MAX_JSON_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"Cannot read {path}: {cause(error)}. Export the model again with save_pretrained.") from None
    if not isinstance(content, dict):
        raise ModelError(f"Cannot read {path}: it is not a JSON object. Export the model again with save_pretrained.")
    return content


def _read_config(content: Mapping[str, Any], path: Path) -> ModelConfig:
    for key, (required, default) in _REQUIRED.items():
        if (value := content.get(key, default)) != required:
            raise ModelError(f"{path}: {key} is {value!r}. heedful imports only models with {key} = {required!r}.")
    for name in ("attention_heads", "ffn_dim"):
        sides = [content.get(f"{stack}_{name}") for stack in ("encoder", "decoder")]
        if sides[0] != sides[1]:
            raise ModelError(
                f"{path}: {name} is {sides[0]} in the encoder and {sides[1]} in the decoder. "
                "heedful imports only models in which they are equal."
            )
    theirs = {
        "vocab_size": "vocab_size",
        "N": "encoder_layers",
        "N_decoder": "decoder_layers",
        "d_model": "d_model",
        "d_ff": "encoder_ffn_dim",
        "h": "encoder_attention_heads",
    }
    try:
        sizes = {ours: content[key] for ours, key in theirs.items()}
        rates = {key: float(content.get(key, 0.0)) for key in ("dropout", "attention_dropout")}
        return build_dataclass(ModelConfig, {**sizes, **rates})
    except (KeyError, TypeError, ValueError, OverflowError, ConfigError) as error:
        raise ModelError(f"{path} is not a valid model configuration: {as_sentence(error)}") from None


def _read_tokenizer(directory: Path, config: ModelConfig) -> Tokenizer:
    tokenizer = Tokenizer.read(directory / SOURCE)
    if Tokenizer.read(directory / TARGET).model != tokenizer.model:
        raise ModelError(
            f"{directory}: {SOURCE} and {TARGET} differ. heedful imports only models with a shared tokenizer."
        )
    if tokenizer.vocab_size != config.vocab_size:
        raise ModelError(
            f"{directory}: the tokenizer has {tokenizer.vocab_size} tokens and the model {config.vocab_size}. "
            "heedful imports only models in which the two are equal."
        )
    tokens = tokenizer.tokens(range(tokenizer.vocab_size))
    if _read_json(directory / VOCABULARY) != {token: number for number, token in enumerate(tokens)}:
        raise ModelError(
            f"{directory / VOCABULARY} and {SOURCE} assign different token ids. "
            "heedful imports only models in which they agree."
        )
    return tokenizer


def _read_weights(directory: Path) -> dict[str, Tensor]:
    if not (directory / WEIGHTS).exists() and (directory / "pytorch_model.bin").exists():
        raise ModelError(
            f"{directory} has its weights in a pickle file, which can execute code. heedful reads only {WEIGHTS}. "
            "If you trust the file, load it with transformers and save it with save_pretrained."
        )
    return read_tensors(directory / WEIGHTS, ModelError)


@torch.no_grad()
def _convert_weights(theirs: dict[str, Tensor], config: ModelConfig, path: Path) -> dict[str, Tensor]:
    """Return the weights under heedful's names, in heedful's component order."""
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in Transformer(config).state_dict().items()}
    marian_names = {name: EMBEDDING if name == "embedding.weight_VD" else marian_name(name) for name in shapes}
    for name, tensor in theirs.items():
        if tensor.dtype not in _FLOAT_TYPES:
            raise ModelError(f"{path}: {name} has type {tensor.dtype}. heedful imports only floating-point weights.")
    for ours, name in marian_names.items():
        if name not in theirs or theirs[name].shape != shapes[ours]:
            found = list(theirs[name].shape) if name in theirs else "absent"
            raise ModelError(f"{path}: {name} is {found}. Expected shape: {list(shapes[ours])}.")
    if unknown := sorted(theirs.keys() - set(marian_names.values()) - {BIAS, *_TIED_COPIES, *_POSITION_TABLES}):
        raise ModelError(f"{path} contains the tensor {unknown[0]}, which heedful models do not have.")
    for copy in _TIED_COPIES:
        if copy in theirs and not torch.equal(theirs[copy], theirs[EMBEDDING]):
            raise ModelError(
                f"{path}: {copy} differs from {EMBEDDING}. heedful imports only models with tied embeddings."
            )
    _require_no_bias(theirs, config, path)
    _require_sinusoids(theirs, config, path)
    inverse_order = marian_component_order(config.d_model).argsort()
    converted = {"embedding.weight_VD": theirs[EMBEDDING][:, inverse_order]}
    converted |= {
        ours: reorder_components(ours, theirs[name], inverse_order)
        for ours, name in marian_names.items()
        if name != EMBEDDING
    }
    return {name: tensor.float().contiguous() for name, tensor in converted.items()}


def _require_no_bias(theirs: Mapping[str, Tensor], config: ModelConfig, path: Path) -> None:
    bias = theirs.get(BIAS, torch.zeros(1, config.vocab_size)).flatten().clone()
    if len(bias) != config.vocab_size:
        raise ModelError(f"{path}: {BIAS} has {len(bias)} values. Expected {config.vocab_size}, one per token.")
    bias[list(SUPPRESSED_TOKENS)] = 0
    if bias.any():
        raise ModelError(f"{path}: {BIAS} is not zero, but heedful's output projection has no bias.")


def _require_sinusoids(theirs: Mapping[str, Tensor], config: ModelConfig, path: Path) -> None:
    for name in _POSITION_TABLES:
        if name in theirs:
            table_TD = theirs[name].double()
            rows = table_TD.shape[0] if table_TD.ndim else 1
            expected_TD = sinusoids(rows, config.d_model)[:, marian_component_order(config.d_model)]
            if table_TD.shape != expected_TD.shape or not torch.allclose(table_TD, expected_TD, atol=0.01):
                raise ModelError(
                    f"{path}: {name} is not sinusoidal. "
                    "heedful imports only models with sinusoidal positional encodings."
                )


def _read_text_and_decoding(content: Mapping[str, Any], path: Path) -> tuple[TextFacts, DecodingConfig]:
    """Return the settings that heedful wrote into the config, or the defaults."""
    heedful_section = content.get("heedful", {})
    try:
        return build_dataclass(TextFacts, heedful_section.get("text", {})), build_dataclass(
            DecodingConfig, heedful_section.get("decoding", {})
        )
    except (AttributeError, TypeError, ValueError, OverflowError, ConfigError) as error:
        raise ModelError(f"{path} is not a valid model configuration: {as_sentence(error)}") from None
