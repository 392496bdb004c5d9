"""Device selection, core count, and restoring torch's global state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from heedful.errors import UsageError

NAMES = ("auto", "cpu", "cuda")


def cores() -> int:
    """Return the number of cores this process may use: OMP_NUM_THREADS, or the CPU affinity."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pick_device(name: str) -> torch.device:
    """Return the torch device; "auto" is a GPU if torch finds one, otherwise the CPU."""
    if name not in NAMES:
        raise UsageError(f'The device must be one of {", ".join(NAMES)}, not "{name}".')
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UsageError("--device cuda was given, but torch finds no CUDA device. Use --device cpu.")
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
