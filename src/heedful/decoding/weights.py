"""The weights of a model for search: projections of the same states in one matrix."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.model.attention import MultiHeadAttention
from heedful.model.embeddings import Embedding
from heedful.model.layers import AddAndNorm

Linear = tuple[Tensor, Tensor]  # weight and bias


class Norm(NamedTuple):
    """Residual connection and layer normalisation."""

    weight_D: Tensor
    bias_D: Tensor
    epsilon: float

    @classmethod
    def of(cls, module: AddAndNorm, dtype: torch.dtype) -> Norm:
        norm = module.norm
        return cls(norm.weight.detach().to(dtype), norm.bias.detach().to(dtype), norm.eps)

    def add(self, x_RD: Tensor, sublayer_RD: Tensor) -> Tensor:
        """Return LayerNorm(x + sublayer). The sublayer's memory is reused."""
        return F.layer_norm(sublayer_RD.add_(x_RD), self.weight_D.shape, self.weight_D, self.bias_D, self.epsilon)


def linear(module: nn.Linear) -> Linear:
    return module.weight.detach(), module.bias.detach()


def vocabulary_projection(embedding: Embedding) -> tuple[Tensor, Tensor | None]:
    """Return the weight of the projection to the vocabulary, and its bias or None."""
    return embedding.matrix("projection").detach(), None if embedding.bias_V is None else embedding.bias_V.detach()


def joined(*linears: Linear) -> Linear:
    """Join projections of the same states into one product."""
    return torch.cat([weight for weight, _ in linears]), torch.cat([bias for _, bias in linears])


def head_width(attention: MultiHeadAttention) -> int:
    """Return the head width; if d_k ≠ d_v, zeros pad the narrower one and change no product."""
    return max(attention.query.out_features, attention.value.out_features) // attention.h


def queries(attention: MultiHeadAttention) -> Linear:
    """Return the projection to queries, divided by √d_k."""
    scale = math.sqrt(attention.h / attention.query.out_features)
    weight, bias = linear(attention.query)
    return _filled_up((weight * scale, bias * scale), attention)


def keys_values(attention: MultiHeadAttention) -> tuple[Linear, Linear]:
    return _filled_up(linear(attention.key), attention), _filled_up(linear(attention.value), attention)


def output(attention: MultiHeadAttention) -> Linear:
    weight, bias = linear(attention.output)
    by_head = weight.view(len(weight), attention.h, -1)
    return F.pad(by_head, (0, head_width(attention) - by_head.shape[2])).flatten(1), bias


def _filled_up(projection: Linear, attention: MultiHeadAttention) -> Linear:
    """Pad each head's part of the output projection to the same width."""
    weight, bias = (x.view(attention.h, -1, *x.shape[1:]) for x in projection)
    more = head_width(attention) - weight.shape[1]
    return F.pad(weight, (0, 0, 0, more)).flatten(0, 1), F.pad(bias, (0, more)).flatten()
