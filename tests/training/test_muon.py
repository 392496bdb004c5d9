"""Muon against singular values, a plain loop in float64, and torch.optim.Muon."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heedful.config import ModelConfig
from heedful.model.transformer import Transformer
from heedful.training.muon import Muon, orthogonalize
from heedful.training.optimizer import make_optimizers

SHAPES = [(6, 10), (12, 4), (6, 10), (8, 8)]


@pytest.mark.parametrize("shape", [(16, 16), (8, 24), (24, 8)])
def test_singular_vectors_stay_and_values_become_equal(shape: tuple[int, int]) -> None:
    torch.manual_seed(1)
    matrices = (
        torch.randn(3, *shape, dtype=torch.float64) * torch.tensor([1e-6, 1.0, 1e6], dtype=torch.float64)[:, None, None]
    )
    found = orthogonalize(matrices)
    for before, after in zip(matrices, found, strict=True):
        u, s, vt = torch.linalg.svd(before, full_matrices=False)
        inner = u.T @ after @ vt.T  # diagonal, if the directions are the same
        lengths = inner.diagonal()
        torch.testing.assert_close(inner, lengths.diag(), rtol=0.0, atol=1e-6)
        large = s > 0.05 * s.norm()
        assert ((lengths[large] > 0.6) & (lengths[large] < 1.3)).all()


def test_zero_gradient_changes_nothing() -> None:
    assert not orthogonalize(torch.zeros(1, 4, 6)).any()


def plain(weight: Tensor, gradients: list[Tensor], rate: float) -> Tensor:
    """One matrix, in a loop, the orthogonal matrix by singular values' polynomial."""
    momentum = torch.zeros_like(weight)
    for gradient in gradients:
        momentum = 0.95 * momentum + 0.05 * gradient
        ahead = 0.95 * momentum + 0.05 * gradient
        u, s, vt = torch.linalg.svd(ahead / ahead.norm(), full_matrices=False)
        for _ in range(5):
            s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
        weight = weight - rate * 0.2 * max(weight.shape) ** 0.5 * (u * s) @ vt
    return weight


def random_gradients(dtype: torch.dtype, steps: int = 4) -> list[list[Tensor]]:
    generator = torch.Generator().manual_seed(3)
    return [[torch.randn(shape, generator=generator, dtype=dtype) for shape in SHAPES] for _ in range(steps)]


def updated(optimizer: torch.optim.Optimizer, weights: list[Tensor], gradients: list[list[Tensor]]) -> list[Tensor]:
    for step in gradients:
        for weight, gradient in zip(weights, step, strict=True):
            weight.grad = gradient.clone()
        optimizer.step()
    return [weight.detach() for weight in weights]


def random_weights(dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in SHAPES]


def test_stacked_updates_match_single_ones() -> None:
    weights, gradients = random_weights(torch.float64), random_gradients(torch.float64)
    before = [weight.detach().clone() for weight in weights]
    found = updated(Muon(weights, lr=0.01, dtype=torch.float64), weights, gradients)
    for n, weight in enumerate(found):
        expected = plain(before[n], [step[n] for step in gradients], 0.01)
        torch.testing.assert_close(weight, expected, rtol=0.0, atol=1e-6)


def test_matches_torch_muon_up_to_bf16() -> None:
    """torch.optim.Muon always iterates in bf16 with 8 bits: updates agree to about 2 %."""
    weights, gradients = random_weights(torch.float32), random_gradients(torch.float32)
    before = [weight.detach().clone() for weight in weights]
    oracle_weights = [weight.clone().requires_grad_() for weight in before]
    oracle = torch.optim.Muon(oracle_weights, lr=0.01, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
    expected = updated(oracle, oracle_weights, gradients)
    found = updated(Muon(weights, lr=0.01, dtype=torch.bfloat16), weights, gradients)
    for old, ours, theirs in zip(before, found, expected, strict=True):
        assert (ours - theirs).norm() < 0.02 * (theirs - old).norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_matrix_without_a_gradient_is_unchanged_and_weights_stay_float32(dtype: torch.dtype) -> None:
    used, unused = (torch.ones(4, 6, requires_grad=True) for _ in range(2))
    optimizer = Muon([used, unused], lr=0.01, dtype=dtype)
    used.grad = torch.randn(4, 6)
    optimizer.step()
    assert not torch.equal(used, torch.ones(4, 6))
    assert torch.equal(unused, torch.ones(4, 6))
    assert used.dtype == optimizer.state[used]["momentum_buffer"].dtype == torch.float32


@pytest.mark.parametrize("precision", [None, torch.bfloat16])
def test_updates_of_a_model_are_as_large_as_adams(precision: torch.dtype | None) -> None:
    model = Transformer(ModelConfig(vocab_size=20, N=1, d_model=8, d_ff=16, h=2))
    model.embedding.training_dtype = precision
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizers = make_optimizers(model, "muon")
    model(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7, 8]])).float().square().sum().backward()
    for optimizer in optimizers:
        optimizer.param_groups[0]["lr"] = 1e-3
        optimizer.step()
    for name, parameter in model.named_parameters():
        moved = (parameter - before[name]).square().mean().sqrt()
        assert moved > 0 or name.endswith("key.bias"), name  # a constant added to all keys changes nothing
        if parameter.dim() == 2 and "embedding" not in name:
            assert 0.5e-4 < moved < 4e-4, name
