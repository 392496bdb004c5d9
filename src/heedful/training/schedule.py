"""Schedules of learning rate (section 5.3) and dropout: pure functions of the step."""

from __future__ import annotations


def learning_rate(step: int, d_model: int, warmup_steps: int, factor: float = 1.0) -> float:
    """Return d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5) (Eq. 3) times a factor.

    Steps start at 1.
    """
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def cooldown(step: int, steps: int, cooldown_steps: int) -> float:
    """Return a factor that falls linearly from 1 to almost 0 over the last steps.

    Not in the paper.

    In a short run the rate of Eq. 3 is still high at the end; the cooldown lets the weights settle.
    """
    return min(1.0, (steps - step + 1) / cooldown_steps) if cooldown_steps else 1.0


def word_dropout_share(step: int, steps: int, warmup_steps: int, cooldown_steps: int) -> float:
    """Return the share of word dropout to apply at a step. Not in the paper.

    It ends when the cooldown begins, so that the model settles on whole sentences, as at inference.
    """
    return 0.0 if step > steps - cooldown_steps else dropout_share(step, warmup_steps)


def dropout_share(step: int, warmup_steps: int) -> float:
    """Return the share of dropout to apply at a step, rising linearly from 0 to 1.

    Not in the paper.

    A small model first learns which words are frequent and only then to attend to the source; dropout delays that.
    """
    return min(1.0, step / warmup_steps) if warmup_steps else 1.0
