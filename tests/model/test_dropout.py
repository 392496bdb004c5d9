"""Dropout by definition: rate, scale, mean, independence, and gradient by the same mask."""

from __future__ import annotations

import pytest
import torch

from heedful.model.dropout import dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_rate_and_scale(p: float) -> None:
    torch.manual_seed(1)
    n = 400_003  # no multiple of four
    dropped = dropout(torch.ones(n, dtype=torch.float64), p)
    zeros = int((dropped == 0).sum())
    assert abs(zeros - p * n) < 5 * (n * p * (1 - p)) ** 0.5  # five standard deviations
    kept = dropped[dropped != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)), rtol=1e-3, atol=0.0)
    assert dropped.mean().item() == pytest.approx(1.0, abs=5 * (p / (1 - p) / n) ** 0.5)


def test_elements_are_independent_of_their_neighbours() -> None:
    """A 64-bit word serves four neighbours; neither they nor nearby words may correlate."""
    torch.manual_seed(2)
    n = 400_000
    kept = (dropout(torch.ones(n), 0.5) != 0).double() - 0.5
    for distance in (1, 2, 3, 4, 8):
        correlation = 4 * (kept[distance:] * kept[:-distance]).mean().item()
        assert abs(correlation) < 5 / n**0.5, distance


def test_each_position_in_a_word_has_the_same_rate() -> None:
    torch.manual_seed(3)
    kept = dropout(torch.ones(100_000, 4), 0.2) != 0
    assert kept.float().mean(dim=0).tolist() == pytest.approx([0.8] * 4, abs=5 * (0.16 / 100_000) ** 0.5)


def test_gradient_uses_the_same_mask() -> None:
    torch.manual_seed(4)
    x = torch.randn(7, 9, dtype=torch.float64, requires_grad=True)
    y = dropout(x, 0.4)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(x * gradient, y)
    assert 0 < int((gradient == 0).sum()) < gradient.numel()


def test_it_is_a_function_of_the_seed() -> None:
    def draw(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return torch.cat([dropout(torch.ones(50), 0.5), dropout(torch.ones(50), 0.5)])

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    assert not torch.equal(draw(1)[:50], draw(1)[50:])


@pytest.mark.parametrize(("p", "training"), [(0.0, True), (0.5, False)])
def test_identity_without_dropout_or_in_eval_mode(p: float, training: bool) -> None:
    x = torch.randn(5)
    assert torch.equal(dropout(x, p, training), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dtype_and_shape_are_preserved(dtype: torch.dtype) -> None:
    x = torch.ones(2, 3, 5, dtype=dtype).transpose(0, 1)
    y = dropout(x, 0.5)
    assert (y.dtype, y.shape) == (dtype, x.shape)
