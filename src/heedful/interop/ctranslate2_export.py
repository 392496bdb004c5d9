"""Exporter for CTranslate2, the engine of LibreTranslate and Argos Translate.

model.bin · config.json · shared_vocabulary.json · sentencepiece.model (the tokenizer, which the caller applies)

A model that was imported from Marian has source.spm and target.spm instead of sentencepiece.model.

docs/how-to/deployment.md lists the differences between its search and heedful's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.atomic_files import new_directory
from heedful.config import BOS, EOS, UNK
from heedful.errors import UsageError
from heedful.interop.export_constraints import (
    SUPPRESSED_TOKENS,
    SUPPRESSION_BIAS,
    position_table_size,
    require_standard_heads,
)
from heedful.model.attention import MultiHeadAttention
from heedful.model.layers import AddAndNorm, DecoderLayer, EncoderLayer
from heedful.storage.file_names import SOURCE_TOKENIZER, TARGET_TOKENIZER
from heedful.storage.model_directory import Model
from heedful.text.marian_tokenizer import MarianTokenizer
from heedful.text.tokenizer import Tokenizer

TOKENIZER = "sentencepiece.model"


def write_ctranslate2(model: Model, directory: Path, quantization: str | None = None) -> None:
    """Write a CTranslate2 model; `quantization` is a CTranslate2 type, None float32."""
    spec = _build_spec(model, quantization)
    with new_directory(directory, needed=4 * model.transformer.parameter_count()) as unfinished:
        spec.save(str(unfinished))
        for name, content in _tokenizer_files(model.tokenizer).items():
            (unfinished / name).write_bytes(content)


def _tokenizer_files(tokenizer: Tokenizer) -> dict[str, bytes]:
    if isinstance(tokenizer, MarianTokenizer):
        return {SOURCE_TOKENIZER: tokenizer.model, TARGET_TOKENIZER: tokenizer.target_model}
    return {TOKENIZER: tokenizer.model}


def is_installed() -> bool:
    """Return whether the package ctranslate2 can be imported."""
    try:
        import ctranslate2  # noqa: F401
    except ImportError:
        return False
    return True


def _build_spec(model: Model, quantization: str | None) -> Any:
    specs = _import_specs()
    transformer = model.transformer
    require_standard_heads(transformer.config, "CTranslate2")
    spec = specs.TransformerSpec.from_config(
        (transformer.config.N, transformer.config.decoder_layers),
        transformer.config.h,
        pre_norm=False,
        activation=specs.common_spec.Activation[transformer.config.activation.upper()],
    )
    _set_embeddings(spec, model)
    for theirs, encoder_layer in zip(spec.encoder.layer, transformer.encoder, strict=True):
        _set_encoder_layer(theirs, encoder_layer)
    for theirs, decoder_layer in zip(spec.decoder.layer, transformer.decoder, strict=True):
        _set_decoder_layer(theirs, decoder_layer)
    tokens = model.tokenizer.tokens(range(model.tokenizer.vocab_size))
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (tokens[token] for token in (UNK, BOS, EOS))
    spec.config.decoder_start_token = tokens[BOS]
    spec.config.add_source_eos = True  # as in training; callers pass tokens without it
    # CTranslate2 ignores this key. Callers pass the two to `translate_batch`.
    spec.config.add_attribute(
        "heedful", {"beam_size": model.decoding.beam, "length_penalty": model.decoding.power_alpha}
    )
    spec.validate()
    spec.optimize(quantization=quantization)
    return spec


def _import_specs() -> Any:
    try:
        from ctranslate2 import specs
    except ImportError:
        raise UsageError(
            "Exporting to CTranslate2 and Argos requires the package ctranslate2. Run: pip install 'heedful[export]'"
        ) from None
    return specs


def _set_embeddings(spec: Any, model: Model) -> None:
    """Set three embedding matrices, positions, and the bias with the suppressed tokens."""
    embedding = model.transformer.embedding
    bias_V = torch.zeros(model.transformer.config.vocab_size) if embedding.bias_V is None else embedding.bias_V.clone()
    bias_V[list(SUPPRESSED_TOKENS)] = SUPPRESSION_BIAS
    positions = _to_numpy(embedding.positions(position_table_size(model)))
    for theirs, side in (
        (spec.encoder.embeddings[0], "source"),
        (spec.decoder.embeddings, "target"),
        (spec.decoder.projection, "projection"),
    ):
        theirs.weight = _to_numpy(embedding.matrix(side))
    for stack in (spec.encoder, spec.decoder):
        stack.scale_embeddings = embedding.scale
    spec.decoder.projection.bias = _to_numpy(bias_V)
    spec.encoder.position_encodings.encodings = spec.decoder.position_encodings.encodings = positions


def _set_encoder_layer(theirs: Any, ours: EncoderLayer) -> None:
    _set_self_attention(theirs.self_attention, ours.self_attention, ours.after_self_attention)
    _set_feed_forward(theirs.ffn, ours)


def _set_decoder_layer(theirs: Any, ours: DecoderLayer) -> None:
    _set_self_attention(theirs.self_attention, ours.self_attention, ours.after_self_attention)
    cross = ours.cross_attention
    _set_linear(theirs.attention.linear[0], cross.query)
    _set_linear(theirs.attention.linear[1], cross.key, cross.value)
    _set_linear(theirs.attention.linear[2], cross.output)
    _set_layer_norm(theirs.attention.layer_norm, ours.after_cross_attention)
    _set_feed_forward(theirs.ffn, ours)


def _set_self_attention(theirs: Any, ours: MultiHeadAttention, after: AddAndNorm) -> None:
    _set_linear(theirs.linear[0], ours.query, ours.key, ours.value)
    _set_linear(theirs.linear[1], ours.output)
    _set_layer_norm(theirs.layer_norm, after)


def _set_feed_forward(theirs: Any, ours: EncoderLayer | DecoderLayer) -> None:
    _set_linear(theirs.linear_0, ours.feed_forward.inner)
    _set_linear(theirs.linear_1, ours.feed_forward.outer)
    _set_layer_norm(theirs.layer_norm, ours.after_feed_forward)


def _set_linear(theirs: Any, *ours: nn.Linear) -> None:
    """Set a linear layer to the concatenation of projections of the same input."""
    theirs.weight = _to_numpy(torch.cat([linear.weight for linear in ours]))
    theirs.bias = _to_numpy(torch.cat([linear.bias for linear in ours]))


def _set_layer_norm(theirs: Any, ours: AddAndNorm) -> None:
    theirs.gamma, theirs.beta = _to_numpy(ours.norm.weight), _to_numpy(ours.norm.bias)


def _to_numpy(tensor: Tensor) -> Any:
    """Return a copy as an array, because quantization works in place."""
    return tensor.detach().float().cpu().contiguous().clone().numpy()
