"""The Muon optimizer: updates of matrices are orthogonalised.

Not in the paper (`training.optimizer = "muon"`).

The update is that of `torch.optim.Muon` with weight_decay=0 and adjust_lr_fn="match_rms_adamw", the oracle in the
tests. Here matrices of the same shape are orthogonalised together, which is faster for small models
(benchmarks/muon_speed.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from heedful.training.sharding import gathered_rows, local, placed_like

_MOMENTUM = 0.95
# The typical root mean square of Adam's updates, so that the same learning rates work (Liu et al. 2025).
_UPDATE_RMS = 0.2
# Five rounds of X ← aX + (bXXᵀ + c(XXᵀ)²)X bring all singular values near 1 (Jordan et al. 2024).
_A, _B, _C = 3.4445, -4.7750, 2.0315
ROUNDS = 5


class Muon(torch.optim.Optimizer):
    """Muon: momentum whose update of a matrix is orthogonalised.

    For a matrix with gradient G: M ← 0.95 M + 0.05 G, then

    W ← W - lr · 0.2 √(longer side) · orthogonalize(0.95 M + 0.05 G).

    A few directions dominate Adam's updates of a matrix; Muon's updates have the same size in every direction.
    """

    def __init__(self, matrices: Iterable[Tensor], lr: float = 1e-3, dtype: torch.dtype = torch.float32) -> None:
        """Create the optimizer; updates are orthogonalised in `dtype`."""
        super().__init__(matrices, {"lr": lr})
        self._dtype = dtype

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            same_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    same_shape[matrix.shape].append(matrix)
            for matrices in same_shape.values():
                self._update(matrices, group["lr"])

    def _update(self, matrices: list[Tensor], lr: float) -> None:
        """Update matrices of one shape, stacked: one batched product for many small matrices."""
        gradients_NRC = torch.stack([local(matrix.grad) for matrix in matrices if matrix.grad is not None])
        buffers = [local(self._momentum_buffer(matrix)) for matrix in matrices]
        for buffer, gradient_RC in zip(buffers, gradients_NRC, strict=True):
            buffer.lerp_(gradient_RC, 1 - _MOMENTUM)
        ahead_NRC = gradients_NRC.lerp(torch.stack(buffers), _MOMENTUM).to(self._dtype)
        # Sharded matrices are gathered: their rows must be orthogonalised together.
        updates_NRC = orthogonalize(gathered_rows(ahead_NRC, matrices[0]))
        scale = _UPDATE_RMS * max(matrices[0].shape) ** 0.5
        for matrix, update_RC in zip(matrices, updates_NRC, strict=True):
            part_RC = local(placed_like(update_RC.to(matrix.dtype), matrix))
            local(matrix).sub_(part_RC, alpha=lr * scale)

    def _momentum_buffer(self, matrix: Tensor) -> Tensor:
        state: dict[str, Any] = self.state[matrix]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        buffer: Tensor = state["momentum_buffer"]
        return buffer


def orthogonalize(matrices_NRC: Tensor) -> Tensor:
    """Return approximately U Vᵀ for each matrix U S Vᵀ."""
    is_tall = matrices_NRC.shape[1] > matrices_NRC.shape[2]
    x_NRC: Tensor = matrices_NRC.mT if is_tall else matrices_NRC
    x_NRC = x_NRC / (x_NRC.norm(dim=(1, 2), keepdim=True) + 1e-7)  # singular values at most 1
    for _ in range(ROUNDS):
        square_NRR = torch.bmm(x_NRC, x_NRC.mT)
        # baddbmm adds inside the product, which halves the time.
        factor_NRR = torch.baddbmm(square_NRR, square_NRR, square_NRR, beta=_B, alpha=_C)
        x_NRC = torch.baddbmm(x_NRC, factor_NRR, x_NRC, beta=_A)
    return x_NRC.mT if is_tall else x_NRC
