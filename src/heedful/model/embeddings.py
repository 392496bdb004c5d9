"""Token embeddings and positional encodings (sections 3.4 and 3.5)."""

from __future__ import annotations

import functools
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import PAD, ModelConfig
from heedful.model.dropout import dropout


def sinusoids(length: int, d_model: int) -> Tensor:
    """Return PE(pos, 2i) = sin(pos / 10000^(2i/d_model)) and PE(pos, 2i+1) = cos(…), interleaved (section 3.5)."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = position * frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(length, d_model)


@functools.lru_cache(maxsize=16)
def _table(length: int, d_model: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return sinusoids(length, d_model).to(device, dtype)


class Embedding(nn.Module):
    """One matrix for source, target and the pre-softmax projection (section 3.4), plus positions."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.dropout = config.dropout
        self.word_dropout = config.word_dropout
        # Data type of the activations in training mode, which every later layer follows; None: that of the weights.
        self.training_dtype: torch.dtype | None = None
        self.weight_VD = nn.Parameter(torch.empty(config.vocab_size, config.d_model))
        # Sinusoids are computed, not stored: they do not limit the sentence length.
        learned = config.positions == "learned"
        self.positions_TD = nn.Parameter(torch.empty(config.max_positions, config.d_model)) if learned else None

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Return embedding · √d_model + position, with dropout on the sum."""
        embedded_BTD = F.embedding(ids_BT, self.weight_VD, padding_idx=PAD) * self.scale
        if self.training and self.word_dropout:
            # Not rescaled by 1 / (1 - p): the remaining words keep the size that they have at inference.
            kept_BT1 = torch.rand((*ids_BT.shape, 1), device=ids_BT.device) >= self.word_dropout
            embedded_BTD = embedded_BTD * kept_BT1
        embedded_BTD = embedded_BTD + self.positions(ids_BT.shape[1])
        if self.training and self.training_dtype is not None:
            embedded_BTD = embedded_BTD.to(self.training_dtype)
        return dropout(embedded_BTD, self.dropout, self.training)

    def logits(self, states: Tensor) -> Tensor:
        """Project … × D to … × V with the embedding matrix, without a bias."""
        return F.linear(states, self.weight_VD.to(states.dtype))

    def positions(self, length: int) -> Tensor:
        """Return the encodings of positions 0 … T-1, T × D."""
        if self.positions_TD is None:
            longer = max(256, 1 << (length - 1).bit_length())  # powers of two, so that few tables are cached
            return _table(longer, self.weight_VD.shape[1], self.weight_VD.dtype, self.weight_VD.device)[:length]
        if length > self.positions_TD.shape[0]:
            raise ValueError(
                f"A sequence of {length} tokens exceeds the {self.positions_TD.shape[0]} learned positions. Shorten it."
            )
        return self.positions_TD[:length]
