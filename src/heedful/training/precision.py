"""Mixed precision: autocast, and the loss scaler that fp16 needs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Return the context in which forward passes run with `training.precision`."""
    return nullcontext() if precision == "fp32" else torch.autocast(device.type, _DTYPES[precision])


def make_scaler(device: torch.device, precision: str) -> torch.amp.GradScaler:
    """Return a loss scaler, which passes everything through unless `precision` is fp16."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
