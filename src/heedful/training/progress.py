"""The progress of a run: the part of its state that is neither weights nor optimizer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from heedful.config import TrainingConfig

_COUNTS = ("step", "tokens", "skipped", "validations_without_gain", "log_bytes")


@dataclass(frozen=True)
class StepResult:
    """The outcome of one training step."""

    loss: float  # smoothed, per target token
    nll: float  # per target token
    tokens: int  # target tokens without padding
    learning_rate: float
    gradient_norm: float  # before clipping
    skipped: bool = False  # the gradient was not finite, and no update was made


@dataclass
class Progress:
    """The progress of a run, stored in every checkpoint (state.json).

    Batches, dropout and the learning rate are pure functions of the step, so they need no state of their own.
    """

    step: int = 0  # steps completed
    tokens: int = 0  # target tokens trained on, without padding
    seconds: float = 0.0  # training time, summed over all sessions
    skipped: int = 0  # steps without an update because the gradient was not finite
    best: dict[str, float] = field(default_factory=dict)  # step, bleu and nll of best/
    lowest_nll: float | None = None
    validations_without_gain: int = 0
    window: dict[str, float] = field(default_factory=dict)  # sums since the last log entry: loss, nll, tokens
    log_bytes: int = 0  # size of log.jsonl
    loss_scale: dict[str, Any] = field(default_factory=dict)  # state of the fp16 loss scaler, otherwise empty
    facts: dict[str, Any] = field(default_factory=dict)  # threads, versions and device of the last session

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if not 0 <= getattr(self, name) < 2**53:
                raise ValueError(f"{name} = {getattr(self, name)} is out of range")

    def record_step(self, result: StepResult) -> None:
        """Count a completed step and add its losses to the log window."""
        self.step += 1
        self.tokens += result.tokens
        self.skipped += result.skipped
        if not result.skipped:
            sums = {"loss": result.loss * result.tokens, "nll": result.nll * result.tokens, "tokens": result.tokens}
            self.window = {name: self.window.get(name, 0) + value for name, value in sums.items()}

    def record_validation(self, bleu: float, nll: float) -> bool:
        """Update early stopping with a validation; return whether the model is the best so far.

        The best model has the highest BLEU, and the lowest loss among equals. Patience decreases only if neither BLEU
        nor the loss improves: early in training BLEU stays at 0 while the loss falls; late in training BLEU may still
        rise while the loss rises too.
        """
        if not math.isfinite(nll):
            self.validations_without_gain += 1
            return False
        is_best = not self.best or (bleu, -nll) > (self.best["bleu"], -self.best["nll"])
        is_lowest = self.lowest_nll is None or nll < self.lowest_nll
        if is_best:
            self.best = {"step": self.step, "bleu": bleu, "nll": nll}
        if is_lowest:
            self.lowest_nll = nll
        self.validations_without_gain = 0 if is_best or is_lowest else self.validations_without_gain + 1
        return is_best

    def is_finished(self, training: TrainingConfig) -> bool:
        """Return whether all steps are done, or early stopping has ended the run."""
        out_of_patience = 0 < training.patience <= self.validations_without_gain
        return self.step >= training.steps or out_of_patience
