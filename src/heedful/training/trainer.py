"""The trainer: gradients, updates, validation and checkpoints (section 5)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import astuple, fields
from time import monotonic

import torch
from torch import Tensor

from heedful.config import TrainingConfig
from heedful.data.batches import Batch, Batches
from heedful.errors import NonFiniteError
from heedful.model.transformer import Transformer
from heedful.training import checkpoints
from heedful.training.display import Report, Sample
from heedful.training.distributed import ProcessGroup, communication_errors
from heedful.training.dropout_schedule import seed_dropout, set_dropout
from heedful.training.memory_errors import batch_memory_errors
from heedful.training.moving_average import MovingAverage
from heedful.training.optimizer import make_optimizers
from heedful.training.parallel import ParallelLoss
from heedful.training.precision import activation_dtype, make_scaler
from heedful.training.progress import Progress, StepResult
from heedful.training.run_writer import RunWriter
from heedful.training.schedule import cooldown, learning_rate
from heedful.training.sharding import gathered, gathered_in_main
from heedful.training.signals import StopRequest
from heedful.training.validation import Scores, Validation

_LISTED_LINES = 10  # line numbers in an error message


class Trainer:
    """Train a model.

    The state is what a checkpoint stores: the model, the optimizer, the loss scaler and the progress. Batches, dropout
    and the learning rate are functions of the step. With several processes, each has a trainer with the same state.
    """

    def __init__(
        self,
        model: Transformer,
        config: TrainingConfig,
        processes: ProcessGroup | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.model = model
        self.config = config
        self.processes = processes or ProcessGroup()
        self.progress = progress or Progress()
        device = self.processes.device if self.is_sharded else next(model.parameters()).device
        model.checkpoint_activations = config.checkpoint_activations
        model.embedding.training_dtype = activation_dtype(config.precision, device)
        self.parallel_loss = ParallelLoss(model, config, self.processes)
        self.device = device
        self.optimizers = make_optimizers(model, config.optimizer)
        self.scaler = make_scaler(self.device, config.precision)
        self.moving_average = MovingAverage(config.ema_decay)

    @property
    def is_sharded(self) -> bool:
        """Return whether each process holds only a part of the weights."""
        return self.config.shard and self.processes.world_size > 1

    def train(self, batches: Batches, validation: Validation, writer: RunWriter) -> int | None:
        """Train until the last step, early stopping or a signal, and save.

        Return the signal's number, if any.
        """
        started, earlier_seconds = monotonic(), self.progress.seconds
        saved_step = self.progress.step
        signal_number = 0
        with writer, StopRequest(is_patient=self.processes.world_size > 1) as stop:
            while not self.progress.is_finished(self.config) and not signal_number:
                result = self.train_step(self._next_batches(batches))
                self.progress.seconds = earlier_seconds + monotonic() - started
                writer.show_step(self.progress, result)
                if self._is_due(self.config.log_every):
                    self._log(result, batches, writer)
                if self._is_due(self.config.validate_every):
                    self._validate(validation, writer)
                if self._is_due(self.config.save_every):
                    self._save(writer)
                    saved_step = self.progress.step
                signal_number = self.processes.all_reduce_max(stop.signal_number or 0)
            if saved_step != self.progress.step:
                self._save(writer)
            with self.processes.main_first("writing the final model"):
                writer.save_final_model(self.progress.step, validation, is_interrupted=bool(signal_number))
        return signal_number or None

    def train_step(self, batches: Iterable[Batch]) -> StepResult:
        """Make one update with the gradient of the mean loss over all tokens of all batches.

        `batches` is the share of this process.
        """
        step, batches = self.progress.step + 1, list(batches)
        tokens = int(self.processes.all_reduce_sum(sum(batch.tokens for batch in batches))[0])
        rate = self._set_learning_rate(step)
        set_dropout(self.model, self.config, step)
        loss, nll = self.processes.all_reduce_sum(*self._accumulate_gradients(step, batches, tokens))
        for optimizer in self.optimizers:
            self.scaler.unscale_(optimizer)
        norm = self._clip_gradients()
        is_finite = math.isfinite(loss) and math.isfinite(norm)
        # With fp16 an infinite gradient means that the loss scale is too large; `scaler.update` lowers it.
        is_overflow = self.scaler.is_enabled() and math.isfinite(loss)
        if not is_finite and not is_overflow and self.config.non_finite != "skip":
            raise NonFiniteError(_non_finite_message(step, batches, loss, norm))
        if is_finite:
            for optimizer in self.optimizers:
                self.scaler.step(optimizer)
        self.scaler.update()
        self._zero_gradients()
        result = StepResult(loss, nll, tokens, rate, norm, skipped=not is_finite)
        self.progress.record_step(result)
        if is_finite:
            self.moving_average.update(self.model, self.progress.step - self.progress.skipped)
        return result

    def try_batch(self, batch: Batch) -> None:
        """Run forward and backward without an update, to check that a batch fits into memory."""
        set_dropout(self.model, self.config, self.config.dropout_warmup_steps)  # masks need memory too
        self._accumulate_gradients(0, [batch], batch.tokens)
        self._zero_gradients()

    def _next_batches(self, batches: Batches) -> list[Batch]:
        """Return this process's share of the next step's batches."""
        first = self.progress.step * self.config.accumulate
        return [batches[number] for number in self.processes.shard(range(first, first + self.config.accumulate))]

    def _set_learning_rate(self, step: int) -> float:
        config = self.config
        rate = learning_rate(step, self.model.config.d_model, config.warmup_steps, config.learning_rate)
        rate *= cooldown(step, config.steps, config.cooldown_steps)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
        return rate

    def _accumulate_gradients(self, step: int, batches: list[Batch], tokens: int) -> tuple[float, float]:
        """Accumulate gradients of the mean loss over `tokens`; return the smoothed loss and nll."""
        self.model.train()
        sums = []
        for number, batch in enumerate(batches):
            seed_dropout(self.config.seed, step, self.processes.rank + number * self.processes.world_size)
            is_last = number == len(batches) - 1
            with (
                self.parallel_loss.accumulation(is_last),
                batch_memory_errors(batch, step, self.config.checkpoint_activations),
            ):
                loss = self.parallel_loss(batch.to(self.device))
                scaled: Tensor = self.scaler.scale(self.parallel_loss.share(loss.smoothed, tokens))
                scaled.backward()  # type: ignore[no-untyped-call]
            sums.append(torch.stack([loss.smoothed.detach(), loss.nll]))
        # Read once per step: each read waits for the GPU.
        smoothed, nll = zip(*torch.stack(sums).tolist(), strict=True)
        return sum(one / tokens for one in smoothed), sum(one / tokens for one in nll)

    def _clip_gradients(self) -> float:
        """Clip the gradient to `training.clip_norm`, and return its norm before clipping."""
        max_norm = self.config.clip_norm or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm)
        with communication_errors():
            return float(gathered(norm))

    def _zero_gradients(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def _is_due(self, every: int) -> bool:
        return self.progress.step % every == 0 or self.progress.step == self.config.steps

    def _log(self, result: StepResult, batches: Batches, writer: RunWriter) -> None:
        epoch = self.progress.step * self.config.accumulate / batches.per_epoch
        writer.log_training(self.progress, result, epoch)
        self.progress.window = {}

    def _validate(self, validation: Validation, writer: RunWriter) -> None:
        model = self._whole_model()
        with writer.phase("validating") as report:
            scores, samples = self._scores(model, validation, report)
            is_best = self.progress.record_validation(scores.bleu, scores.nll)
            writer.log_validation(self.progress.step, scores)
            if is_best:
                writer.save_best(self.progress.step, scores, validation.bundle(model))
        writer.show_validation(self.progress.step, scores, is_best, samples)

    def _scores(self, model: Transformer, validation: Validation, report: Report) -> tuple[Scores, list[Sample]]:
        """Validate in the main process, and return its scores in every process."""
        scores = Scores(*[0.0] * len(fields(Scores)))
        samples: list[Sample] = []
        with self.processes.main_first("validating"):
            if self.processes.is_main:
                scores, samples = validation.run(model, self.config.batch_tokens, self.config.label_smoothing, report)
        return Scores(*self.processes.broadcast(*astuple(scores))), samples

    def _whole_model(self) -> Transformer:
        """Return the model; if it is sharded, a copy with all weights in the main process."""
        if not self.is_sharded:
            return self.model
        with communication_errors():
            weights = gathered_in_main(self.model.state_dict(), self.processes.is_main)
        if not self.processes.is_main:
            return self.model
        with torch.device("meta"):
            model = Transformer(self.model.config)
        model.load_state_dict(weights, assign=True)
        return model.to(self.device)

    def _save(self, writer: RunWriter) -> None:
        self.progress.loss_scale = self.scaler.state_dict()
        with communication_errors():
            state = checkpoints.state_of(self.model, self.optimizers, self.moving_average, self.processes.is_main)
        with self.processes.main_first("saving"):
            writer.save_checkpoint(state, self.progress)


def _non_finite_message(step: int, batches: list[Batch], loss: float, norm: float) -> str:
    what = f"gradient norm is {norm}" if math.isfinite(loss) else f"loss is {loss}"
    lines = [str(line) for batch in batches for line in batch.lines]
    listed = ", ".join(lines[:_LISTED_LINES]) + (" …" if len(lines) > _LISTED_LINES else "")
    return (
        f"Step {step}: the {what}. The weights were not changed. The update used lines {listed} "
        "of the training text. Check these lines. Then lower training.learning_rate, raise training.warmup_steps, or "
        'set training.non_finite = "skip", and train again with another `--out`.'
    )
