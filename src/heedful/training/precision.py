"""Mixed precision: automatic choice, type of activations, and the loss scaler for fp16.

Weights, their gradients and the optimizer state are always float32. bf16 and fp16 are the types of the activations:
every layer converts its weights when it uses them (model/mixed_precision_layers.py).
"""

from __future__ import annotations

import torch

from heedful.devices import has_native_bf16

AUTO = "auto"
_DTYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def automatic_precision(device: torch.device) -> tuple[str, str]:
    """Return the precision for this device, and the reason."""
    kind = "GPU" if device.type == "cuda" else "processor"
    if has_native_bf16(device):
        return "bf16", f"this {kind} supports bf16 natively"
    return "fp32", f"this {kind} does not support bf16 natively"


def activation_dtype(precision: str, device: torch.device) -> torch.dtype | None:
    """Return the data type of the activations in training; None means that of the weights."""
    return _DTYPES[automatic_precision(device)[0] if precision == AUTO else precision]


def make_scaler(device: torch.device, precision: str) -> torch.amp.GradScaler:
    """Return a loss scaler, which passes everything through unless `precision` is fp16."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
