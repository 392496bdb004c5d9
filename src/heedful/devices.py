"""Device selection, core count, and restoring torch's global state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from heedful.errors import UsageError

NAMES = ("auto", "cpu", "cuda", "mps")


def cores() -> int:
    """Return the number of cores this process may use: OMP_NUM_THREADS, or the CPU affinity."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pick_device(name: str) -> torch.device:
    """Return the torch device; "auto" is a CUDA GPU if torch finds one, otherwise the CPU."""
    if name not in NAMES:
        raise UsageError(f'The device must be one of {", ".join(NAMES)}, not "{name}".')
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UsageError("`--device cuda` was given, but torch finds no CUDA device. Use `--device cpu`.")
    if name == "mps":
        if not torch.backends.mps.is_available():
            raise UsageError("`--device mps` was given, but torch finds no Apple GPU. Use `--device cpu`.")
        return torch.device("mps")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def has_native_bf16(device: torch.device) -> bool:
    """Return whether the device multiplies bf16 matrices natively and torch may do so.

    On a CPU these are AVX512_BF16 or AMX. ATEN_CPU_CAPABILITY and ONEDNN_MAX_CPU_ISA can switch them off.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type != "cpu" or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    allowed = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper()
    if allowed not in ("", "ALL", "DEFAULT") and not any(isa in allowed for isa in ("BF16", "AMX", "AVX10")):
        return False
    # Older releases of torch do not tell; there, `training.precision = "bf16"` can still be set by hand.
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


@contextmanager
def preserved_torch_state() -> Iterator[None]:
    """Restore torch's thread count and global random state after a library call."""
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.set_num_threads(threads)
