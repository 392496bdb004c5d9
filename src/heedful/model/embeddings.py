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
    """Return interleaved sines and cosines of pos / 10000^(2i/d_model) (section 3.5)."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = position * frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(length, d_model)


@functools.lru_cache(maxsize=16)
def _table(length: int, d_model: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return sinusoids(length, d_model).to(dtype).to(device)  # MPS has no float64


class Embedding(nn.Module):
    """One matrix for source, target and pre-softmax projection (section 3.4), plus positions.

    Imported models may have a matrix of their own for the source or the projection, and a bias.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.scale = config.embedding_scale or math.sqrt(config.d_model)
        self.dropout = config.dropout
        self.word_dropout = config.word_dropout
        # Data type of the activations in training mode, which every later layer follows; None: that of the weights.
        self.training_dtype: torch.dtype | None = None
        shape, tied = (config.vocab_size, config.d_model), config.tied_embeddings
        self.weight_VD = nn.Parameter(torch.empty(shape))
        self.source_VD = nn.Parameter(torch.empty(shape)) if tied != "all" else None
        self.projection_VD = nn.Parameter(torch.empty(shape)) if tied == "none" else None
        self.bias_V = nn.Parameter(torch.empty(config.vocab_size)) if config.output_bias else None
        # Sinusoids are computed, not stored: they do not limit the sentence length.
        learned = config.positions == "learned"
        self.positions_TD = nn.Parameter(torch.empty(config.max_positions, config.d_model)) if learned else None

    def forward(self, ids_BT: Tensor, side: str = "target") -> Tensor:
        """Return embedding · √d_model + position, with dropout on the sum."""
        embedded_BTD = F.embedding(ids_BT, self.matrix(side), padding_idx=PAD) * self.scale
        if self.training and self.word_dropout:
            # Not rescaled by 1 / (1 - p): the remaining words keep the size that they have at inference.
            kept_BT1 = torch.rand((*ids_BT.shape, 1), device=ids_BT.device) >= self.word_dropout
            embedded_BTD = embedded_BTD * kept_BT1
        embedded_BTD = embedded_BTD + self.positions(ids_BT.shape[1])
        if self.training and self.training_dtype is not None:
            embedded_BTD = embedded_BTD.to(self.training_dtype)
        return dropout(embedded_BTD, self.dropout, self.training)

    def logits(self, states: Tensor) -> Tensor:
        """Project … × D to … × V with the embedding matrix; the paper's model has no bias."""
        bias_V = None if self.bias_V is None else self.bias_V.to(states.dtype)
        return F.linear(states, self.matrix("projection").to(states.dtype), bias_V)

    def matrix(self, side: str) -> Tensor:
        """Return the matrix of "source", "target" or "projection", in the paper the same one."""
        own = {"source": self.source_VD, "projection": self.projection_VD}.get(side)
        return self.weight_VD if own is None else own

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
