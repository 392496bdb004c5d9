"""Everything a trainer writes into its run directory and shows on the terminal."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import asdict, replace

from heedful.config import Recipe
from heedful.storage.model_directory import Model, write_model
from heedful.storage.run_directory import RunDirectory
from heedful.training import checkpoints, final_model
from heedful.training.display import Display, Report, Sample
from heedful.training.loss import perplexity
from heedful.training.progress import Progress, StepResult
from heedful.training.run_log import RunLog
from heedful.training.validation import Scores, Validation


class RunWriter:
    """Write the log, the checkpoints and the models of a run, and show its progress.

    Only the main process has a log; without one, nothing is written or shown.
    """

    def __init__(self, run: RunDirectory, recipe: Recipe, log: RunLog | None, first_step: int) -> None:
        self.run = run
        self.recipe = recipe
        self.log = log
        self.display = Display(first_step, recipe.training, is_shown=log is not None)

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.display.close()
        if self.log is not None:
            self.log.close()

    def phase(self, name: str) -> AbstractContextManager[Report]:
        """Show a pause in training, such as a validation."""
        return self.display.phase(name)

    def show_step(self, progress: Progress, result: StepResult) -> None:
        """Update the progress bar."""
        self.display.step(progress.step, result)
        if result.skipped:
            self.display.print(
                f"step {progress.step:,}: loss or gradient not finite; update skipped ({progress.skipped:,} so far)"
            )

    def log_training(self, progress: Progress, result: StepResult, epoch: float) -> None:
        """Log the mean losses since the last entry, even if a resumed session wrote that entry."""
        if self.log is None:
            return
        window = progress.window  # empty if every update since the last entry was skipped
        nll = window["nll"] / window["tokens"] if window else None
        self.log.write(
            progress.step,
            "train",
            loss=window["loss"] / window["tokens"] if window else None,
            nll=nll,
            perplexity=perplexity(nll) if nll is not None else None,
            lr=result.learning_rate,
            gradient_norm=result.gradient_norm if math.isfinite(result.gradient_norm) else None,
            tokens_per_second=round(self.display.tokens_per_second(), 1),
            tokens=progress.tokens,
            epoch=round(epoch, 3),
            seconds=round(progress.seconds, 3),
        )

    def log_validation(self, step: int, scores: Scores) -> None:
        """Log the scores of a validation."""
        if self.log is not None:
            self.log.write(step, "valid", **{**asdict(scores), "seconds": round(scores.seconds, 3)})

    def show_validation(self, step: int, scores: Scores, is_best: bool, samples: list[Sample]) -> None:
        """Print the scores of a validation and a few translations."""
        self.display.print(
            f"step {step:,}: validation loss {scores.loss:.3f}, perplexity {scores.perplexity:.2f}, "
            f"BLEU {scores.bleu:.2f}{' (best so far)' if is_best else ''}"
        )
        self.display.samples(samples)

    def save_best(self, step: int, scores: Scores, model: Model) -> None:
        """Write the model with the best validation scores so far to RUN/best."""
        if self.log is not None:
            precision = self.recipe.training.precision
            history = {"steps": step, "precision": precision, "valid_bleu": scores.bleu, "valid_nll": scores.nll}
            write_model(self.run.best, replace(model, history=history))

    def save_checkpoint(self, state: checkpoints.State, progress: Progress) -> None:
        """Write a checkpoint of the current step, and prune old checkpoints."""
        if self.log is None:
            return
        with self.display.phase("saving"):
            # Log first, then take the size: a run that resumes from this checkpoint has the entry in its log.
            self.log.write(progress.step, "save")
            progress.log_bytes = self.log.length()
            checkpoints.write(self.run, state, progress)
            training = self.recipe.training
            checkpoints.prune(self.run, training.keep, training.save_every, newest=progress.step)

    def save_final_model(self, step: int, validation: Validation, is_interrupted: bool) -> None:
        """Write RUN/model.

        An interrupted run skips the choices: it must end at once, and will be resumed.
        """
        if self.log is None:
            return
        if is_interrupted:
            final_model.write_final_model(self.run, self.recipe, step)
            return
        with self.display.phase("selecting the final model"):
            final_model.select_final_model(self.run, self.recipe, step, validation, self.display.print)
