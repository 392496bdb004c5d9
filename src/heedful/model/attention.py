"""Attention (section 3.2): a function of queries, keys and values; the module owns only the projections."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.model.dropout import dropout as random_zeros

_SHORT = 96 * 96  # T × S up to which holding all weights costs less than computing them in blocks


class KeysValues(NamedTuple):
    """What is attended to, projected and split into heads."""

    k_BHSK: Tensor
    v_BHSK: Tensor


def plain_attention(
    q_BHTK: Tensor, k_BHSK: Tensor, v_BHSK: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Eq. 1, softmax(QKᵀ / √d_k) V, and the weights: the oracle of `fast_attention`, and the source of pictures."""
    scores_BHTS = q_BHTK @ k_BHSK.transpose(-2, -1) / math.sqrt(q_BHTK.shape[-1])
    if mask is not None:
        scores_BHTS = scores_BHTS.masked_fill(~mask, -math.inf)
    weights_BHTS = scores_BHTS.softmax(dim=-1)
    return random_zeros(weights_BHTS, dropout) @ v_BHSK, weights_BHTS


def fast_attention(
    q_BHTK: Tensor,
    k_BHSK: Tensor,
    v_BHSK: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """The same without ever holding all T × S weights, save for dropout on a CPU (docs/results/memory.md).

    The kernels that work in blocks take one width for all three: where d_k ≠ d_v (Table 3 B), the narrower is padded
    with zeros, which change no product.
    """
    d_k, d_v = q_BHTK.shape[-1], v_BHSK.shape[-1]
    if d_k < d_v:
        q_BHTK, k_BHSK = F.pad(q_BHTK, (0, d_v - d_k)), F.pad(k_BHSK, (0, d_v - d_k))
    elif d_v < d_k:
        v_BHSK = F.pad(v_BHSK, (0, d_k - d_v))
    heads_BHTK = F.scaled_dot_product_attention(
        q_BHTK, k_BHSK, v_BHSK, attn_mask=mask, is_causal=causal, dropout_p=dropout, scale=1 / math.sqrt(d_k)
    )
    return heads_BHTK[..., :d_v]


def attention(
    q_BHTK: Tensor,
    k_BHSK: Tensor,
    v_BHSK: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Whichever is faster: on a CPU the plain formula wins while T × S is small (docs/results/experiments.md)."""
    T, S = q_BHTK.shape[2], k_BHSK.shape[2]
    if q_BHTK.device.type != "cpu" or T * S > _SHORT:
        return fast_attention(q_BHTK, k_BHSK, v_BHSK, mask, causal, dropout)
    mask = causal_mask(T, q_BHTK.device) if causal else mask
    return plain_attention(q_BHTK, k_BHSK, v_BHSK, mask, dropout)[0]


def causal_mask(length: int, device: torch.device) -> Tensor:
    """T × T: a position may attend to itself and to those before it (section 3.2.3)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


class MultiHeadAttention(nn.Module):
    """Section 3.2.2: h heads side by side, each with projections of its own.

    The h projections of a kind are one matrix, d_model → h·d_k for queries and keys, d_model → h·d_v for values.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.h = config.h
        self.dropout = config.attention_dropout
        self.query = nn.Linear(config.d_model, config.h * config.d_k)
        self.key = nn.Linear(config.d_model, config.h * config.d_k)
        self.value = nn.Linear(config.d_model, config.h * config.d_v)
        self.output = nn.Linear(config.h * config.d_v, config.d_model)

    def keys_values(self, memory_BSD: Tensor) -> KeysValues:
        return KeysValues(self._heads(self.key(memory_BSD)), self._heads(self.value(memory_BSD)))

    def forward(
        self,
        x_BTD: Tensor,
        memory: KeysValues,
        mask: Tensor | None = None,
        causal: bool = False,
        want_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """What each position of x gathers from the memory, and the weights B×H×T×S if they are wanted."""
        q_BHTK = self._heads(self.query(x_BTD))
        dropout = self.dropout if self.training else 0.0
        weights_BHTS = None
        if want_weights:
            mask = causal_mask(x_BTD.shape[1], x_BTD.device) if causal else mask
            heads_BHTK, weights_BHTS = plain_attention(q_BHTK, *memory, mask, dropout)
        else:
            heads_BHTK = attention(q_BHTK, *memory, mask, causal, dropout)
        return self.output(heads_BHTK.transpose(1, 2).flatten(2)), weights_BHTS

    def _heads(self, x_BTE: Tensor) -> Tensor:
        """B×T×(H·K) → B×H×T×K."""
        B, T, _ = x_BTE.shape
        return x_BTE.view(B, T, self.h, -1).transpose(1, 2)
