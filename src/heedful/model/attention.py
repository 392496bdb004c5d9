"""Scaled dot-product and multi-head attention (section 3.2).

The module owns only the projections.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.model.dropout import dropout as apply_dropout
from heedful.model.mixed_precision_layers import Linear

# Up to this T × S the plain formula beats the block-wise kernels on a CPU (docs/results/experiments.md).
_LONGEST_PLAIN, _LONGEST_PLAIN_BF16 = 96 * 96, 256 * 256
SHORTEST_ROW = 16  # float32 numbers in an AVX-512 register
_LONGEST_FLOAT32_ROW = 64


class KeysValues(NamedTuple):
    """Keys and values, projected and split into heads."""

    k_BHSK: Tensor
    v_BHSK: Tensor


def plain_attention(
    q_BHTK: Tensor, k_BHSK: Tensor, v_BHSK: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Return softmax(QKᵀ / √d_k) V (Eq. 1) and the weights.

    This is the oracle of `fast_attention`.
    """
    scores_BHTS = q_BHTK @ k_BHSK.transpose(-2, -1) / math.sqrt(q_BHTK.shape[-1])
    if mask is not None:
        scores_BHTS = scores_BHTS.masked_fill(~mask, -math.inf)
    weights_BHTS = softmax(scores_BHTS)
    return apply_dropout(weights_BHTS, dropout) @ v_BHSK, weights_BHTS


def softmax(scores: Tensor) -> Tensor:
    """Return the softmax of the last axis, in at least float32 for up to 64 columns.

    There torch's kernel for bf16 is up to five times slower on a CPU. It is also slow for rows shorter than a vector
    register in any type, so those are padded with -inf. Longer rows keep their type, which saves memory.
    """
    S, dtype = scores.shape[-1], scores.dtype
    scores = scores.float() if in_float32(S, dtype) else scores
    if S < SHORTEST_ROW and scores.device.type == "cpu":
        scores = F.pad(scores, (0, SHORTEST_ROW - S), value=-math.inf)
    return scores.softmax(dim=-1)[..., :S].to(dtype)


def in_float32(columns: int, dtype: torch.dtype) -> bool:
    """Return whether `softmax` converts rows of this many columns."""
    return dtype.itemsize < 4 and columns <= _LONGEST_FLOAT32_ROW


def fast_attention(
    q_BHTK: Tensor,
    k_BHSK: Tensor,
    v_BHSK: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Compute the same without storing all T × S weights, except with dropout on a CPU.

    docs/results/memory.md has the measurements. The block-wise kernels require d_k = d_v. If they differ (Table 3 B),
    zeros pad the narrower one, which changes no product.
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
    """Use the faster implementation: on a CPU, the plain formula for small T × S."""
    T, S = q_BHTK.shape[2], k_BHSK.shape[2]
    if q_BHTK.device.type != "cpu" or longest_plain(q_BHTK.dtype) < T * S:
        return fast_attention(q_BHTK, k_BHSK, v_BHSK, mask, causal, dropout)
    mask = causal_mask(T, q_BHTK.device) if causal else mask
    return plain_attention(q_BHTK, k_BHSK, v_BHSK, mask, dropout)[0]


def longest_plain(dtype: torch.dtype) -> int:
    """Return the largest T × S for which attention on a CPU uses the plain formula."""
    return _LONGEST_PLAIN_BF16 if dtype == torch.bfloat16 else _LONGEST_PLAIN


def causal_mask(length: int, device: torch.device) -> Tensor:
    """Return the T × T mask that blocks attention to later positions (section 3.2.3)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2): h parallel heads with their own projections.

    One matrix holds the projections of all heads: d_model → h·d_k for queries and keys, d_model → h·d_v for values.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.h = config.h
        self.dropout = config.attention_dropout
        self.query = Linear(config.d_model, config.h * config.d_k)
        self.key = Linear(config.d_model, config.h * config.d_k)
        self.value = Linear(config.d_model, config.h * config.d_v)
        self.output = Linear(config.h * config.d_v, config.d_model)

    def keys_values(self, memory_BSD: Tensor) -> KeysValues:
        """Project the states that are attended to."""
        return KeysValues(self._heads(self.key(memory_BSD)), self._heads(self.value(memory_BSD)))

    def forward(
        self,
        x_BTD: Tensor,
        keys_values: KeysValues,
        mask: Tensor | None = None,
        causal: bool = False,
        want_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the attended values for each position of x and, on request, the weights B×H×T×S."""
        q_BHTK = self._heads(self.query(x_BTD))
        dropout = self.dropout if self.training else 0.0
        weights_BHTS = None
        if want_weights:
            mask = causal_mask(x_BTD.shape[1], x_BTD.device) if causal else mask
            heads_BHTK, weights_BHTS = plain_attention(q_BHTK, *keys_values, mask, dropout)
        else:
            heads_BHTK = attention(q_BHTK, *keys_values, mask, causal, dropout)
        return self.output(heads_BHTK.transpose(1, 2).flatten(2)), weights_BHTS

    def _heads(self, x_BTE: Tensor) -> Tensor:
        """Split the last axis into heads: B×T×E → B×H×T×K."""
        B, T, _ = x_BTE.shape
        return x_BTE.view(B, T, self.h, -1).transpose(1, 2)
