"""Adam (section 5.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

BETA_1, BETA_2, EPSILON = 0.9, 0.98, 1e-9


class Adam:
    """For a gradient g at update t: m ← β₁ m + (1 - β₁) g and v ← β₂ v + (1 - β₂) g², then

    θ ← θ - rate · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε).

    The fused kernel gives the same bits as torch.optim.Adam(fused=True). That class would import torch's compiler,
    which takes longer than everything else before the first step.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = list(parameters)
        self.rate = 0.0  # set at each step
        self.updates = 0
        self.m = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.v = [torch.zeros_like(parameter) for parameter in self.parameters]

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Return what torch.amp.GradScaler needs of an optimizer."""
        return [{"params": self.parameters}]

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        self.updates += 1
        self._update([n for n, parameter in enumerate(self.parameters) if parameter.grad is not None])

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def _update(self, numbers: list[int]) -> None:
        """Update the parameters with these indices, all of which have gradients."""
        parameters = [self.parameters[n] for n in numbers]
        count = torch.tensor(float(self.updates), device=parameters[0].device)
        torch._fused_adam_(
            parameters,
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [self.m[n] for n in numbers],
            [self.v[n] for n in numbers],
            [],
            [count] * len(parameters),
            lr=self.rate,
            beta1=BETA_1,
            beta2=BETA_2,
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )
