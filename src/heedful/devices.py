"""Where to compute."""

from __future__ import annotations

import torch

from heedful.errors import UsageError

NAMES = ("auto", "cpu", "cuda")


def pick_device(name: str) -> torch.device:
    """auto: the GPU where torch sees one."""
    if name not in NAMES:
        raise UsageError(f'The device must be one of {", ".join(NAMES)}, not "{name}".')
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UsageError("--device cuda was asked for, but torch sees no CUDA device here. Use --device cpu.")
    return torch.device("cuda" if available and name != "cpu" else "cpu")
