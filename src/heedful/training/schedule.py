"""The learning rate (section 5.3), a pure function of the step."""

from __future__ import annotations


def learning_rate(step: int, d_model: int, warmup_steps: int, factor: float = 1.0) -> float:
    """Eq. 3: d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5), times a factor; steps count from 1."""
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def cooldown(step: int, steps: int, cooldown_steps: int) -> float:
    """Ours, not the paper's: a factor that falls from 1 to nearly 0 in a straight line over the last steps.

    Eq. 3 still moves far at the end of a short training; a rate that falls lets the weights settle where they are.
    """
    return min(1.0, (steps - step + 1) / cooldown_steps) if cooldown_steps else 1.0
