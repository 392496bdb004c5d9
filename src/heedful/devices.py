"""Devices and threads: where torch computes, and leaving its settings as they were."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from heedful.errors import UsageError

NAMES = ("auto", "cpu", "cuda")


def cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has, or than OMP_NUM_THREADS allows."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pick_device(name: str) -> torch.device:
    """auto: the GPU where torch sees one."""
    if name not in NAMES:
        raise UsageError(f'The device must be one of {", ".join(NAMES)}, not "{name}".')
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UsageError("--device cuda was asked for, but torch sees no CUDA device here. Use --device cpu.")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


@contextmanager
def preserved_torch_state() -> Iterator[None]:
    """Restore torch's thread count and global random state: a library call leaves the process as it found it."""
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.set_num_threads(threads)
