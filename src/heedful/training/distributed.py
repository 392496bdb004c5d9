"""Distributed training: one process per GPU, each with a share of every update's batches.

torchrun --nproc-per-node 4 -m heedful train RECIPE.toml

Each process computes its batches, the gradients are averaged (training/parallel.py), and all make the same update. The
weights equal those of one process with the same `training.accumulate`, up to the order of summation. Only rank 0 reads
text, validates, writes and prints.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from heedful.errors import ConfigError, MachineError, UsageError
from heedful.training.main_first import Heartbeat, wait_for_main

TIMEOUT = timedelta(minutes=10)  # of a collective; no process computes for that long between two of them
# The words of gloo, NCCL and the store for a peer that is gone. They raise plain RuntimeErrors.
_COMMUNICATION = re.compile(r"gloo|nccl|connection|socket|timed out|timeout|store|peer", re.IGNORECASE)


class ProcessGroup:
    """The processes of a run, as seen by one of them. The default is a single process."""

    def __init__(
        self, rank: int = 0, world_size: int = 1, device: torch.device | None = None, store: Store | None = None
    ) -> None:
        """Describe one process; `store` is where the processes meet, and one alone needs none."""
        self.rank, self.world_size = rank, world_size
        self.device = device or torch.device("cpu")
        self._store = store
        self._works = 0  # of the main process that the others have waited for

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

    @contextmanager
    def main_first(self, work: str) -> Iterator[None]:
        """Run the block in the main process while the others wait, then in the others.

        `work` names it for error messages, as in "validating". It may take longer than the timeout of a collective.
        """
        if self._store is None:
            yield
            return
        self._works += 1
        key = f"main/{self._works}"
        if self.is_main:
            with Heartbeat(self._store, key):
                yield
        else:
            wait_for_main(self._store, key, work, TIMEOUT.total_seconds())
            yield

    def all_reduce_sum(self, *values: float) -> list[float]:
        """Return the sum of each value over all processes."""
        if self.world_size == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64)
        with communication_errors():
            dist.all_reduce(total)
        return [float(value) for value in total]

    def all_reduce_max(self, value: int) -> int:
        """Return the largest value of all processes."""
        if self.world_size == 1:
            return value
        one = torch.tensor(value)
        with communication_errors():
            dist.all_reduce(one, dist.ReduceOp.MAX)
        return int(one)

    def broadcast(self, *values: float) -> list[float]:
        """Return the values of rank 0."""
        if self.world_size == 1:
            return list(values)
        received = torch.tensor(values, dtype=torch.float64)
        with communication_errors():
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
    if device.type == "mps":
        raise UsageError("Several processes cannot share an Apple GPU. Start one process, or use `--device cpu`.")
    if device.type == "cuda":
        device = torch.device("cuda", int(given["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    with communication_errors():
        store, rank, world_size = next(rendezvous("env://", timeout=TIMEOUT))
        # Scalars stay on the CPU, so that exchanging them does not wait for the GPU.
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=TIMEOUT)
    try:
        yield ProcessGroup(rank, world_size, device, PrefixStore("heedful", store))
    finally:
        dist.destroy_process_group()


@contextmanager
def communication_errors() -> Iterator[None]:
    """Turn the errors of a lost connection into a MachineError."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        if not (isinstance(error, dist.DistError) or _COMMUNICATION.search(reason)):
            raise
        raise MachineError(
            f"Lost the connection to another process of this run ({reason}). "
            "The checkpoints are intact: run the same command to continue."
        ) from error
