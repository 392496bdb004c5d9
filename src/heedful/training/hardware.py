"""Measure this machine: available memory and training speed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import torch

from heedful.config import BOS, EOS, ModelConfig, TrainingConfig
from heedful.data.batches import Batch
from heedful.model.complexity import training_flops
from heedful.model.transformer import Transformer
from heedful.training.trainer import Trainer

_SECONDS = 2.0  # of measuring
_FIRST_ROWS = 4  # sentences of the first batch that is timed
# Control groups, version 2 and 1: controller, mount point, and the files with limit, usage and reclaimable memory.
_GROUPS = (
    ("", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_memory(device: torch.device, root: Path = Path("/")) -> int | None:
    """Return the available bytes, or None if the system does not report them.

    `root` is for tests.
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min([*_free(root), *_left_by_groups(root)], default=None)


def _free(root: Path) -> Iterator[int]:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _left_by_groups(root: Path) -> Iterator[int]:
    """Yield the memory left in each control group of this process (container, job)."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        for controller, top, limit, usage, cache in _GROUPS:
            if controller in controllers.split(","):
                own = Path(path.strip("/"))
                for group in (own, *own.parents):
                    yield from _left(root / top / group, limit, usage, cache)


def _left(group: Path, limit: str, usage: str, cache: str) -> Iterator[int]:
    most, used = _lines(group / limit), _lines(group / usage)
    if not (most and used and most[0].isdecimal()):  # "max": no limit
        return
    reclaimable = [int(line.split()[1]) for line in _lines(group / "memory.stat") if line.startswith(f"{cache} ")]
    yield int(most[0]) - int(used[0]) + sum(reclaimable)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def flops_per_second(
    config: ModelConfig, training: TrainingConfig, device: torch.device, length: int, seconds: float = _SECONDS
) -> float:
    """Measure FLOP/s of training passes on one layer of each stack and its vocabulary share.

    Batches grow while there is time, and the fastest counts. The optimizer is not measured.
    """
    depth = max(config.N, config.decoder_layers)
    part = replace(config, N=1, N_decoder=0, vocab_size=max(EOS + 1, config.vocab_size // depth))
    trainer = Trainer(Transformer(part).to(device), training)
    fastest, rows, began = 0.0, _FIRST_ROWS, perf_counter()
    trainer.try_batch(_batch(1, length))  # warmup: the first pass is slow
    while not fastest or perf_counter() - began < seconds:
        rows = max(1, min(rows, training.batch_tokens // length))
        before = perf_counter()
        trainer.try_batch(_batch(rows, length))
        elapsed = perf_counter() - before
        flops = training_flops(part, rows, length, length, checkpointed=training.checkpoint_activations)
        fastest = max(fastest, flops / elapsed)
        rows = rows * 2 if elapsed < seconds / 4 else rows
    return fastest


def _batch(rows: int, length: int) -> Batch:
    source, target = (torch.full((rows, length), token) for token in (EOS, BOS))
    return Batch(source, target, source, rows * length, tuple(range(rows)))
