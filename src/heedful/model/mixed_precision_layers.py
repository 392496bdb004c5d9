"""Linear projection and layer normalisation that compute in the data type of their input.

This is all that mixed precision requires: weights stay float32 for the optimizer, activations are bf16, and autograd
converts the gradients back. With equal types the conversions do nothing.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    """xWᵀ + b in the data type of x."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))


class LayerNorm(nn.LayerNorm):
    """Layer normalisation in the type of x, with statistics in float32 (Ba et al. 2016)."""

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)
