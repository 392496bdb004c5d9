"""Muon against singular values, against a plain loop, and against Adam for what is no matrix."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heedful.config import ModelConfig
from heedful.model.transformer import Transformer
from heedful.training.adam import Adam
from heedful.training.muon import Muon, orthogonal
from heedful.training.optimizer import make_optimizer


@pytest.mark.parametrize("shape", [(16, 16), (8, 24), (24, 8)])
def test_directions_stay_and_lengths_become_alike(shape: tuple[int, int]) -> None:
    torch.manual_seed(1)
    matrices = (
        torch.randn(3, *shape, dtype=torch.float64) * torch.tensor([1e-6, 1.0, 1e6], dtype=torch.float64)[:, None, None]
    )
    found = orthogonal(matrices)
    for before, after in zip(matrices, found, strict=True):
        u, s, vt = torch.linalg.svd(before, full_matrices=False)
        inner = u.T @ after @ vt.T  # diagonal, if the directions are the same
        lengths = inner.diagonal()
        torch.testing.assert_close(inner, lengths.diag(), rtol=0.0, atol=1e-6)
        large = s > 0.05 * s.norm()
        assert ((lengths[large] > 0.6) & (lengths[large] < 1.3)).all()


def test_no_gradient_at_all_is_no_move() -> None:
    assert not orthogonal(torch.zeros(1, 4, 6)).any()


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


def test_matrices_by_a_plain_loop_and_the_rest_by_adam() -> None:
    torch.manual_seed(2)
    shapes = [(6, 10), (12, 4), (7,), (6, 10), (30, 6)]
    weights = [torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in shapes]
    others = [weights[n].detach().clone().requires_grad_() for n in (2, 4)]
    muon, adam = Muon(weights, [weights[n] for n in (0, 1, 3)]), Adam(others)
    before = [weight.detach().clone() for weight in weights]
    gradients = [[torch.randn_like(weight) for weight in weights] for _ in range(4)]
    muon.rate = adam.rate = 0.01
    for step in gradients:
        for weight, gradient in zip(weights, step, strict=True):
            weight.grad = gradient.clone()
        for other, n in zip(others, (2, 4), strict=True):
            other.grad = step[n].clone()
        muon.step()
        adam.step()
    for other, n in zip(others, (2, 4), strict=True):
        assert torch.equal(other, weights[n])
    for n in (0, 1, 3):
        expected = plain(before[n], [step[n] for step in gradients], 0.01)
        torch.testing.assert_close(weights[n].detach(), expected, rtol=0.0, atol=1e-6)
    assert muon.updates == 4


def test_of_a_model_the_matrices_between_states_are_muons() -> None:
    model = Transformer(ModelConfig(vocab_size=20, N=1, d_model=8, d_ff=16, h=2))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    muon = make_optimizer(model, "muon")
    muon.rate = 1e-3
    model(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7, 8]])).square().sum().backward()
    muon.step()
    for (name, parameter), second in zip(model.named_parameters(), muon.v, strict=True):
        matrix = parameter.dim() == 2 and "embedding" not in name
        assert bool(second.any()) == (not matrix), name  # Adam's second moment
        moved = (parameter - before[name]).square().mean().sqrt()
        assert moved > 0 or name.endswith("key.bias"), name  # a constant added to all keys changes nothing
        if matrix:
            assert 0.5e-4 < moved < 4e-4, name
