"""Every kernel computes xWᵀ + b, and the table alone decides which one does."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heedful.decoding import projection_kernels
from heedful.decoding.projection_kernels import (
    Int8Projection,
    PackedProjection,
    PlainProjection,
    packed_from,
    packed_operators,
    projection,
    require,
)
from heedful.errors import MachineError, UsageError

ZEN = frozenset({"avx512", "bf16", "other maker"})
needs_packing = pytest.mark.skipif(packed_operators() is None, reason="torch without oneDNN")


@pytest.fixture
def draw() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def normal(draw: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=draw)


@pytest.mark.parametrize("rows", [1, 3, 16, 17, 70])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_plain_products(draw: torch.Generator, rows: int, dtype: torch.dtype) -> None:
    weight, bias, x = normal(draw, 24, 64), normal(draw, 24), normal(draw, rows, 64)
    found = PlainProjection(weight.to(dtype), bias.to(dtype))(x.to(dtype))
    assert found.dtype == dtype
    assert found.is_contiguous()
    torch.testing.assert_close(
        found.float(), x @ weight.T + bias, rtol=0.02, atol=0.3 if dtype == torch.bfloat16 else 1e-4
    )


@needs_packing
@pytest.mark.parametrize("rows", [1, 7, 8, 70])
@pytest.mark.parametrize("with_bias", [False, True])
def test_packed_weights_match_plain_ones(draw: torch.Generator, rows: int, with_bias: bool) -> None:
    operators = packed_operators()
    assert operators is not None
    weight, bias, x = normal(draw, 24, 64), normal(draw, 24) if with_bias else None, normal(draw, rows, 64)
    plain, packed = PlainProjection(weight, bias), PackedProjection(weight, bias, 8, operators)
    torch.testing.assert_close(packed(x), plain(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(packed.relu(x), plain(x).clamp(min=0), rtol=1e-5, atol=1e-5)


@needs_packing
def test_number_of_rows_selects_the_kernel(draw: torch.Generator) -> None:
    calls: list[int] = []
    operators = packed_operators()
    assert operators is not None
    pack, multiply = operators

    def counted(x: Tensor, *others: object) -> Tensor:
        calls.append(len(x))
        result: Tensor = multiply(x, *others)
        return result

    packed = PackedProjection(normal(draw, 24, 64), None, 8, (pack, counted))
    for rows in (1, 7, 8, 9):
        packed(normal(draw, rows, 64))
        packed.relu(normal(draw, rows, 64))
    assert calls == [8, 8, 9, 9]


def test_kernel_table() -> None:
    """By processor and shape; on a processor that was not measured, torch's public operators."""
    vocabulary, narrow = 192 * 4_600, 192 * 192
    assert packed_from(vocabulary, torch.float32, ZEN) is not None
    assert packed_from(vocabulary, torch.bfloat16, ZEN) == packed_from(narrow, torch.bfloat16, ZEN) == 1
    for flags in (ZEN - {"avx512"}, ZEN - {"other maker"}, frozenset[str]()):
        assert packed_from(vocabulary, torch.float32, flags) is None
    assert packed_from(vocabulary, torch.bfloat16, ZEN - {"bf16"}) is None


def test_public_operators_replace_missing_private_ones(draw: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    weight, x = normal(draw, 600, 800), normal(draw, 70, 800)
    monkeypatch.setattr(projection_kernels, "processor", lambda: ZEN)
    usual = projection(weight, None)
    assert isinstance(usual, PackedProjection) == (packed_operators() is not None)
    packed_operators.cache_clear()
    monkeypatch.setattr(projection_kernels.torch.ops, "mkldnn", object())
    try:
        assert packed_operators() is None
        fallback = projection(weight, None)
    finally:
        packed_operators.cache_clear()
    assert type(fallback) is PlainProjection
    torch.testing.assert_close(fallback(x), usual(x), rtol=1e-4, atol=1e-3)


def test_int8_error_is_at_most_rounding(draw: torch.Generator) -> None:
    """The error is at most half a step of either side; the largest numbers do not overflow.

    (The second part cannot fail on processors with VNNI, whose sums are wider.)
    """
    weight, bias = normal(draw, 24, 64) * normal(draw, 24, 1), normal(draw, 24)  # rows of very different size
    x = normal(draw, 9, 64) * normal(draw, 9, 1)
    found, exact = Int8Projection(weight, bias)(x), PlainProjection(weight, bias)(x)
    step_of_x = x.abs().amax(dim=1, keepdim=True) / 63
    step_of_weight = weight.abs().amax(dim=1) / 127
    most = step_of_x / 2 * weight.abs().sum(dim=1)
    most = most + step_of_weight / 2 * (x.abs() + step_of_x / 2).sum(dim=1)[:, None]
    assert ((found - exact).abs() <= most * 1.0001).all()
    assert not torch.equal(found, exact)
    extreme = torch.full((4, 64), 3.0)
    torch.testing.assert_close(Int8Projection(torch.ones(8, 64), None)(extreme), torch.full((4, 8), 192.0))


def test_int8_rows_are_independent(draw: torch.Generator) -> None:
    multiply = Int8Projection(normal(draw, 24, 64), normal(draw, 24))
    x = normal(draw, 40, 64) * torch.logspace(-3, 3, 40)[:, None]
    assert torch.equal(multiply(x), torch.cat([multiply(row[None]) for row in x]))


def test_zero_row_stays_zero() -> None:
    assert Int8Projection(torch.zeros(4, 8), None)(torch.ones(3, 8)).abs().max() == 0
    assert Int8Projection(torch.ones(4, 8), None)(torch.zeros(3, 8)).abs().max() == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_int8_preserves_the_input_type(dtype: torch.dtype) -> None:
    assert Int8Projection(torch.ones(4, 8, dtype=dtype), None)(torch.ones(3, 8, dtype=dtype)).dtype == dtype


def test_unsupported_precision_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    require("fp32", gpu)
    require("bf16", gpu)
    with pytest.raises(UsageError, match="int8 is supported only on CPUs"):
        require("int8", gpu)
    with pytest.raises(UsageError, match='fp32, bf16, int8, not "fp16"'):
        require("fp16", cpu)
    monkeypatch.setattr(projection_kernels, "processor", lambda: ZEN)
    require("bf16", cpu)
    monkeypatch.setattr(projection_kernels, "processor", lambda: ZEN - {"bf16"})
    with pytest.raises(MachineError, match="no bf16 instructions"):
        require("bf16", cpu)
