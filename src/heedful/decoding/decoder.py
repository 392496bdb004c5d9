"""The decoder for search: one position at a time, its weights laid out for that.

The formulas are those of `model/layers.py`, which is its oracle in the tests. Here the projections that read the same
states are one matrix product, queries come divided by √d_k, and the weights may be 8-bit integers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.model.attention import KeysValues, MultiHeadAttention
from heedful.model.layers import AddAndNorm, DecoderLayer
from heedful.model.transformer import Transformer

_FEW = 16  # rows (docs/experiments.md)


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
    """Of a model as it is now: used for every batch, and blind to what training does to the weights later."""

    def __init__(self, model: Transformer, int8: bool = False) -> None:
        kind = Int8Projection if int8 else FloatProjection
        self.model = model
        self.layers = [SearchLayer(layer, kind) for layer in model.decoder]
        self.logits: Projection = kind(model.embedding.weight_VD.detach(), None)

    def embedded(self, pieces_R: Tensor, position_R: Tensor) -> Tensor:
        """Section 3.4 and 3.5, each row at a position of its own."""
        embedding = self.model.embedding
        positions_TD = embedding.positions(int(position_R.max()) + 1)
        return F.embedding(pieces_R, embedding.weight_VD) * embedding.scale + positions_TD[position_R]


class SearchLayer:
    """One `DecoderLayer`. Rows are B sentences × W hypotheses."""

    def __init__(self, layer: DecoderLayer, kind: type[FloatProjection | Int8Projection]) -> None:
        own, cross, feed_forward = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.h = own.h
        self.widths = [own.query.out_features, own.key.out_features, own.value.out_features]
        self._query_key_value = kind(*_side_by_side([own.query, own.key, own.value], own))
        self._output = kind(*_side_by_side([own.output], own))
        self._after_self_attention = layer.after_self_attention
        self._query = kind(*_side_by_side([cross.query], cross))
        self._key_value = kind(*_side_by_side([cross.key, cross.value], cross))
        self._cross_output = kind(*_side_by_side([cross.output], cross))
        self._after_cross_attention = layer.after_cross_attention
        self._inner = kind(*_side_by_side([feed_forward.inner]))
        self._outer = kind(*_side_by_side([feed_forward.outer]))
        self._after_feed_forward = layer.after_feed_forward

    def memory(self, states_BSD: Tensor) -> KeysValues:
        """Keys and values of the encoder's output: once a sentence, shared by its hypotheses."""
        B, S, D = states_BSD.shape
        key, value = torch.split(self._key_value(states_BSD.reshape(B * S, D)), self.widths[1:], dim=1)
        return KeysValues(*(x.reshape(B, S, self.h, -1).transpose(1, 2).contiguous() for x in (key, value)))

    def queries_keys_values(self, x_RD: Tensor, sentences: int) -> tuple[Tensor, Tensor, Tensor]:
        """Of the newest position, each B×H×W×K."""
        parts = torch.split(self._query_key_value(x_RD), self.widths, dim=1)
        query, key, value = (x.view(sentences, -1, self.h, x.shape[1] // self.h).transpose(1, 2) for x in parts)
        return query, key, value

    def step(
        self,
        x_RD: Tensor,
        query_BHWK: Tensor,
        past: KeysValues,
        past_mask_B1WP: Tensor | None,
        memory: KeysValues,
        memory_mask_B11S: Tensor | None,
    ) -> Tensor:
        """The layer's states at the newest position; masks are added to the scores (0 or -∞)."""
        attended = self._output(_attended(query_BHWK, past, past_mask_B1WP))
        x_RD = _add_and_norm(self._after_self_attention, x_RD, attended)
        query = self._query(x_RD)
        query_BHWK = query.view(len(memory.k_BHSK), -1, self.h, query.shape[1] // self.h).transpose(1, 2)
        attended = self._cross_output(_attended(query_BHWK, memory, memory_mask_B11S))
        x_RD = _add_and_norm(self._after_cross_attention, x_RD, attended)
        return _add_and_norm(self._after_feed_forward, x_RD, self._outer(self._inner(x_RD).relu_()))


def _side_by_side(linears: Sequence[nn.Linear], attention: MultiHeadAttention | None = None) -> tuple[Tensor, Tensor]:
    """One weight and one bias; the queries' already divided by √d_k."""
    weights, biases = [], []
    for linear in linears:
        queries = attention is not None and linear is attention.query
        factor = math.sqrt(attention.h / linear.out_features) if attention is not None and queries else 1.0
        weights.append(linear.weight.detach() * factor)
        biases.append(linear.bias.detach() * factor)
    return torch.cat(weights), torch.cat(biases)


def _attended(query_BHWK: Tensor, memory: KeysValues, mask: Tensor | None) -> Tensor:
    """Eq. 1 for queries that come divided by √d_k; the heads joined, a row a hypothesis."""
    scores_BHWS = query_BHWK @ memory.k_BHSK.transpose(-2, -1)
    if mask is not None:
        scores_BHWS += mask
    heads_BHWK = scores_BHWS.softmax(dim=-1) @ memory.v_BHSK
    B, H, W, K = heads_BHWK.shape
    return heads_BHWK.transpose(1, 2).reshape(B * W, H * K)


def _add_and_norm(module: AddAndNorm, x_RD: Tensor, sublayer_RD: Tensor) -> Tensor:
    norm = module.norm
    return F.layer_norm(sublayer_RD.add_(x_RD), norm.normalized_shape, norm.weight, norm.bias, norm.eps)
