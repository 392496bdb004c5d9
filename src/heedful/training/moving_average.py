"""An exponential moving average of the weights.

Not in the paper, which averages checkpoints (section 6.1).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from heedful.model.transformer import Transformer
from heedful.training.sharding import placed_like

PREFIX = "ema."  # of its tensors in optimizer.safetensors


def decay_at(update: int, decay: float) -> float:
    """Return the decay after so many updates: lower at first, to forget the random start."""
    return min(decay, (1 + update) / (10 + update))


class MovingAverage:
    """The average of a model's weights in float32, empty before the first update.

    With decay 0, it stays empty.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.weights: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self, model: Transformer, updates: int) -> None:
        """Include the model's weights after `updates` updates."""
        if not self.decay:
            return
        if not self.weights:
            self.weights = {name: parameter.detach().float().clone() for name, parameter in model.named_parameters()}
            return
        share = 1 - decay_at(updates, self.decay)
        for name, parameter in model.named_parameters():
            self.weights[name].lerp_(parameter.float(), share)

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the average, named as in "ema.encoder.0.feed_forward.inner.weight"."""
        return {PREFIX + name: tensor for name, tensor in self.weights.items()}

    def load(self, tensors: Mapping[str, Tensor], model: Transformer) -> None:
        """Set the average from named tensors of this model.

        Raise ValueError if one is missing or misshapen.
        """
        if self.decay:
            self.weights = {
                name: _required(tensors, PREFIX + name, parameter) for name, parameter in model.named_parameters()
            }


def moving_average_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the average under the names of the weights; empty if a checkpoint has none."""
    return {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items() if name.startswith(PREFIX)}


def _required(tensors: Mapping[str, Tensor], name: str, like: Tensor) -> Tensor:
    tensor = tensors.get(name)
    if tensor is None or tensor.shape != like.shape:
        found = "missing" if tensor is None else f"of shape {tuple(tensor.shape)}"
        raise ValueError(f"{name} is {found}, expected {tuple(like.shape)}")
    return placed_like(tensor, like)
