"""The learning rate (section 5.3) and what else changes in the course of training: pure functions of the step."""

from __future__ import annotations


def learning_rate(step: int, d_model: int, warmup_steps: int, factor: float = 1.0) -> float:
    """Eq. 3: d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5), times a factor; steps count from 1."""
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def cooldown(step: int, steps: int, cooldown_steps: int) -> float:
    """Ours, not the paper's: a factor that falls from 1 to nearly 0 in a straight line over the last steps.

    Eq. 3 still moves far at the end of a short training; a rate that falls lets the weights settle where they are.
    """
    return min(1.0, (steps - step + 1) / cooldown_steps) if cooldown_steps else 1.0


def word_dropout_share(step: int, steps: int, warmup_steps: int, cooldown_steps: int) -> float:
    """Ours, not the paper's: words that are left out teach a model not to rely on any; in the cool-down, when it
    settles, it reads whole sentences again, as in use.
    """
    return 0.0 if step > steps - cooldown_steps else dropout_share(step, warmup_steps)


def dropout_share(step: int, warmup_steps: int) -> float:
    """Ours, not the paper's: how much of its dropout a step has, rising from 0 to 1 in a straight line.

    A small model first learns which words are likely, and only then to look at the source; noise delays that most.
    """
    return min(1.0, step / warmup_steps) if warmup_steps else 1.0
