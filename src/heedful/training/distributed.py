"""Several processes on one run, one a GPU: each computes its share of every update's batches. torchrun starts them:

torchrun --nproc-per-node 4 -m heedful train RECIPE.toml

They add up their gradients, and then each makes the same update: at every step all have the same weights, those of one
process with the same `training.accumulate`, added up in another order. The first one alone reads the text, validates,
writes and speaks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from heedful.errors import ConfigError, MachineError, UsageError

_PATIENCE = timedelta(hours=24)  # the others wait while the first one prepares a corpus, or validates


class ProcessGroup:
    """All that work on a run, seen from one of them. By default there is no other."""

    def __init__(self, rank: int = 0, count: int = 1, device: torch.device | None = None) -> None:
        self.rank, self.count = rank, count
        self.device = device or torch.device("cpu")

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share(self, numbers: range) -> range:
        """Which of an update's batches are computed here."""
        return numbers[self.rank :: self.count]

    def require_shares(self, accumulate: int) -> None:
        if accumulate % self.count:
            raise ConfigError(
                f"training.accumulate = {accumulate} batches of an update cannot be shared by {self.count} processes. "
                f"Make it a multiple of {self.count}, or start another number of processes."
            )

    def add_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Each gradient becomes its sum over all processes."""
        if self.count == 1:
            return
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        with _communication():
            dist.all_reduce(flat)
        start = 0
        for gradient in gradients:
            gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
            start += gradient.numel()

    def added(self, *values: float) -> list[float]:
        """Each value's sum over all processes."""
        if self.count == 1:
            return list(values)
        together = torch.tensor(values, dtype=torch.float64, device=self.device)
        with _communication():
            dist.all_reduce(together)
        return [float(value) for value in together]

    def largest(self, value: int) -> int:
        """The same for all, whichever of them has it."""
        if self.count == 1:
            return value
        one = torch.tensor(value, device=self.device)
        with _communication():
            dist.all_reduce(one, dist.ReduceOp.MAX)
        return int(one)

    def as_first(self, *values: float) -> list[float]:
        """The first process's values."""
        if self.count == 1:
            return list(values)
        its = torch.tensor(values, dtype=torch.float64, device=self.device)
        with _communication():
            dist.broadcast(its, 0)
        return [float(value) for value in its]

    def wait(self) -> None:
        """Until all have come here."""
        self.largest(0)


def speaks() -> bool:
    """Whether this process is the first, or the only one, of those that torchrun has started."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def process_group(device: torch.device) -> Iterator[ProcessGroup]:
    """The processes that torchrun has started, or this one alone."""
    given = {
        name: os.environ.get(name, "") for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    }
    count = int(given["WORLD_SIZE"]) if given["WORLD_SIZE"].isdecimal() else 1
    if count <= 1:
        yield ProcessGroup(device=device)
        return
    if missing := [name for name, value in given.items() if not value]:
        raise UsageError(
            f"WORLD_SIZE is {count}, but {', '.join(missing)} not set: start the processes with torchrun, or unset it."
        )
    if device.type == "cuda":
        device = torch.device("cuda", int(given["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    with _communication():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield ProcessGroup(dist.get_rank(), count, device)
    finally:
        dist.destroy_process_group()


@contextmanager
def _communication() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise MachineError(
            f"Another process of this run has ended, or cannot be reached ({reason}). "
            "What was saved is untouched; the same command continues it."
        ) from error
