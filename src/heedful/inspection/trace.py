"""The forward pass step by step, with every intermediate result (sections 3.1 to 3.5).

It computes what `Transformer.forward` computes, in evaluation mode. Legend of shapes as in model/; leading batch
dimensions are allowed and written "…".
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from heedful.model.attention import MultiHeadAttention, causal_mask
from heedful.model.layers import ACTIVATIONS, DecoderLayer, EncoderLayer, FeedForward
from heedful.model.transformer import Transformer


class Embedded(NamedTuple):
    """Token embeddings on their way to the first layer (sections 3.4 and 3.5)."""

    embedding_TD: Tensor
    scaled_TD: Tensor  # · √d_model
    position_TD: Tensor
    input_TD: Tensor  # scaled + position


class AttentionSteps(NamedTuple):
    """Multi-head attention (section 3.2)."""

    q_HTK: Tensor
    k_HSK: Tensor
    v_HSK: Tensor
    products_HTS: Tensor  # q · k
    scores_HTS: Tensor  # divided by √d_k; -∞ where masked
    weights_HTS: Tensor  # softmax
    heads_HTK: Tensor  # weighted sums of values
    concatenated_TE: Tensor
    output_TD: Tensor


class FeedForwardSteps(NamedTuple):
    """The position-wise feed-forward network (section 3.3)."""

    inner_TF: Tensor  # after the activation
    output_TD: Tensor
    activation: str


class LayerSteps(NamedTuple):
    """A layer. An encoder layer has no cross-attention."""

    input_TD: Tensor
    self_attention: AttentionSteps
    after_self_attention_TD: Tensor  # LayerNorm(x + Sublayer(x))
    cross_attention: AttentionSteps | None
    after_cross_attention_TD: Tensor | None
    feed_forward: FeedForwardSteps
    output_TD: Tensor


class Trace(NamedTuple):
    """A whole forward pass for one sentence pair."""

    source: Embedded
    encoder: list[LayerSteps]
    target: Embedded
    decoder: list[LayerSteps]
    logits_TV: Tensor


def trace(model: Transformer, source: Tensor, target: Tensor) -> Trace:
    """Return every step for source ids and target input ids (shifted right), no padding."""
    embedded_source, embedded_target = embed(model, source, "source"), embed(model, target, "target")
    encoder = encode_steps(model, embedded_source.input_TD)
    decoder = decode_steps(model, embedded_target.input_TD, encoder[-1].output_TD)
    logits_TV = model.embedding.logits(decoder[-1].output_TD)
    return Trace(embedded_source, encoder, embedded_target, decoder, logits_TV)


def embed(model: Transformer, ids: Tensor, side: str = "target") -> Embedded:
    embedding = model.embedding
    found_TD = F.embedding(ids, embedding.matrix(side))
    scaled_TD, position_TD = found_TD * embedding.scale, embedding.positions(ids.shape[-1])
    return Embedded(found_TD, scaled_TD, position_TD, scaled_TD + position_TD)


def encode_steps(model: Transformer, x_SD: Tensor) -> list[LayerSteps]:
    steps: list[LayerSteps] = []
    for layer in model.encoder:
        steps.append(_encoder_layer(layer, steps[-1].output_TD if steps else x_SD))
    return steps


def decode_steps(model: Transformer, x_TD: Tensor, memory_SD: Tensor, read_S: Tensor | None = None) -> list[LayerSteps]:
    """Return the decoder's steps.

    `read_S` multiplies the values of cross-attention: 0 hides a source position.
    """
    steps: list[LayerSteps] = []
    for layer in model.decoder:
        steps.append(_decoder_layer(layer, steps[-1].output_TD if steps else x_TD, memory_SD, read_S))
    return steps


def attention_steps(
    module: MultiHeadAttention, x_TD: Tensor, memory_SD: Tensor, mask_TS: Tensor | None, read_S: Tensor | None = None
) -> AttentionSteps:
    q, k, v = (_heads(module, y) for y in (module.query(x_TD), module.key(memory_SD), module.value(memory_SD)))
    if read_S is not None:
        v = v * read_S[..., None, :, None]
    products = q @ k.transpose(-2, -1)
    scores = products / math.sqrt(q.shape[-1])
    if mask_TS is not None:
        scores = scores.masked_fill(~mask_TS, -math.inf)
    weights = scores.softmax(dim=-1)
    heads = weights @ v
    concatenated = heads.transpose(-3, -2).flatten(-2)
    return AttentionSteps(q, k, v, products, scores, weights, heads, concatenated, module.output(concatenated))


def _heads(module: MultiHeadAttention, x_TE: Tensor) -> Tensor:
    return x_TE.view(*x_TE.shape[:-1], module.h, -1).transpose(-3, -2)


def _feed_forward(module: FeedForward, x_TD: Tensor) -> FeedForwardSteps:
    inner_TF = ACTIVATIONS[module.activation](module.inner(x_TD))
    return FeedForwardSteps(inner_TF, module.outer(inner_TF), module.activation)


def _encoder_layer(layer: EncoderLayer, x_TD: Tensor) -> LayerSteps:
    attended = attention_steps(layer.self_attention, x_TD, x_TD, None)
    after_TD = layer.after_self_attention.norm(x_TD + attended.output_TD)
    fed = _feed_forward(layer.feed_forward, after_TD)
    return LayerSteps(
        x_TD, attended, after_TD, None, None, fed, layer.after_feed_forward.norm(after_TD + fed.output_TD)
    )


def _decoder_layer(layer: DecoderLayer, x_TD: Tensor, memory_SD: Tensor, read_S: Tensor | None) -> LayerSteps:
    own = attention_steps(layer.self_attention, x_TD, x_TD, causal_mask(x_TD.shape[-2], x_TD.device))
    after_own_TD = layer.after_self_attention.norm(x_TD + own.output_TD)
    cross = attention_steps(layer.cross_attention, after_own_TD, memory_SD, None, read_S)
    after_cross_TD = layer.after_cross_attention.norm(after_own_TD + cross.output_TD)
    fed = _feed_forward(layer.feed_forward, after_cross_TD)
    output_TD = layer.after_feed_forward.norm(after_cross_TD + fed.output_TD)
    return LayerSteps(x_TD, own, after_own_TD, cross, after_cross_TD, fed, output_TD)
