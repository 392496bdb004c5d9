"""The consistency loss: value and gradient by formula in float64, cuts, and cost."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import synthetic_tasks as tasks
from heedful.config import BOS, ModelConfig, TrainingConfig
from heedful.data.batches import Batch
from heedful.model.complexity import training_flops
from heedful.model.transformer import Transformer
from heedful.storage.run_directory import open_model
from heedful.training import consistency
from heedful.training.consistency import consistency_flops, consistent_loss, kl_divergence
from heedful.training.estimate import BatchShape, activations
from heedful.training.loss import batch_loss
from heedful.training.run import train
from heedful.training.trainer import Trainer

CONFIG = ModelConfig(vocab_size=23, N=2, d_model=16, d_ff=24, h=2, dropout=0.0)
TRAINING = TrainingConfig(consistency=2.0, cutoff=0.3, precision="fp32")


def a_batch() -> Batch:
    target = torch.tensor([[4, 5, 6, 7, 8, 3], [4, 5, 6, 3, 0, 0], [3, 0, 0, 0, 0, 0]])
    target_in = torch.cat([torch.full((3, 1), BOS), target[:, :-1]], dim=1)
    return Batch(torch.tensor([[9, 8, 7, 3], [5, 3, 0, 0], [6, 6, 3, 0]]), target_in, target, 11, (1, 2, 3))


def by_formula(whole_PD: Tensor, cut_PD: Tensor, weight_VD: Tensor) -> Tensor:
    """The oracle: probabilities by exp over their sum, one token at a time."""
    total = torch.zeros((), dtype=torch.float64)
    for whole_D, cut_D in zip(whole_PD, cut_PD, strict=True):
        p_V, q_V = ((weight_VD @ states_D).exp() for states_D in (whole_D, cut_D))
        p_V, q_V = p_V / p_V.sum(), q_V / q_V.sum()
        total = total + (p_V * (p_V / q_V).log()).sum()
    return total


@pytest.mark.parametrize("tokens", [1, 5, 40])
def test_the_divergence_and_its_gradients_match_the_formula(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistency, "CHUNK", 16)
    torch.manual_seed(1)
    inputs = [torch.randn(size, 6, dtype=torch.float64, requires_grad=True) for size in (tokens, tokens, 9)]
    found, expected = kl_divergence(*inputs), by_formula(*inputs)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(torch.autograd.grad(found, inputs), torch.autograd.grad(expected, inputs), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_bf16_states_are_compared_in_float32() -> None:
    torch.manual_seed(1)
    whole, cut, weight = torch.randn(7, 6), torch.randn(7, 6), torch.randn(9, 6)
    found = kl_divergence(whole.bfloat16(), cut.bfloat16(), weight)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(by_formula(whole.double(), cut.double(), weight.double()).item(), rel=0.05)


def test_the_loss_is_that_of_the_whole_input_plus_the_weighted_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    model, batch = Transformer(CONFIG).double(), a_batch()
    plain = batch_loss(model, batch, 0.1)
    divergences: list[Tensor] = []

    def recorded(*inputs: Tensor) -> Tensor:
        divergences.append(by_formula(*inputs))
        return kl_divergence(*inputs)

    monkeypatch.setattr(consistency, "kl_divergence", recorded)
    found = consistent_loss(model, batch, TRAINING)
    assert divergences[0] > 0.001
    assert found.smoothed.item() == pytest.approx((plain.smoothed + 2.0 * divergences[0]).item(), abs=1e-9)
    assert found.nll.item() == pytest.approx(plain.nll.item(), abs=1e-9)


def test_without_cut_words_or_dropout_there_is_no_divergence() -> None:
    model, batch = Transformer(CONFIG).double(), a_batch()
    found = consistent_loss(model, batch, replace(TRAINING, cutoff=0.0))
    assert found.smoothed.item() == pytest.approx(batch_loss(model, batch, 0.1).smoothed.item(), abs=1e-9)


def test_words_are_cut_on_both_sides_and_only_in_the_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    model, batch = Transformer(replace(CONFIG, word_dropout=0.1)), a_batch()
    rates: list[float] = []
    forward = model.embedding.forward

    def recorded(*arguments: Any) -> torch.Tensor:
        rates.append(model.embedding.word_dropout)
        result: torch.Tensor = forward(*arguments)
        return result

    monkeypatch.setattr(model.embedding, "forward", recorded)
    consistent_loss(model, batch, TRAINING)
    assert rates == [0.1, 0.1, 0.3, 0.3]
    assert model.embedding.word_dropout == 0.1


@pytest.mark.parametrize("checkpointed", [False, True])
def test_its_cost_is_what_torch_counts(checkpointed: bool) -> None:
    def product(_: object, left: tuple[int, int], right: tuple[int, int], **__: object) -> int:
        return 2 * left[0] * left[1] * right[1]

    model, batch = Transformer(CONFIG), a_batch()
    model.checkpoint_activations = checkpointed
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: product}) as counter:
        consistent_loss(model, batch, TRAINING).smoothed.backward()
    shape = (3, 4, 6, 11)
    expected = training_flops(CONFIG, *shape, checkpointed=checkpointed)
    assert counter.get_total_flops() == expected + consistency_flops(CONFIG, *shape, checkpointed=checkpointed)


def test_memory_is_estimated_for_both_passes() -> None:
    shape = BatchShape(6, 7, 6, 36)
    plain = activations(CONFIG, replace(TRAINING, consistency=0.0), shape, gpu=False)
    assert activations(CONFIG, TRAINING, shape, gpu=False) > 1.8 * plain


def test_a_trainer_adds_it_only_to_training() -> None:
    losses = []
    for weight in (0.0, 5.0):
        torch.manual_seed(1)
        trainer = Trainer(Transformer(CONFIG), replace(TRAINING, consistency=weight))
        losses.append(trainer.train_step([a_batch()]))
    plain, consistent = losses
    assert plain.nll == pytest.approx(consistent.nll, abs=1e-6)
    assert consistent.loss > plain.loss + 1e-4
    assert math.isfinite(consistent.gradient_norm)


def test_resumed_run_matches_an_uninterrupted_one_with_dropout_and_accumulation(tmp_path: Path) -> None:
    settings = {**tasks.tiny_corpus(tmp_path / "text"), **tasks.TINY}
    settings |= {"training.consistency": 3.0, "training.cutoff": 0.2, "training.accumulate": 2}
    weights = []
    for name, sittings in (("whole", (6,)), ("stopped", (2, 5, 6))):
        for steps in sittings:
            train(out=tmp_path / name, overrides={**settings, "training.steps": steps})
        weights.append(open_model(tmp_path / name, "last").transformer.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
