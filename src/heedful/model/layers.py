"""Encoder and decoder layers (sections 3.1, 3.3): LayerNorm(x + Dropout(Sublayer(x)))."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.model.attention import MultiHeadAttention
from heedful.model.dropout import dropout
from heedful.model.mixed_precision_layers import LayerNorm, Linear

# Values of model.activation. The paper's is relu; Marian models often have swish.
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}
)


class FeedForward(nn.Module):
    """The position-wise feed-forward network (Eq. 2): max(0, xW₁ + b₁)W₂ + b₂."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.inner = Linear(config.d_model, config.d_ff)
        self.outer = Linear(config.d_ff, config.d_model)

    def forward(self, x_BTD: Tensor) -> Tensor:
        hidden_BTF = ACTIVATIONS[self.activation](self.inner(x_BTD))
        result: Tensor = self.outer(hidden_BTF)
        return result


class AddAndNorm(nn.Module):
    """Residual connection, then layer normalisation (post-norm, as in the paper)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = LayerNorm(config.d_model)
        self.dropout = config.dropout

    def forward(self, x_BTD: Tensor, sublayer_BTD: Tensor) -> Tensor:
        result: Tensor = self.norm(x_BTD + dropout(sublayer_BTD, self.dropout, self.training))
        return result


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.after_self_attention = AddAndNorm(config)
        self.feed_forward = FeedForward(config)
        self.after_feed_forward = AddAndNorm(config)

    def forward(self, x_BSD: Tensor, mask: Tensor | None, want_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        keys_values = self.self_attention.keys_values(x_BSD)
        attended, weights = self.self_attention(x_BSD, keys_values, mask, want_weights=want_weights)
        x_BSD = self.after_self_attention(x_BSD, attended)
        return self.after_feed_forward(x_BSD, self.feed_forward(x_BSD)), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, then the feed-forward network.

    It computes all positions at once, as training needs; `decoding/decoder.py` computes one position at a time.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.after_self_attention = AddAndNorm(config)
        self.cross_attention = MultiHeadAttention(config)
        self.after_cross_attention = AddAndNorm(config)
        self.feed_forward = FeedForward(config)
        self.after_feed_forward = AddAndNorm(config)

    def forward(
        self, x_BTD: Tensor, memory_BSD: Tensor, memory_mask: Tensor | None, want_weights: bool = False
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        keys_values = self.self_attention.keys_values(x_BTD)
        attended, self_weights = self.self_attention(x_BTD, keys_values, causal=True, want_weights=want_weights)
        x_BTD = self.after_self_attention(x_BTD, attended)
        keys_values = self.cross_attention.keys_values(memory_BSD)
        attended, cross_weights = self.cross_attention(x_BTD, keys_values, memory_mask, want_weights=want_weights)
        x_BTD = self.after_cross_attention(x_BTD, attended)
        x_BTD = self.after_feed_forward(x_BTD, self.feed_forward(x_BTD))
        return x_BTD, self_weights, cross_weights
