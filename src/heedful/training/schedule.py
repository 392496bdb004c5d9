"""The learning rate (section 5.3), a pure function of the step."""

from __future__ import annotations


def learning_rate(step: int, d_model: int, warmup_steps: int, factor: float = 1.0) -> float:
    """Eq. 3: d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5), times a factor; steps count from 1."""
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))
