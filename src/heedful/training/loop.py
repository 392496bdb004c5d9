"""The training loop: update, log, validate, save, until the steps or the patience are used up."""

from __future__ import annotations

import math
import signal
from dataclasses import asdict, astuple, fields
from time import monotonic

from heedful.config import Recipe
from heedful.data.batches import Batches
from heedful.errors import ModelError
from heedful.files import clear_unfinished
from heedful.storage.model_directory import Model, read_config, write_model
from heedful.storage.run_directory import RunDirectory, model_of_checkpoints
from heedful.training import checkpoints
from heedful.training.checkpoints import Progress
from heedful.training.display import Display, Report, Sample
from heedful.training.loss import perplexity
from heedful.training.run_log import RunLog
from heedful.training.signals import StopRequest
from heedful.training.step import StepResult, Updater
from heedful.training.validation import Scores, Validation


class Loop:
    """One sitting of a run. `progress` is all its state besides weights and moments.

    Of several processes each has a loop, and the same progress; only the first one's has a log, and writes.
    """

    def __init__(
        self,
        run: RunDirectory,
        recipe: Recipe,
        updater: Updater,
        batches: Batches,
        validation: Validation,
        progress: Progress,
        log: RunLog | None,
    ) -> None:
        self.run_directory = run
        self.recipe = recipe
        self.updater = updater
        self.processes = updater.processes
        self.batches = batches
        self.validation = validation
        self.progress = progress
        self.log = log
        self.display = Display(progress.step, recipe.training, is_shown=self.processes.is_main)
        self._saved_step = progress.step

    def train(self) -> int | None:
        """Trains to the end, or until a signal, whose number is returned. The run is saved either way."""
        began, before = monotonic(), self.progress.seconds
        try:
            with StopRequest(is_patient=self.processes.world_size > 1) as stop:
                number = 0
                while not is_finished(self.progress, self.recipe) and not number:
                    self._step()
                    self.progress.seconds = before + monotonic() - began
                    self._at_intervals()
                    number = self.processes.all_reduce_max(stop.signal_number or 0)
                if self._saved_step != self.progress.step:
                    self._save()
                if self.processes.is_main:
                    write_average(self.run_directory, self.recipe, self.progress.step)
                self.processes.barrier()
                return number or None
        finally:
            self.display.close()
            if self.log is not None:
                self.log.close()

    def _step(self) -> None:
        accumulate = self.recipe.training.accumulate
        first = self.progress.step * accumulate
        batches = [self.batches[number] for number in self.processes.shard(range(first, first + accumulate))]
        result = self.updater.update(self.progress.step + 1, batches)
        self.progress.step += 1
        self.progress.tokens += result.tokens
        self.progress.skipped += result.skipped
        self._latest = result
        if not result.skipped:
            add_to_window(self.progress, result)
        self.display.step(self.progress.step, result)
        if result.skipped:
            self.display.say(f"step {self.progress.step}: not finite, update skipped ({self.progress.skipped} so far)")

    def _at_intervals(self) -> None:
        step, training = self.progress.step, self.recipe.training
        last = step == training.steps
        if step % training.log_every == 0 or last:
            self._log_training()
        if step % training.validate_every == 0 or last:
            self._validate()
        if step % training.save_every == 0 or last:
            self._save()

    def _log_training(self) -> None:
        """Means over the steps since the last line, whichever sitting they were in."""
        window, self.progress.window = self.progress.window, {}
        if self.log is None:
            return
        finite = self._latest.gradient_norm if math.isfinite(self._latest.gradient_norm) else None
        nll = window["nll"] / window["tokens"] if window else None  # every update since then was skipped
        self.log.write(
            self.progress.step,
            "train",
            loss=window["loss"] / window["tokens"] if window else None,
            nll=nll,
            perplexity=perplexity(nll) if nll is not None else None,
            lr=self._latest.learning_rate,
            gradient_norm=finite,
            tokens_per_second=round(self.display.tokens_per_second(), 1),
            tokens=self.progress.tokens,
            epoch=round(self.progress.step * self.recipe.training.accumulate / self.batches.per_epoch, 3),
            seconds=round(self.progress.seconds, 3),
        )

    def _validate(self) -> None:
        with self.display.phase("validating") as report:
            scores, samples = self._scores(report)
            better = note_validation(self.progress, scores)
            if self.log is not None:
                self.log.write(self.progress.step, "valid", **{**asdict(scores), "seconds": round(scores.seconds, 3)})
                if better:
                    self._write_best(scores)
        self.display.say(
            f"step {self.progress.step:,}: validation loss {scores.loss:.3f}, perplexity {scores.perplexity:.2f}, "
            f"BLEU {scores.bleu:.2f}{' (best so far)' if better else ''}"
        )
        self.display.samples(samples)

    def _scores(self, report: Report) -> tuple[Scores, list[Sample]]:
        """Return the first process's scores in every process: patience must end in all of them at once."""
        if not self.processes.is_main:
            return Scores(*self.processes.broadcast(*[0.0] * len(fields(Scores)))), []
        training = self.recipe.training
        scores, samples = self.validation.run(
            self.updater.model, training.batch_tokens, training.label_smoothing, report
        )
        self.processes.broadcast(*astuple(scores))
        return scores, samples

    def _write_best(self, scores: Scores) -> None:
        history = {"steps": self.progress.step, "valid_bleu": scores.bleu, "valid_nll": scores.nll}
        model = Model(
            self.updater.model, self.validation.tokenizer, self.validation.text, self.recipe.decoding, history
        )
        write_model(self.run_directory.best, model)

    def _save(self) -> None:
        self._saved_step = self.progress.step
        if self.log is None:
            return
        with self.display.phase("saving"):
            # The line comes before the length is taken: a run that goes on from here has it in its log.
            self.log.write(self.progress.step, "save")
            self.progress.log_bytes = self.log.length()
            self.progress.loss_scale = self.updater.scaler.state_dict()
            checkpoints.save(self.run_directory, self.updater.model, self.updater.optimizer, self.progress)
            training = self.recipe.training
            checkpoints.prune(self.run_directory, training.keep, training.save_every, newest=self.progress.step)


def add_to_window(progress: Progress, result: StepResult) -> None:
    sums = {"loss": result.loss * result.tokens, "nll": result.nll * result.tokens, "tokens": result.tokens}
    progress.window = {name: progress.window.get(name, 0) + value for name, value in sums.items()}


def is_finished(progress: Progress, recipe: Recipe) -> bool:
    training = recipe.training
    out_of_patience = 0 < training.patience <= progress.validations_without_gain
    return progress.step >= training.steps or out_of_patience


def note_validation(progress: Progress, scores: Scores) -> bool:
    """Counts towards patience; says whether this is the best model so far.

    The best is the one with the highest BLEU (the lower loss where BLEU is equal). Patience is lost only while neither
    BLEU nor loss improves: early on BLEU stays at 0 while the loss falls, late it rises while the loss does too.
    """
    best = progress.best
    if not math.isfinite(scores.nll):
        progress.validations_without_gain += 1
        return False
    better = not best or (scores.bleu, -scores.nll) > (best["bleu"], -best["nll"])
    lower = progress.lowest_nll is None or scores.nll < progress.lowest_nll
    if better:
        progress.best = {"step": progress.step, "bleu": scores.bleu, "nll": scores.nll}
    if lower:
        progress.lowest_nll = scores.nll
    progress.validations_without_gain = 0 if better or lower else progress.validations_without_gain + 1
    return better


def write_average(run: RunDirectory, recipe: Recipe, newest: int) -> None:
    """RUN/model: the average of the last checkpoints (section 6.1)."""
    steps = checkpoints.steps_to_average(run, recipe.training.average, recipe.training.save_every, newest)
    clear_unfinished(run.path)
    write_model(run.model, model_of_checkpoints(run, steps))


def has_average(run: RunDirectory, newest: int) -> bool:
    """Whether RUN/model is that of this step, not one of an earlier stop: a run may be killed before it is replaced."""
    try:
        return bool(read_config(run.model)["history"]["steps"] == newest)
    except (ModelError, KeyError, TypeError):
        return False


def stopped_message(run: RunDirectory, step: int, number: int) -> str:
    name = signal.Signals(number).name
    return f"{name}: stopped at step {step:,} and saved in {run.path}. The same command continues it."
