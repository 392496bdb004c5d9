"""One update: gradients of one or more batches, checked, then Adam (section 5.3)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.config import PAD, TrainingConfig
from heedful.data.batches import Batch
from heedful.errors import MachineError, NonFiniteError, is_out_of_memory
from heedful.model.attention import MultiHeadAttention
from heedful.model.embeddings import Embedding
from heedful.model.layers import AddAndNorm
from heedful.model.transformer import Transformer
from heedful.training.adam import Adam
from heedful.training.distributed import ProcessGroup
from heedful.training.loss import batch_loss
from heedful.training.muon import Muon
from heedful.training.schedule import cooldown, dropout_share, learning_rate, word_dropout_share

_DROPOUT = 3  # keeps this random stream apart from those of data/batches.py
_LISTED = 10  # lines named in a message


@dataclass(frozen=True)
class StepResult:
    loss: float  # smoothed, a target token
    nll: float  # a target token
    tokens: int  # real target tokens
    learning_rate: float
    gradient_norm: float
    skipped: bool = False  # the gradient was not finite, and the weights were left alone


def make_optimizer(model: Transformer, name: str) -> Adam:
    if name == "adam":
        return Adam(model.parameters())
    matrices = [module.weight for module in model.modules() if isinstance(module, torch.nn.Linear)]
    return Muon(model.parameters(), matrices)


def seed_dropout(seed: int, step: int, part: int) -> None:
    """Dropout is a function of (seed, step, part): a resumed run draws what the first one would have drawn."""
    mixed = hashlib.blake2b(repr((_DROPOUT, seed, step, part)).encode(), digest_size=7)
    torch.manual_seed(int.from_bytes(mixed.digest()))


def scale_dropout(model: Transformer, share: float) -> None:
    """Dropout of numbers, not of words, at a share of what the model's configuration has."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.dropout = share * model.config.attention_dropout
        elif isinstance(module, AddAndNorm | Embedding):
            module.dropout = share * model.config.dropout


class Updater:
    """Model, optimizer and, for fp16, the scale of the loss."""

    def __init__(self, model: Transformer, config: TrainingConfig, processes: ProcessGroup | None = None) -> None:
        self.model = model
        self.config = config
        self.processes = processes or ProcessGroup()
        model.checkpoint_activations = config.checkpoint_activations
        self.optimizer = make_optimizer(model, config.optimizer)
        self.device = next(model.parameters()).device
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=config.precision == "fp16")

    def update(self, step: int, batches: Iterable[Batch]) -> StepResult:
        """Update `step` (1, 2, …): the gradient of the mean over all tokens of all the batches.

        `batches` are this process's share of them.
        """
        batches = list(batches)
        tokens = int(self.processes.all_reduce_sum(sum(batch.tokens for batch in batches))[0])
        self.optimizer.rate = rate = self._rate(step)
        self._set_dropout(step)
        loss, nll = self.processes.all_reduce_sum(*self._accumulate(step, batches, tokens))
        self.processes.all_reduce_gradients(self.model.parameters())
        self.scaler.unscale_(self.optimizer)  # type: ignore[arg-type]  # it needs param_groups and step alone
        norm = self._gradient_norm()
        finite = math.isfinite(loss) and math.isfinite(norm)
        # With fp16 an infinite gradient says that the scale is too large; `scaler.update` lowers it.
        if not finite and not (self.scaler.is_enabled() and math.isfinite(loss)):
            self._refuse_or_skip(step, batches, loss, norm)
        if finite:
            self.scaler.step(self.optimizer)  # type: ignore[arg-type]
        self.scaler.update()
        self.optimizer.zero_grad()
        return StepResult(loss, nll, tokens, rate, norm, skipped=not finite)

    def try_batch(self, batch: Batch) -> None:
        """Forward and backward without an update, to see that the largest batch fits into memory."""
        self._set_dropout(self.config.dropout_warmup_steps)  # its masks take memory too
        self._accumulate(0, [batch], batch.tokens)
        self.optimizer.zero_grad()

    def _rate(self, step: int) -> float:
        config = self.config
        rate = learning_rate(step, self.model.config.d_model, config.warmup_steps, config.learning_rate)
        return rate * cooldown(step, config.steps, config.cooldown_steps)

    def _set_dropout(self, step: int) -> None:
        config, model = self.config, self.model
        scale_dropout(model, dropout_share(step, config.dropout_warmup_steps))
        words = word_dropout_share(step, config.steps, config.dropout_warmup_steps, config.cooldown_steps)
        model.embedding.word_dropout = words * model.config.word_dropout

    def _accumulate(self, step: int, batches: list[Batch], tokens: int) -> tuple[float, float]:
        self.model.train()
        loss = nll = 0.0
        for number, batch in enumerate(batches):
            seed_dropout(self.config.seed, step, self.processes.rank + number * self.processes.world_size)
            with self._memory_errors(step, batch):
                with self._precision():
                    sums = batch_loss(self.model, batch.to(self.device), self.config.label_smoothing)
                scaled: Tensor = self.scaler.scale(sums.smoothed / tokens)
                scaled.backward()  # type: ignore[no-untyped-call]
            loss += sums.smoothed.item() / tokens
            nll += sums.nll.item() / tokens
        return loss, nll

    def _precision(self) -> AbstractContextManager[object]:
        if self.config.precision == "fp32":
            return nullcontext()
        dtype = torch.bfloat16 if self.config.precision == "bf16" else torch.float16
        return torch.autocast(self.device.type, dtype)

    def _gradient_norm(self) -> float:
        """The norm of the whole gradient, before it is clipped."""
        largest = self.config.clip_norm or math.inf
        return float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), largest))

    def _refuse_or_skip(self, step: int, batches: list[Batch], loss: float, norm: float) -> None:
        if self.config.non_finite == "skip":
            return
        what = f"loss is {loss}" if not math.isfinite(loss) else f"gradient's norm is {norm}"
        lines = [str(line) for batch in batches for line in batch.lines]
        listed = ", ".join(lines[:_LISTED]) + (" …" if len(lines) > _LISTED else "")
        raise NonFiniteError(
            f"Step {step}: the {what}. The weights were not changed. The batch has the pairs of lines {listed} "
            "of the training text. Look at them; "
            "lower training.learning_rate, raise training.warmup_steps, or set training.non_finite = "
            '"skip", in a new --out.'
        )

    @contextmanager
    def _memory_errors(self, step: int, batch: Batch) -> Iterator[None]:
        """Where memory runs out: which sentence the batch owes its size to, and what to do."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            lengths = (batch.source_BS != PAD).sum(dim=1) + (batch.target_out_BT != PAD).sum(dim=1)
            where = f"at step {step}" if step else "before the first step, with the largest batch"
            raise MachineError(
                f"Out of memory {where}: {len(batch.lines)} pairs, padded to {batch.source_BS.shape[1]} source and "
                f"{batch.target_out_BT.shape[1]} target tokens. The longest is line "
                f"{batch.lines[int(lengths.argmax())]} of the training text. "
                f"{memory_advice(self.config.checkpoint_activations)}"
            ) from error


def memory_advice(checkpoint_activations: bool) -> str:
    """What to do where memory runs out, given whether activations are checkpointed already."""
    first = "Lower" if checkpoint_activations else "Set training.checkpoint_activations = true, or lower"
    return (
        f"What was saved is untouched. {first} training.batch_tokens (and raise training.accumulate to keep the "
        "update's size), data.max_length or the model's size, and train into a new --out."
    )
