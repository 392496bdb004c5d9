"""The loss against its definition with label smoothing, torch's, and finite differences."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.config import BOS, EOS, PAD, ModelConfig
from heedful.data.batches import Batch, pad
from heedful.model.transformer import Transformer
from heedful.training import loss as loss_module
from heedful.training.loss import Loss, batch_loss, perplexity, projected_loss, smoothed_cross_entropy
from tensor_allocations import allocated

SMOOTHINGS = (0.0, 0.1, 0.7)


def some_logits(P: int = 5, V: int = 9, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return (
        (3 * torch.randn(P, V, generator=generator, dtype=torch.float64)).to(dtype),
        torch.randint(1, V, (P,), generator=generator),
    )


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_matches_a_computation_by_hand(smoothing: float) -> None:
    """Compute -Σ q log p with q = (1 - ε)·[v = label] + ε / V, one number at a time."""
    logits, labels = some_logits()
    total = nll = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        z = sum(math.exp(x) for x in row)
        for v, x in enumerate(row):
            q = (1 - smoothing) * (v == label) + smoothing / len(row)
            total -= q * math.log(math.exp(x) / z)
        nll -= math.log(math.exp(row[label]) / z)
    loss = smoothed_cross_entropy(logits, labels, smoothing)
    assert loss.smoothed.item() == pytest.approx(total, abs=1e-10)
    assert loss.nll.item() == pytest.approx(nll, abs=1e-10)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_matches_torch(smoothing: float) -> None:
    logits, labels = some_logits(40, 50)
    loss = smoothed_cross_entropy(logits, labels, smoothing)
    expected = F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    assert loss.smoothed.item() == pytest.approx(expected.item(), abs=1e-10)
    assert loss.nll.item() == pytest.approx(F.cross_entropy(logits, labels, reduction="sum").item(), abs=1e-10)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_gradient_by_finite_differences(smoothing: float) -> None:
    logits, labels = some_logits()
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: smoothed_cross_entropy(x, labels, smoothing).smoothed, logits)


def test_half_precision_is_summed_in_float32() -> None:
    logits, labels = some_logits(2_000, 50, torch.bfloat16)
    loss = smoothed_cross_entropy(logits, labels, 0.1)
    expected = smoothed_cross_entropy(logits.double(), labels, 0.1)
    assert loss.smoothed.dtype == torch.float32
    assert loss.smoothed.item() == pytest.approx(expected.smoothed.item(), rel=1e-5)
    assert loss.nll.item() == pytest.approx(expected.nll.item(), rel=1e-5)


def test_large_logits_do_not_overflow() -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0]])
    assert smoothed_cross_entropy(logits, torch.tensor([1]), 0.0).nll.item() == pytest.approx(2e4)


def projection(P: int, V: int = 11, D: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    states = torch.randn(P, D, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(V, D, generator=generator, dtype=torch.float64, requires_grad=True)
    return states, weight, torch.randint(1, V, (P,), generator=generator)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("P", [0, 1, 3, 4, 10])
def test_chunked_loss_matches_the_plain_one(monkeypatch: pytest.MonkeyPatch, smoothing: float, P: int) -> None:
    """Value and gradients in chunks are those of the plain loss, whole chunks or not."""
    monkeypatch.setattr(loss_module, "_CHUNK", 4)
    states, weight, labels = projection(P)
    plain = smoothed_cross_entropy(states @ weight.T, labels, smoothing)
    expected = torch.autograd.grad(3 * plain.smoothed, [states, weight])
    chunked = projected_loss(states, weight, labels, smoothing)
    found = torch.autograd.grad(3 * chunked.smoothed, [states, weight])
    for ours, theirs in zip((*chunked, *found), (*plain, *expected), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0.0, atol=1e-12)


def test_chunked_gradient_by_finite_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "_CHUNK", 2)
    states, weight, labels = projection(5)
    assert torch.autograd.gradcheck(lambda x, w: projected_loss(x, w, labels, 0.1).smoothed, (states, weight))


def test_large_logits_do_not_overflow_in_chunks() -> None:
    states, weight = torch.tensor([[1e4]]), torch.tensor([[1.0], [-1.0], [0.0]])
    assert projected_loss(states, weight, torch.tensor([1]), 0.0).nll.item() == pytest.approx(2e4)


def test_labels_too_unlikely_for_the_softmax_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their probability underflows to 0, but its logarithm is finite: one of three, then all."""
    monkeypatch.setattr(loss_module, "_CHUNK", 3)
    weight = torch.tensor([[1.0], [-1.0], [0.5]], dtype=torch.float64)
    states = torch.tensor([[2.0], [900.0], [3.0], [800.0], [1_000.0], [1_200.0]], dtype=torch.float64)
    labels = torch.tensor([1, 1, 2, 1, 1, 1])
    expected = smoothed_cross_entropy(states @ weight.T, labels, 0.1)
    found = projected_loss(states, weight, labels, 0.1)
    assert expected.nll.item() > 2 * (900 + 800 + 1_000 + 1_200)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0.0)


def test_without_gradients_one_buffer_of_logits_is_all_that_is_allocated() -> None:
    """No second buffer for the softmax or the next chunk, and no gradient of the weight."""
    states, weight, labels = projection(2_000, V=400, D=300)
    buffer = 512 * 400 * 8
    with torch.no_grad():
        weight *= 0.1  # logits of a few nats: no label is too unlikely for the softmax
        most, _ = allocated(lambda: projected_loss(states, weight, labels, 0.1))
    assert buffer <= most < buffer + weight.numel() * 8 / 2


def test_no_logits_of_a_whole_batch_are_kept() -> None:
    """What is kept for the backward pass is as large as states and weight, never logits."""
    kept: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    states, weight, labels = projection(1_000, V=400)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        projected_loss(states, weight, labels, 0.1)
    assert sum(kept) == states.numel() + weight.numel()


def half_projection(P: int, V: int, D: int) -> tuple[Tensor, Tensor, Tensor]:
    """bf16 states, and float32 weights that bf16 represents exactly."""
    states, weight, labels = projection(P, V, D)
    rounded = states.detach().bfloat16().requires_grad_()
    return rounded, weight.detach().bfloat16().float().requires_grad_(), labels


def on_rounded_logits(states: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> Loss:
    """The plain loss in float64 of the same logits, rounded to bf16 as the product is."""
    exact = states.double() @ weight.double().T
    rounded = (states.detach() @ weight.detach().bfloat16().T).double()
    return smoothed_cross_entropy(exact + (rounded - exact).detach(), labels, smoothing)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("P", [1, 4, 1_000])
def test_in_bf16_the_softmax_and_the_sum_are_float32(monkeypatch: pytest.MonkeyPatch, smoothing: float, P: int) -> None:
    """As exact as float32 once the logits are rounded; not even their mean is rounded."""
    monkeypatch.setattr(loss_module, "_CHUNK", 300)
    states, weight, labels = half_projection(P, V=50, D=16)
    found, expected = projected_loss(states, weight, labels, smoothing), on_rounded_logits(states, weight, labels, 0.0)
    assert found.smoothed.dtype == found.nll.dtype == torch.float32
    assert found.nll.item() == pytest.approx(expected.nll.item(), rel=1e-5)
    logits = states.double() @ weight.double().T
    rounding = (logits.bfloat16().double() - logits).abs().mean(dim=1).sum().item()
    smoothed = on_rounded_logits(states, weight, labels, smoothing).smoothed.item()
    assert found.smoothed.item() == pytest.approx(smoothed, rel=1e-5, abs=smoothing * rounding)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_gradients_in_bf16_are_those_of_autograd(smoothing: float) -> None:
    """Each element within the rounding of bf16 (2⁻⁸), of the largest gradient."""
    states, weight, labels = half_projection(300, V=50, D=16)
    plain = on_rounded_logits(states, weight, labels, smoothing)
    expected = torch.autograd.grad(3 * plain.smoothed, [states, weight])
    found = torch.autograd.grad(3 * projected_loss(states, weight, labels, smoothing).smoothed, [states, weight])
    assert [gradient.dtype for gradient in found] == [torch.bfloat16, torch.float32]
    for ours, theirs in zip(found, expected, strict=True):
        theirs = theirs.float()
        torch.testing.assert_close(ours.float(), theirs, rtol=0.01, atol=0.01 * theirs.abs().max().item())


def test_gradients_of_bf16_chunks_are_added_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """512 chunks of one token each: a sum in bf16 stops growing at 256 times its summands."""
    monkeypatch.setattr(loss_module, "_CHUNK", 1)
    states = torch.full((512, 1), 1.0, dtype=torch.bfloat16)
    weight = torch.zeros(4, 1, requires_grad=True)  # softmax 1/4 for every token
    labels = torch.zeros(512, dtype=torch.long)
    (found,) = torch.autograd.grad(projected_loss(states, weight, labels, 0.0).smoothed, [weight])
    assert torch.equal(found[:, 0], 512 * torch.tensor([-0.75, 0.25, 0.25, 0.25]))
    in_bf16 = torch.zeros((), dtype=torch.bfloat16)
    for _ in range(512):  # the control
        in_bf16 += 0.25
    assert in_bf16 == 64


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
def test_half_precision_of_a_model(precision: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(vocab_size=9, N=1, d_model=8, d_ff=12, h=2, dropout=0.0)).train()
    full = batch_loss(model, a_batch(), 0.1)
    model.embedding.training_dtype = precision
    half = batch_loss(model, a_batch(), 0.1)
    assert half.smoothed.dtype == torch.float32
    assert half.smoothed.item() != full.smoothed.item()
    assert half.smoothed.item() == pytest.approx(full.smoothed.item(), rel=0.02)


def a_batch() -> Batch:
    targets = [[4, 5, 6, EOS], [7, EOS], [EOS]]
    return Batch(
        source_BS=pad([[4, EOS], [5, 6, 7, EOS], [8, EOS]]),
        target_in_BT=pad([[BOS, *target[:-1]] for target in targets]),
        target_out_BT=pad(targets),
        tokens=7,
        lines=(1, 2, 3),
    )


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_batch_matches_torch_with_ignored_padding(smoothing: float) -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(vocab_size=9, N=1, d_model=8, d_ff=12, h=2)).double().eval()
    batch = a_batch()
    loss = batch_loss(model, batch, smoothing)
    logits = model(batch.source_BS, batch.target_in_BT).flatten(0, 1)
    labels = batch.target_out_BT.flatten()
    options = {"ignore_index": PAD, "reduction": "sum"}
    expected = F.cross_entropy(logits, labels, label_smoothing=smoothing, **options)  # type: ignore[arg-type]
    assert loss.smoothed.item() == pytest.approx(expected.item(), abs=1e-10)
    assert loss.nll.item() == pytest.approx(F.cross_entropy(logits, labels, **options).item(), abs=1e-10)  # type: ignore[arg-type]


def test_a_batch_is_the_sum_of_its_sentences() -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(vocab_size=9, N=1, d_model=8, d_ff=12, h=2)).double().eval()
    batch = a_batch()
    alone = 0.0
    for row in range(3):
        source, target_in, target_out = (
            ids[row : row + 1, : int((ids[row] != PAD).sum())]
            for ids in (batch.source_BS, batch.target_in_BT, batch.target_out_BT)
        )
        alone += batch_loss(model, Batch(source, target_in, target_out, 1, (1,)), 0.1).smoothed.item()
    assert batch_loss(model, batch, 0.1).smoothed.item() == pytest.approx(alone, abs=1e-9)


def test_perplexity() -> None:
    assert perplexity(0.0) == 1.0
    assert perplexity(math.log(37_000)) == pytest.approx(37_000)
    assert perplexity(709.0) == pytest.approx(math.e**709)
    assert perplexity(710.0) == math.inf
    assert perplexity(1e6) == math.inf
