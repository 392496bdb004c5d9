"""Import Marian directories of Hugging Face `transformers`, from OPUS-MT or heedful.

The weights are the same numbers in another order: the components of d_model (marian_export.py) and the vocabulary
(marian_vocabulary.py). Activation, tied embeddings, embedding scale and output bias become values of ModelConfig.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.atomic_files import read_at_most
from heedful.config import BOS, EOS, DecodingConfig, ModelConfig
from heedful.errors import ConfigError, ModelError, as_sentence, cause
from heedful.interop.marian_export import (
    BIAS,
    CONFIG,
    EMBEDDING,
    GENERATION,
    PROJECTION,
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    TOKENIZER,
    WEIGHTS,
    marian_component_order,
    marian_name,
    reorder_components,
    suppression_bias,
)
from heedful.interop.marian_vocabulary import Vocabulary, read_vocabulary_in_order
from heedful.model.embeddings import sinusoids
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model, TextFacts, read_tensors, require_size, with_weights
from heedful.text.languages import base, is_known
from heedful.typed_dataclasses import build_dataclass

_MAX_JSON_BYTES = 1_000_000
_PICKLE = "pytorch_model.bin"
_EMBEDDINGS = (SOURCE_EMBEDDING, TARGET_EMBEDDING, PROJECTION)
_POSITION_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_FLOAT_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
# Bias of an added start token: it keeps the token out of every softmax, but is small enough for label smoothing.
_ADDED_START_BIAS = -100.0
# Key -> required value, and Marian's default if the key is absent.
_REQUIRED: dict[str, tuple[Any, Any]] = {
    "model_type": ("marian", ""),
    "static_position_embeddings": (True, True),
    "normalize_before": (False, False),
    "normalize_embedding": (False, False),
    "add_final_layer_norm": (False, False),
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
    _require_supported(content, directory)
    theirs = _read_weights(directory)
    vocabulary = read_vocabulary_in_order(directory, content)
    _require_no_bad_words(content, vocabulary, directory)
    bias_V = _output_bias(theirs, vocabulary, directory / WEIGHTS)
    config = _read_config(content, len(vocabulary.marian_ids), bias_V is not None, directory / CONFIG)
    require_size(config, theirs, directory / WEIGHTS)
    tensors = _convert_weights(theirs, bias_V, config, vocabulary, directory / WEIGHTS)
    transformer = with_weights(config, tensors, directory / WEIGHTS)
    text, decoding = _read_text_and_decoding(content, directory)
    return Model(transformer.eval(), vocabulary.tokenizer, text, decoding, {"imported_from": "marian"})


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_at_most(path, _MAX_JSON_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"Cannot read {path}: {cause(error)}. Export the model again with save_pretrained.") from None
    if not isinstance(content, dict):
        raise ModelError(f"Cannot read {path}: it is not a JSON object. Export the model again with save_pretrained.")
    return content


def _optional_json(path: Path) -> dict[str, Any]:
    return _read_json(path) if path.exists() else {}


def _require_supported(content: Mapping[str, Any], directory: Path) -> None:
    path = directory / CONFIG
    for key, (required, default) in _REQUIRED.items():
        if (value := content.get(key, default)) != required:
            raise ModelError(
                f"{path}: {key} is {json.dumps(value)}. "
                f"heedful imports only models with {key} = {json.dumps(required)}."
            )
    for name in ("attention_heads", "ffn_dim"):
        sides = [content.get(f"{stack}_{name}") for stack in ("encoder", "decoder")]
        if sides[0] != sides[1]:
            raise ModelError(
                f"{path}: {name} is {sides[0]} in the encoder and {sides[1]} in the decoder. "
                "heedful imports only models in which they are equal."
            )
    sizes = content.get("vocab_size"), content.get("decoder_vocab_size") or content.get("vocab_size")
    if sizes[0] != sizes[1] or _optional_json(directory / TOKENIZER).get("separate_vocabs", False):
        raise ModelError(
            f"{path}: the encoder and the decoder have separate vocabularies ({sizes[0]} and {sizes[1]} tokens). "
            "heedful imports only models with one vocabulary for both."
        )


def _require_no_bad_words(content: Mapping[str, Any], vocabulary: Vocabulary, directory: Path) -> None:
    """Raise if the model must not generate a token that heedful could generate."""
    never = [[number] for number in vocabulary.marian_ids[:EOS]]  # padding, unknown and start token
    words = {**content, **_optional_json(directory / GENERATION)}.get("bad_words_ids") or []
    if bad := [word for word in words if word not in never]:
        raise ModelError(
            f"{directory / CONFIG}: bad_words_ids contains {bad[0]}. "
            "heedful imports only models in which it has only special tokens."
        )


def _read_config(content: Mapping[str, Any], vocab_size: int, output_bias: bool, path: Path) -> ModelConfig:
    theirs = {
        "N": "encoder_layers",
        "N_decoder": "decoder_layers",
        "d_model": "d_model",
        "d_ff": "encoder_ffn_dim",
        "h": "encoder_attention_heads",
    }
    activation = content.get("activation_function", "gelu")
    if activation not in _ACTIVATIONS:
        raise ModelError(
            f"{path}: activation_function is {json.dumps(activation)}. heedful supports only {', '.join(_ACTIVATIONS)}."
        )
    shared = "all" if content.get("share_encoder_decoder_embeddings", True) else "target"
    variant = {
        "vocab_size": vocab_size,
        "activation": _ACTIVATIONS[activation],
        "tied_embeddings": shared if content.get("tie_word_embeddings", True) else "none",
        "embedding_scale": 0.0 if content.get("scale_embedding", False) else 1.0,
        "output_bias": output_bias,
    }
    try:
        sizes = {ours: content[key] for ours, key in theirs.items()}
        rates = {key: content.get(key, 0.0) for key in ("dropout", "attention_dropout")}
        return build_dataclass(ModelConfig, {**sizes, **rates, **variant})
    except (KeyError, TypeError, ValueError, OverflowError, ConfigError) as error:
        raise ModelError(f"{path} is not a valid model configuration: {as_sentence(error)}") from None


def _read_weights(directory: Path) -> dict[str, Tensor]:
    if not (directory / WEIGHTS).exists() and (directory / _PICKLE).exists():
        raise ModelError(
            f"{directory} has its weights only in {_PICKLE}, a pickle file, which can execute code. heedful reads only "
            f"{WEIGHTS}. Convert it with transformers, and import it again:\n{conversion_command(directory)}"
        )
    tensors = read_tensors(directory / WEIGHTS, ModelError)
    for name, tensor in tensors.items():
        if tensor.dtype not in _FLOAT_TYPES:
            raise ModelError(
                f"{directory / WEIGHTS}: {name} has type {tensor.dtype}. heedful imports only floating-point weights."
            )
    return {name: tensor.float() for name, tensor in tensors.items()}


def conversion_command(directory: Path) -> str:
    """Return a command that adds model.safetensors to a directory with a pickle file."""
    code = "import sys, transformers as t; t.MarianMTModel.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])"
    return f'python -c "{code}" {shlex.quote(str(directory))}'


def _output_bias(theirs: Mapping[str, Tensor], vocabulary: Vocabulary, path: Path) -> Tensor | None:
    """Return the bias in heedful's order; None if absent or added by heedful's own export."""
    size = len(vocabulary.marian_ids) - vocabulary.start_was_added
    bias_V = theirs.get(BIAS, torch.zeros(1, size)).flatten()
    if len(bias_V) != size:
        raise ModelError(f"{path}: {BIAS} has {len(bias_V)} values. Expected {size}, one per token.")
    bias_V = bias_V[vocabulary.marian_ids]
    if vocabulary.start_was_added:
        bias_V[BOS] = _ADDED_START_BIAS
    is_own = torch.equal(bias_V, suppression_bias(len(bias_V))[0])
    return bias_V if bias_V.any() and not is_own else None


@torch.no_grad()
def _convert_weights(
    theirs: dict[str, Tensor], bias_V: Tensor | None, config: ModelConfig, vocabulary: Vocabulary, path: Path
) -> dict[str, Tensor]:
    """Return the weights under heedful's names, in heedful's order of components and tokens."""
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in Transformer(config).state_dict().items()}
    shapes.pop("embedding.bias_V", None)
    names = {name: marian_name(name, config) for name in shapes}
    theirs = _without_copies(theirs, set(names.values()), path)
    _require_sinusoids(theirs, config, path)
    inverse_order = marian_component_order(config.d_model).argsort()
    converted = {} if bias_V is None else {"embedding.bias_V": bias_V}
    for ours, name in names.items():
        rows = len(vocabulary.marian_ids) - vocabulary.start_was_added
        expected = torch.Size((rows, config.d_model)) if ours.endswith("_VD") else shapes[ours]
        if name not in theirs or theirs[name].shape != expected:
            found = f"has shape {list(theirs[name].shape)}" if name in theirs else "is missing"
            raise ModelError(f"{path}: {name} {found}, expected shape {list(expected)}. Download the model again.")
        tensor = theirs[name][vocabulary.marian_ids] if ours.endswith("_VD") else theirs[name]
        converted[ours] = reorder_components(ours, tensor, inverse_order).contiguous()
    if unknown := sorted(theirs.keys() - {*names.values(), BIAS, *_POSITION_TABLES}):
        raise ModelError(f"{path} contains the tensor {unknown[0]}, which heedful models do not have.")
    return converted


def _without_copies(theirs: dict[str, Tensor], expected: set[str], path: Path) -> dict[str, Tensor]:
    """Return the weights without copies of tied embeddings; raise if a copy differs."""
    kept = dict(theirs)
    if EMBEDDING not in expected and EMBEDDING in kept:  # transformers uses it only where a stack has none of its own
        shared = kept.pop(EMBEDDING)
        kept = {SOURCE_EMBEDDING: shared, TARGET_EMBEDDING: shared, **kept}
    original = EMBEDDING if EMBEDDING in expected else TARGET_EMBEDDING
    for name in _EMBEDDINGS:
        if name in kept and name not in expected:
            copy = kept.pop(name)
            if not torch.equal(copy, kept.setdefault(original, copy)):
                raise ModelError(
                    f"{path}: {name} differs from {original}, but {CONFIG} says that they are tied. "
                    "Download the model again."
                )
    return kept


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


def _read_text_and_decoding(content: Mapping[str, Any], directory: Path) -> tuple[TextFacts, DecodingConfig]:
    """Return the settings that heedful wrote into the config, or what Marian's files say."""
    try:
        section = content["heedful"] if "heedful" in content else _marian_settings(content, directory)
        return build_dataclass(TextFacts, section.get("text", {})), build_dataclass(
            DecodingConfig, section.get("decoding", {})
        )
    except (AttributeError, TypeError, ValueError, OverflowError, ConfigError) as error:
        raise ModelError(f"{directory / CONFIG} is not a valid model configuration: {as_sentence(error)}") from None


def _marian_settings(content: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    tokenizer = _optional_json(directory / TOKENIZER)
    codes = {side: str(tokenizer.get(f"{side}_lang", "")) for side in ("source", "target")}
    given = {**content, **_optional_json(directory / GENERATION)}
    search = {key: value for key, value in given.items() if value is not None}
    power_alpha = float(search.get("length_penalty", 1.0))  # the default of transformers
    return {
        "text": {
            "max_length": content.get("max_position_embeddings", 1024),
            **{f"{side}_language": base(code) for side, code in codes.items() if is_known(code)},
        },
        "decoding": {
            "beam": search.get("num_beams", DecodingConfig.beam),
            "power_alpha": power_alpha,
            # As strong, at usual lengths.
            "alpha": round(power_alpha * DecodingConfig.alpha / DecodingConfig.power_alpha, 3),
        },
    }
