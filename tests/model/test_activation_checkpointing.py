"""`training.checkpoint_activations` gives bit-identical gradients with less memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import synthetic_tasks as tasks
from heedful.config import BOS, EOS, ModelConfig, TrainingConfig
from heedful.data.batches import Batch, pad
from heedful.errors import ConfigError, MachineError
from heedful.model.transformer import Transformer
from heedful.training.loss import batch_loss
from heedful.training.run import train
from heedful.training.trainer import Trainer

V = 15
SHORT, LONG = (7, 5, 2), (130, 121, 40)  # plain attention, and the fast one
PRECISIONS = ["float64", "float32", "bfloat16", "float16"]


def batch_of(lengths: tuple[int, ...], seed: int = 0) -> Batch:
    """Random sentences, padded on both sides."""
    generator = torch.Generator().manual_seed(seed)
    sources, targets = (
        [[*torch.randint(4, V, (length + more,), generator=generator).tolist(), EOS] for length in lengths]
        for more in (0, 2)
    )
    return Batch(
        source_BS=pad(sources),
        target_in_BT=pad([[BOS, *target[:-1]] for target in targets]),
        target_out_BT=pad(targets),
        tokens=sum(map(len, targets)),
        lines=tuple(range(1, len(lengths) + 1)),
    )


def model_of(N: int = 2, **changes: Any) -> Transformer:
    torch.manual_seed(1)
    shape: dict[str, Any] = {"d_model": 16, "d_ff": 24, "h": 2, "dropout": 0.3}
    return Transformer(ModelConfig(vocab_size=V, N=N, **(shape | changes)))


def gradients(model: Transformer, precision: str, batches: list[Batch]) -> list[Tensor]:
    """Return the losses of accumulated batches, then the gradient of every parameter."""
    if precision == "float64":
        model.double()
    model.embedding.training_dtype = getattr(torch, precision)
    torch.manual_seed(7)
    losses = []
    for batch in batches:
        loss = batch_loss(model, batch, 0.1).smoothed
        loss.backward()
        losses.append(loss.detach())
    assert all(p.grad is not None and p.grad.dtype == p.dtype for p in model.parameters())
    return losses + [p.grad for p in model.parameters() if p.grad is not None]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("attention_dropout", [0.0, 0.2])
@pytest.mark.parametrize("lengths", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_gradients_are_bit_identical(precision: str, lengths: tuple[int, ...], attention_dropout: float) -> None:
    batches = [batch_of(lengths, seed) for seed in (1, 2)]
    kept, again = (model_of(attention_dropout=attention_dropout) for _ in range(2))
    again.checkpoint_activations = True
    assert same(gradients(kept, precision, batches), gradients(again, precision, batches))


def test_control_different_dropout_in_the_backward_pass_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the random state of the forward pass the losses agree and the gradients do not."""
    monkeypatch.setattr("heedful.model.transformer.checkpoint", partial(checkpoint, preserve_rng_state=False))
    kept, again = model_of(), model_of()
    again.checkpoint_activations = True
    one, other = (gradients(model, "float64", [batch_of(SHORT)]) for model in (kept, again))
    assert same(one[:1], other[:1])
    assert not same(one[1:], other[1:])


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_updates_are_bit_identical(precision: str) -> None:
    batches = [batch_of(LONG, seed=1), batch_of(SHORT, seed=2)]
    config = TrainingConfig(warmup_steps=10, precision=precision, clip_norm=1.0)
    kept, again = Trainer(model_of(), config), Trainer(model_of(), replace(config, checkpoint_activations=True))
    for _ in range(3):
        assert kept.train_step(batches) == again.train_step(batches)
    assert same(list(kept.model.parameters()), list(again.model.parameters()))
    assert saved_bytes(again.model, batches[0]) < saved_bytes(kept.model, batches[0]) / 4


def test_inference_recomputes_nothing() -> None:
    """Validation runs with the setting on: without gradients nothing is computed twice."""
    model = model_of().eval()
    batch = batch_of(SHORT)
    with torch.inference_mode():
        expected = model(batch.source_BS, batch.target_in_BT)
        model.checkpoint_activations = True
        assert torch.equal(model(batch.source_BS, batch.target_in_BT), expected)


def saved_bytes(model: Transformer, batch: Batch) -> int:
    """Return the bytes saved for the backward pass, without weights or duplicates."""
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = batch_loss(model, batch, 0.1).smoothed
    sizes = [tensor.untyped_storage().nbytes() for pointer, tensor in kept.items() if pointer not in weights]
    del loss
    return sum(sizes)


@pytest.mark.parametrize("lengths", [SHORT, LONG], ids=["short", "long"])
def test_extra_layer_stores_only_its_input(lengths: tuple[int, ...]) -> None:
    batch = batch_of(lengths)

    def growth(checkpointed: bool) -> int:
        models = [model_of(N=N) for N in (3, 4)]
        for model in models:
            model.checkpoint_activations = checkpointed
        few, more = (saved_bytes(model, batch) for model in models)
        return more - few

    inputs = (batch.source_BS.numel() + batch.target_in_BT.numel()) * 16 * 4
    assert growth(checkpointed=True) == inputs
    assert growth(checkpointed=False) > 10 * inputs


@pytest.fixture
def corpus(tmp_path: Path) -> dict[str, str]:
    return tasks.tiny_corpus(tmp_path / "text")


def test_whole_run_is_bit_identical(corpus: dict[str, str], tmp_path: Path) -> None:
    settings = {**corpus, **tasks.TINY, "model.N": 2, "training.accumulate": 2}
    runs = [
        train(out=tmp_path / str(checkpointed), overrides={**settings, "training.checkpoint_activations": checkpointed})
        for checkpointed in (False, True)
    ]
    for kind in ("train", "valid"):
        entries = [tasks.entries_without_clock(run.log(), kind) for run in runs]
        assert entries[0] == entries[1]
        assert entries[0]
    weights = [(run.path / "model" / "model.safetensors").read_bytes() for run in runs]
    assert weights[0] == weights[1]


def test_it_must_not_change_on_resume(corpus: dict[str, str], tmp_path: Path) -> None:
    settings = {**corpus, **tasks.TINY}
    run = train(out=tmp_path / "run", overrides={**settings, "training.steps": 4})
    assert "checkpoint_activations = false" in (run.path / "config.toml").read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match=r"training\.checkpoint_activations was False, now True"):
        train(out=tmp_path / "run", overrides={**settings, "training.checkpoint_activations": True})


def fail(*_: object) -> None:
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes.")


@pytest.mark.parametrize("where", ["heedful.training.parallel.batch_loss", "heedful.training.run._start"])
@pytest.mark.parametrize("checkpointed", [False, True])
def test_out_of_memory_suggests_it_unless_enabled(
    where: str, checkpointed: bool, corpus: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, fail)
    settings = {**corpus, **tasks.TINY, "training.checkpoint_activations": checkpointed}
    with pytest.raises(MachineError, match="Out of memory") as caught:
        train(out=tmp_path / "run", overrides=settings)
    message = str(caught.value)
    assert ("Set training.checkpoint_activations = true, or lower training.batch_tokens" in message) != checkpointed
    assert ("Lower training.batch_tokens" in message) == checkpointed
