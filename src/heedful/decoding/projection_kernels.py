"""The matrix products of search, and the table that selects a kernel for each.

The kernel depends only on the processor and the shape, never on a timing at run time, so that the same machine
always gives the same translations. `benchmarks/gemm_kernels.py` measured the table.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, Literal, Protocol, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.errors import MachineError, UsageError
from heedful.model.layers import ACTIVATIONS

Precision = Literal["fp32", "bf16", "int8"]
PRECISIONS: tuple[str, ...] = get_args(Precision)

_TINY = 1e-12  # a row of zeros has this scale
_FEW = 16  # rows up to which MKL multiplies (Wxᵀ)ᵀ, not xWᵀ
# Number of rows from which oneDNN's packed weights are faster than MKL, by weight size, on AVX-512 processors that are
# not made by Intel: MKL uses only AVX2 kernels there.
_PACKED_FROM = ((400_000, 1), (100_000, 1 + _FEW), (0, 256))


class Projection(Protocol):
    """Multiply rows by a weight matrix and add its bias."""

    def __call__(self, x_RD: Tensor) -> Tensor: ...

    def relu(self, x_RD: Tensor) -> Tensor:
        """Return max(0, xWᵀ + b)."""


class PlainProjection:
    """Compute xWᵀ + b with public operators: the fallback and oracle of the other kernels."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self.bias_column = weight.new_zeros(1, 1) if bias is None else bias[:, None]
        self.few = _FEW if weight.dtype == torch.float32 and weight.device.type == "cpu" else 0

    def __call__(self, x_RD: Tensor) -> Tensor:
        if len(x_RD) > self.few:
            return F.linear(x_RD, self.weight, self.bias)
        return torch.addmm(self.bias_column, self.weight, x_RD.t()).t().contiguous()

    def relu(self, x_RD: Tensor) -> Tensor:
        return self(x_RD).relu_()


class PackedProjection(PlainProjection):
    """Compute xWᵀ + b with oneDNN's packed weights for at least `rows` rows.

    Fewer rows use the plain kernel. The two operators are private to torch. Inductor depends on them, and
    `packed_operators` handles their absence.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, rows: int, operators: tuple[Any, Any]) -> None:
        super().__init__(weight, bias)
        pack, self._linear = operators
        self.rows = rows
        self.packed = pack(weight.contiguous())

    def __call__(self, x_RD: Tensor) -> Tensor:
        if len(x_RD) < self.rows:
            return super().__call__(x_RD)
        product: Tensor = self._linear(x_RD, self.packed, self.bias, "none", [], "")
        return product

    def relu(self, x_RD: Tensor) -> Tensor:
        if len(x_RD) < self.rows:
            return super().relu(x_RD)
        product: Tensor = self._linear(x_RD, self.packed, self.bias, "relu", [], "")
        return product


class Int8Projection:
    """Compute xWᵀ + b with W in 8-bit and x in 7-bit integers, each with one scale per row.

    One scale for all of x, as in torch's dynamic quantization, would make a translation depend on the other sentences
    of its batch. x has 7 bits because products of 8-bit numbers overflow the 16-bit sums of processors without VNNI.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        scales = weight.abs().amax(dim=1).clamp(min=_TINY) / 127
        zero = torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():
            # torch announces their removal (has_int8); nothing that replaces them is faster than float32 yet.
            warnings.simplefilter("ignore", UserWarning)
            rounded = torch.quantize_per_channel(weight.float(), scales.double(), zero, axis=0, dtype=torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(rounded, None)
        self.bias = torch.zeros(1) if bias is None else bias.float()

    def __call__(self, x_RD: Tensor) -> Tensor:
        scale_R1 = x_RD.abs().amax(dim=1, keepdim=True).clamp_(min=_TINY)
        multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default
        product_RE = multiply((x_RD / scale_R1).float(), 1 / 63, 64, self.packed)  # 1 … 127 stand for -1 … 1
        return torch.addcmul(self.bias, product_RE, scale_R1.float()).to(x_RD.dtype)

    def relu(self, x_RD: Tensor) -> Tensor:
        return self(x_RD).relu_()


def activated(project: Projection, x_RD: Tensor, activation: str) -> Tensor:
    """Return activation(xWᵀ + b); some kernels compute relu in the same pass."""
    return project.relu(x_RD) if activation == "relu" else ACTIVATIONS[activation](project(x_RD))


MakeProjection = Callable[[Tensor, "Tensor | None"], Projection]


def projection(weight: Tensor, bias: Tensor | None) -> Projection:
    """Return the projection that the table assigns to this weight."""
    operators = packed_operators()
    if operators is None or weight.device.type != "cpu" or weight.dtype not in (torch.float32, torch.bfloat16):
        return PlainProjection(weight, bias)
    rows = packed_from(weight.numel(), weight.dtype, processor())
    return PlainProjection(weight, bias) if rows is None else PackedProjection(weight, bias, rows, operators)


def projections(precision: Precision, dtype: torch.dtype) -> tuple[MakeProjection, torch.dtype]:
    """Return the function that makes projections in this precision, and the state type."""
    if precision == "int8":
        return Int8Projection, dtype
    if precision == "bf16":
        dtype = torch.bfloat16
    return lambda weight, bias: projection(weight.to(dtype), None if bias is None else bias.to(dtype)), dtype


def packed_from(elements: int, dtype: torch.dtype, flags: frozenset[str]) -> int | None:
    """Return the number of rows from which packed weights are faster; None: never."""
    if dtype == torch.bfloat16:
        return 1 if "bf16" in flags else None
    if not {"avx512", "other maker"} <= flags:
        return None
    return next(rows for size, rows in _PACKED_FROM if elements >= size)


@functools.cache
def packed_operators() -> tuple[Any, Any] | None:
    """Return oneDNN's operators that pack a weight and multiply by it; None if missing."""
    try:
        return torch.ops.mkldnn._reorder_linear_weight, torch.ops.mkldnn._linear_pointwise.default
    except (AttributeError, RuntimeError):
        return None


@functools.cache
def processor() -> frozenset[str]:
    """Return the processor features of the table: avx512, bf16, "other maker" if not Intel."""
    found = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}  # older torch
    avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
    flags = {
        "avx512": avx512,
        "bf16": avx512 and bool(found.get("avx512_bf16") or found.get("amx_bf16")),
        "other maker": "intel" not in str(found.get("cpu_name", "")).lower(),
    }
    return frozenset(name for name, has in flags.items() if has)


def has_int8() -> bool:
    """Return whether this torch has quantized tensors, which a later release will remove."""
    has_operator = hasattr(torch.ops.quantized, "linear_with_input_q_dq_qweight_dq_output_fp32")
    return has_operator and hasattr(torch, "quantize_per_channel") and torch.backends.quantized.engine != "none"


def require(precision: str, device: torch.device) -> None:
    """Raise if this machine cannot compute in this precision."""
    if precision not in PRECISIONS:
        raise UsageError(f'precision must be one of {", ".join(PRECISIONS)}, not "{precision}".')
    if precision == "int8" and device.type != "cpu":
        raise UsageError(f"int8 is supported only on CPUs, but this model is on {device}. Use fp32, bf16 or the CPU.")
    if precision == "int8" and not has_int8():
        raise MachineError(
            "This build of torch does not support int8 matrix multiplication. Use fp32, or install another build."
        )
    if precision == "bf16" and device.type == "cpu" and "bf16" not in processor():
        raise MachineError(
            "This CPU has no bf16 instructions (AVX512_BF16 or AMX), so bf16 would be slower and less accurate than "
            "fp32. Use `--precision fp32` or `--precision int8`."
        )
