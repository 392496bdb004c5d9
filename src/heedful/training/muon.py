"""Muon: matrices move by an orthogonal matrix. Ours, not the paper's; `training.optimizer = "muon"`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

from heedful.training.adam import Adam

_MOMENTUM = 0.95
# As large as Adam's updates usually are, root mean square: the same learning rates serve (Liu et al. 2025).
_SIZE = 0.2
# Five times X ← aX + (bXXᵀ + c(XXᵀ)²)X brings singular values near 1, the small ones as well (Jordan et al. 2024).
_A, _B, _C = 3.4445, -4.7750, 2.0315
ROUNDS = 5


class Muon(Adam):
    """Of a matrix's gradient G: M ← 0.95 M + 0.05 G, then

    W ← W - rate · 0.2 √(the longer side) · orthogonal(0.95 M + 0.05 G).

    Adam moves a matrix mostly along the few directions that dominate its gradient; this moves it along all of them
    alike. For what is no matrix between two states (embeddings, biases, norms) it is Adam.
    """

    def __init__(self, parameters: Iterable[Tensor], matrices: Iterable[Tensor]) -> None:
        super().__init__(parameters)
        number = {id(parameter): n for n, parameter in enumerate(self.parameters)}
        self._matrices = {number[id(matrix)] for matrix in matrices}

    def _update(self, numbers: list[int]) -> None:
        super()._update([n for n in numbers if n not in self._matrices])
        alike: dict[torch.Size, list[int]] = defaultdict(list)
        for n in sorted(self._matrices.intersection(numbers)):
            alike[self.parameters[n].shape].append(n)
        for shape, same in alike.items():  # stacked: one product for many small matrices
            gradients_NRC = torch.stack([g for n in same if (g := self.parameters[n].grad) is not None])
            for n, gradient_RC in zip(same, gradients_NRC, strict=True):
                self.m[n].lerp_(gradient_RC, 1 - _MOMENTUM)
            ahead_NRC = gradients_NRC.lerp(torch.stack([self.m[n] for n in same]), _MOMENTUM)
            moves_NRC = orthogonal(ahead_NRC) * (_SIZE * max(shape) ** 0.5)
            for n, move_RC in zip(same, moves_NRC, strict=True):
                self.parameters[n].sub_(move_RC, alpha=self.rate)


def orthogonal(matrices_NRC: Tensor) -> Tensor:
    """For each matrix U S Vᵀ nearly U Vᵀ: the same directions, all of about the same length."""
    tall = matrices_NRC.shape[1] > matrices_NRC.shape[2]
    x_NRC: Tensor = matrices_NRC.mT if tall else matrices_NRC
    x_NRC = x_NRC / (x_NRC.norm(dim=(1, 2), keepdim=True) + 1e-7)  # singular values at most 1
    for _ in range(ROUNDS):
        square_NRR = torch.bmm(x_NRC, x_NRC.mT)
        # The sums inside the products: half the time of writing them out.
        factor_NRR = torch.baddbmm(square_NRR, square_NRR, square_NRR, beta=_B, alpha=_C)
        x_NRC = torch.baddbmm(x_NRC, factor_NRR, x_NRC, beta=_A)
    return x_NRC.mT if tall else x_NRC
