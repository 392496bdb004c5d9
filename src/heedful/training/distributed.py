"""Data parallel training: several processes, one per GPU, each with its share of every update's batches.

torchrun --nproc-per-node 4 -m heedful train RECIPE.toml

The gradients are summed over all processes, then each makes the same update. The weights equal those of one process
with the same `training.accumulate`, up to the order of summation. Only rank 0 reads text, validates, writes and prints.
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

_TIMEOUT = timedelta(hours=24)  # the others wait while rank 0 prepares the corpus or validates


class ProcessGroup:
    """The processes of a run, as seen by one of them. The default is a single process."""

    def __init__(self, rank: int = 0, world_size: int = 1, device: torch.device | None = None) -> None:
        self.rank, self.world_size = rank, world_size
        self.device = device or torch.device("cpu")

    @property
    def is_main(self) -> bool:
        """Return whether this is rank 0, which reads text, validates, writes and prints."""
        return self.rank == 0

    def shard(self, numbers: range) -> range:
        """Return the batches of an update that this process computes."""
        return numbers[self.rank :: self.world_size]

    def require_divisible(self, accumulate: int) -> None:
        """Raise ConfigError unless all processes get the same number of batches per step."""
        if accumulate % self.world_size:
            raise ConfigError(
                f"training.accumulate = {accumulate} batches cannot be split evenly over {self.world_size} processes. "
                f"Use a multiple of {self.world_size}, or start a different number of processes."
            )

    def all_reduce_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Sum each gradient over all processes, in place."""
        if self.world_size == 1:
            return
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        with _communication():
            dist.all_reduce(flat)
        start = 0
        for gradient in gradients:
            gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
            start += gradient.numel()

    def all_reduce_sum(self, *values: float) -> list[float]:
        """Return the sum of each value over all processes."""
        if self.world_size == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        with _communication():
            dist.all_reduce(total)
        return [float(value) for value in total]

    def all_reduce_max(self, value: int) -> int:
        """Return the largest value of all processes."""
        if self.world_size == 1:
            return value
        one = torch.tensor(value, device=self.device)
        with _communication():
            dist.all_reduce(one, dist.ReduceOp.MAX)
        return int(one)

    def broadcast(self, *values: float) -> list[float]:
        """Return the values of rank 0."""
        if self.world_size == 1:
            return list(values)
        received = torch.tensor(values, dtype=torch.float64, device=self.device)
        with _communication():
            dist.broadcast(received, 0)
        return [float(value) for value in received]

    def barrier(self) -> None:
        """Wait until all processes have called this."""
        self.all_reduce_max(0)


def is_main_process() -> bool:
    """Return whether this is rank 0, or the only process."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def process_group(device: torch.device) -> Iterator[ProcessGroup]:
    """Join the processes that torchrun has started, or use this one alone."""
    given = {
        name: os.environ.get(name, "") for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    }
    world_size = int(given["WORLD_SIZE"]) if given["WORLD_SIZE"].isdecimal() else 1
    if world_size <= 1:
        yield ProcessGroup(device=device)
        return
    if missing := [name for name, value in given.items() if not value]:
        raise UsageError(
            f"WORLD_SIZE is {world_size}, but these variables are not set: {', '.join(missing)}. "
            "Start the processes with torchrun, or unset WORLD_SIZE."
        )
    if device.type == "cuda":
        device = torch.device("cuda", int(given["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    with _communication():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=_TIMEOUT)
    try:
        yield ProcessGroup(dist.get_rank(), world_size, device)
    finally:
        dist.destroy_process_group()


@contextmanager
def _communication() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise MachineError(
            f"Lost the connection to another process of this run ({reason}). "
            "The checkpoints are intact: run the same command to continue."
        ) from error
