"""The decoder for search: one position at a time, its weights laid out for that.

The formulas are those of `model/layers.py`, which is its oracle in the tests. Here the projections that read the same
states are one matrix product, queries come divided by √d_k, and the weights may be 8-bit integers.
"""

from __future__ import annotations

import math
import warnings
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.model.attention import MultiHeadAttention
from heedful.model.layers import AddAndNorm, DecoderLayer
from heedful.model.transformer import Transformer

_FEW = 16  # rows (docs/results/experiments.md)


class Projection(Protocol):
    def __call__(self, x_RD: Tensor) -> Tensor: ...


class FloatProjection:
    """xWᵀ + b; of a few rows as (Wxᵀ + b)ᵀ, for which the machine's kernels are twice as fast."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self.bias_column = weight.new_zeros(1, 1) if bias is None else bias[:, None]

    def __call__(self, x_RD: Tensor) -> Tensor:
        if len(x_RD) > _FEW:
            return F.linear(x_RD, self.weight, self.bias)
        return torch.addmm(self.bias_column, self.weight, x_RD.t()).t().contiguous()


class Int8Projection:
    """The same with W in 8-bit integers, a scale for each of its rows, and x rounded to 7 bits as it comes.

    7 bits, because the products of 8-bit numbers overflow the 16-bit sums of processors without VNNI.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        scales = weight.abs().amax(dim=1).clamp(min=1e-12) / 127
        zero = torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():
            # torch says that they will go (has_int8); nothing that takes their place is faster than float32 yet.
            warnings.simplefilter("ignore", UserWarning)
            rounded = torch.quantize_per_channel(weight.float(), scales.double(), zero, axis=0, dtype=torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(rounded, None if bias is None else bias.float())

    def __call__(self, x_RD: Tensor) -> Tensor:
        product: Tensor = torch.ops.quantized.linear_dynamic.default(x_RD.float(), self.packed, True)
        return product.to(x_RD.dtype)


def has_int8() -> bool:
    """Builds of torch differ, and it announces that these tensors will go."""
    return hasattr(torch, "quantize_per_channel") and torch.backends.quantized.engine != "none"


class SearchDecoder:
    """Of a model as it is now, for every batch; where the weights change, a new one is needed."""

    def __init__(self, model: Transformer, int8: bool = False) -> None:
        kind = Int8Projection if int8 else FloatProjection
        self.model = model
        self.layers = [SearchLayer(layer, kind) for layer in model.decoder]
        self.logits: Projection = kind(model.embedding.weight_VD.detach(), None)

    def embedded(self, tokens_R: Tensor, position_R: Tensor) -> Tensor:
        """Section 3.4 and 3.5, each row at a position of its own."""
        embedding = self.model.embedding
        positions_TD = embedding.positions(int(position_R.max()) + 1)
        return F.embedding(tokens_R, embedding.weight_VD) * embedding.scale + positions_TD[position_R]


class SearchLayer:
    """One `DecoderLayer`. Rows are B sentences × W hypotheses; keys and values are the two halves of one tensor."""

    def __init__(self, layer: DecoderLayer, kind: type[FloatProjection | Int8Projection]) -> None:
        own, cross, feed_forward = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.h = own.h
        self.width = _width(own)
        self._query_key_value = kind(*_joined(_queries(own), *_keys_values(own)))
        self._output = kind(*_output(own))
        self._after_self_attention = layer.after_self_attention
        self._query = kind(*_queries(cross))
        self._key_value = kind(*_joined(*_keys_values(cross)))
        self._cross_output = kind(*_output(cross))
        self._after_cross_attention = layer.after_cross_attention
        self._inner = kind(*_weights(feed_forward.inner))
        self._outer = kind(*_weights(feed_forward.outer))
        self._after_feed_forward = layer.after_feed_forward

    def memory(self, states_BSD: Tensor) -> Tensor:
        """Keys and values of the encoder's output, 2×B×H×S×K: once a sentence, shared by its hypotheses."""
        B, S, D = states_BSD.shape
        return self._heads(self._key_value(states_BSD.reshape(B * S, D)), B)

    def queries_and_new(self, x_RD: Tensor, sentences: int) -> tuple[Tensor, Tensor]:
        """Of the newest position: queries B×H×W×K, and keys and values 2×B×H×W×K."""
        query_key_value = self._heads(self._query_key_value(x_RD), sentences)
        return query_key_value[0], query_key_value[1:]

    def step(
        self,
        x_RD: Tensor,
        query_BHWK: Tensor,
        past: Tensor,
        past_mask_B1WP: Tensor,
        memory: Tensor,
        memory_mask_B11S: Tensor,
    ) -> Tensor:
        """The layer's states at the newest position; masks are added to the scores (0 or -∞)."""
        attended = self._output(_attended(query_BHWK, past, past_mask_B1WP))
        x_RD = _add_and_norm(self._after_self_attention, x_RD, attended)
        [query_BHWK] = self._heads(self._query(x_RD), len(query_BHWK))
        attended = self._cross_output(_attended(query_BHWK, memory, memory_mask_B11S))
        x_RD = _add_and_norm(self._after_cross_attention, x_RD, attended)
        return _add_and_norm(self._after_feed_forward, x_RD, self._outer(self._inner(x_RD).relu_()))

    def _heads(self, x: Tensor, sentences: int) -> Tensor:
        """What projections side by side have made of B·W rows, apart: how many they are ×B×H×W×K."""
        return x.view(sentences, len(x) // sentences, -1, self.h, self.width).permute(2, 0, 3, 1, 4)


def _attended(query_BHWK: Tensor, keys_values: Tensor, mask: Tensor) -> Tensor:
    """Eq. 1 for queries that come divided by √d_k; the heads joined, a row a hypothesis."""
    k_BHPK, v_BHPK = keys_values.unbind()
    scores_BHWP = query_BHWK @ k_BHPK.transpose(-2, -1)
    scores_BHWP += mask
    heads_BHWK = scores_BHWP.softmax(dim=-1) @ v_BHPK
    B, H, W, K = heads_BHWK.shape
    return heads_BHWK.transpose(1, 2).reshape(B * W, H * K)


Linear = tuple[Tensor, Tensor]  # weight and bias


def _weights(linear: nn.Linear) -> Linear:
    return linear.weight.detach(), linear.bias.detach()


def _joined(*linears: Linear) -> Linear:
    """One product instead of several."""
    return torch.cat([weight for weight, _ in linears]), torch.cat([bias for _, bias in linears])


def _width(attention: MultiHeadAttention) -> int:
    """Of a head: where d_k ≠ d_v, the narrower is filled up with zeros, which change no product."""
    return max(attention.query.out_features, attention.value.out_features) // attention.h


def _filled_up(linear: Linear, attention: MultiHeadAttention) -> Linear:
    """Each head's part of the output as wide as all others."""
    weight, bias = (x.view(attention.h, -1, *x.shape[1:]) for x in linear)
    missing = _width(attention) - weight.shape[1]
    return F.pad(weight, (0, 0, 0, missing)).flatten(0, 1), F.pad(bias, (0, missing)).flatten()


def _queries(attention: MultiHeadAttention) -> Linear:
    """Divided by √d_k."""
    scale = math.sqrt(attention.h / attention.query.out_features)
    weight, bias = _weights(attention.query)
    return _filled_up((weight * scale, bias * scale), attention)


def _keys_values(attention: MultiHeadAttention) -> tuple[Linear, Linear]:
    return _filled_up(_weights(attention.key), attention), _filled_up(_weights(attention.value), attention)


def _output(attention: MultiHeadAttention) -> Linear:
    weight, bias = _weights(attention.output)
    by_head = weight.view(len(weight), attention.h, -1)
    return F.pad(by_head, (0, _width(attention) - by_head.shape[2])).flatten(1), bias


def _add_and_norm(module: AddAndNorm, x_RD: Tensor, sublayer_RD: Tensor) -> Tensor:
    norm = module.norm
    return F.layer_norm(sublayer_RD.add_(x_RD), norm.normalized_shape, norm.weight, norm.bias, norm.eps)
