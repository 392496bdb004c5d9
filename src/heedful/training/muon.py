"""The Muon optimizer: updates of matrices are orthogonalised. Not in the paper (`training.optimizer = "muon"`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

from heedful.training.adam import Adam

_MOMENTUM = 0.95
# The typical root mean square of Adam's updates, so that the same learning rates work (Liu et al. 2025).
_SIZE = 0.2
# Five rounds of X ← aX + (bXXᵀ + c(XXᵀ)²)X bring all singular values near 1 (Jordan et al. 2024).
_A, _B, _C = 3.4445, -4.7750, 2.0315
ROUNDS = 5


class Muon(Adam):
    """For a matrix with gradient G: M ← 0.95 M + 0.05 G, then

    W ← W - rate · 0.2 √(longer side) · orthogonal(0.95 M + 0.05 G).

    Adam's updates of a matrix are dominated by a few directions; these have the same size in every direction.
    Embeddings, biases and norms are updated by Adam.
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
        for shape, same in alike.items():  # stacked: one batched product for many small matrices
            gradients_NRC = torch.stack([g for n in same if (g := self.parameters[n].grad) is not None])
            for n, gradient_RC in zip(same, gradients_NRC, strict=True):
                self.m[n].lerp_(gradient_RC, 1 - _MOMENTUM)
            ahead_NRC = gradients_NRC.lerp(torch.stack([self.m[n] for n in same]), _MOMENTUM)
            moves_NRC = orthogonal(ahead_NRC) * (_SIZE * max(shape) ** 0.5)
            for n, move_RC in zip(same, moves_NRC, strict=True):
                self.parameters[n].sub_(move_RC, alpha=self.rate)


def orthogonal(matrices_NRC: Tensor) -> Tensor:
    """Return approximately U Vᵀ for each matrix U S Vᵀ."""
    tall = matrices_NRC.shape[1] > matrices_NRC.shape[2]
    x_NRC: Tensor = matrices_NRC.mT if tall else matrices_NRC
    x_NRC = x_NRC / (x_NRC.norm(dim=(1, 2), keepdim=True) + 1e-7)  # singular values at most 1
    for _ in range(ROUNDS):
        square_NRR = torch.bmm(x_NRC, x_NRC.mT)
        # baddbmm adds inside the product, which halves the time.
        factor_NRR = torch.baddbmm(square_NRR, square_NRR, square_NRR, beta=_B, alpha=_C)
        x_NRC = torch.baddbmm(x_NRC, factor_NRR, x_NRC, beta=_A)
    return x_NRC.mT if tall else x_NRC
