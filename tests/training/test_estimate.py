"""Memory and FLOPs by formula, against torch, brute force and the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from heedful import presets
from heedful.config import PAD, DataConfig, ModelConfig, Recipe, TrainingConfig
from heedful.data.batches import Batch, Batches
from heedful.data.store import Store, write_store
from heedful.model.complexity import training_flops
from heedful.model.layers import DecoderLayer
from heedful.model.transformer import Transformer
from heedful.text.corpus import Pair
from heedful.text.tokenizer import Tokenizer
from heedful.training import hardware
from heedful.training.dry_run import training_shapes
from heedful.training.estimate import (
    BatchShape,
    BatchShapes,
    activations,
    estimate,
    largest,
    memory,
    optimizer_flops,
    papers_run,
    parameters,
    smaller_batch,
)
from heedful.training.hardware import available_memory, flops_per_second
from heedful.training.loss import batch_loss
from heedful.training.optimizer import make_optimizers
from heedful.training.precision import activation_dtype
from tensor_allocations import allocated

CPU = torch.device("cpu")


def shape_of(**changes: Any) -> ModelConfig:
    return ModelConfig(**({"vocab_size": 211, "N": 2, "d_model": 32, "d_ff": 96, "h": 4} | changes))


def batch_of(B: int, S: int, T: int) -> Batch:
    draw = torch.Generator().manual_seed(1)
    source, target = (torch.randint(4, 200, (B, length), generator=draw) for length in (S, T))
    source[0, -1] = PAD  # a mask is needed
    return Batch(source, target, target.clone(), B * T, ())


def loss_of(model: Transformer, batch: Batch, precision: str) -> Tensor:
    model.embedding.training_dtype = activation_dtype(precision, CPU)
    return batch_loss(model, batch, 0.1).smoothed


def kept_by_autograd(model: nn.Module, compute: Callable[[], object]) -> int:
    """Bytes of the different storages that the backward pass will read, the weights left out."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        compute()
    return sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in weights)


SHAPES = [
    shape_of(),
    shape_of(N=3, dropout=0.0),
    shape_of(d_k=12, d_v=8),
    shape_of(d_k=4, d_v=8),
    shape_of(attention_dropout=0.1),
    shape_of(N=3, N_decoder=1),
]
# Short sentences; the longest whose attention weights are all kept in float32 and in bf16, and the next ones; different
# lengths.
SIZES = [(6, 7, 6), (1, 96, 96), (1, 97, 97), (2, 100, 60), (1, 256, 256), (1, 257, 257)]


@pytest.mark.parametrize("config", SHAPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_activations_are_what_autograd_keeps(config: ModelConfig, size: tuple[int, int, int], precision: str) -> None:
    B, S, T = size
    model, batch = Transformer(config), batch_of(B, S, T)
    kept = kept_by_autograd(model, lambda: loss_of(model, batch, precision))
    if precision != "fp32":  # the copies of the weights count as weights
        kept -= 2 * sum(parameter.numel() for parameter in model.parameters() if parameter.ndim == 2)
    counted = activations(config, TrainingConfig(precision=precision), BatchShape(B, S, T, B * T), gpu=False)
    assert counted == pytest.approx(kept, rel=0.1)


@pytest.mark.parametrize(
    "config",
    [
        shape_of(N=6, d_model=64, d_ff=256),
        shape_of(N=3, d_model=64, d_k=8),
        shape_of(N=8, N_decoder=2, d_model=64, d_ff=256),
    ],
)
def test_checkpointed_activations_are_the_inputs_and_one_layer(config: ModelConfig) -> None:
    B, S, T = 16, 20, 24
    batch, model, layer = batch_of(B, S, T), Transformer(config), DecoderLayer(config)
    training = TrainingConfig(checkpoint_activations=True, precision="fp32")
    counted = activations(config, training, BatchShape(B, S, T, B * T), gpu=False)
    model.checkpoint_activations = True
    _, inputs = allocated(lambda: loss_of(model, batch, "fp32"))
    x, memory = (torch.randn(B, length, config.d_model, requires_grad=True) for length in (T, S))
    one = kept_by_autograd(layer, lambda: layer(x, memory, None)) - x.nbytes - memory.nbytes  # which are inputs
    assert counted == pytest.approx(inputs + one, rel=0.1)
    loss_of(model, batch, "fp32").backward()  # from here on there are gradients to add to
    most, _ = allocated(lambda: loss_of(model, batch, "fp32").backward())
    assert counted < most < 1.3 * counted  # the gradients of a layer's states come and go besides


def test_parameters_are_those_of_the_model() -> None:
    for config in (*SHAPES, shape_of(positions="learned")):
        assert parameters(config) == sum(parameter.numel() for parameter in Transformer(config).parameters())


def test_memory_has_four_numbers_a_parameter() -> None:
    config, shape = shape_of(), BatchShape(3, 5, 4, 12)
    count = parameters(config)
    found = memory(config, TrainingConfig(precision="fp32"), shape, gpu=False)
    assert (found.weights, found.gradients, found.moments) == (4 * count, 4 * count, 8 * count)
    assert found.total == 16 * count + found.activations + found.working
    assert memory(config, TrainingConfig(precision="bf16"), shape, gpu=False).weights == 6 * count
    parts = memory(config, TrainingConfig(accumulate=2, precision="fp32"), shape, gpu=False)
    assert (parts.activations, parts.working > found.working) == (found.activations, True)


def recipe_of(name: str, **training: Any) -> Recipe:
    preset = presets.named(name)
    settings: dict[str, Any] = {**preset.training, "precision": "fp32", **training}
    return Recipe(model=preset.model(37_000), training=TrainingConfig(**settings))


@pytest.mark.parametrize(("name", "counted", "published"), [("base", 0.94e18, "3.3e+18"), ("big", 9.6e18, "2.3e+19")])
def test_flops_of_the_papers_runs_counted_and_as_published(name: str, counted: float, published: str) -> None:
    recipe = recipe_of(name)
    cost = estimate(recipe, recipe.model, None, gpu=False)
    assert cost.run_flops == pytest.approx(counted, rel=0.02)
    assert cost.run_flops == recipe.training.steps * cost.step_flops
    assert cost.tokens == 25_000
    assert cost.papers_run is not None
    assert f"{cost.papers_run.flops:.1e}" == published
    parts = recipe_of(name, batch_tokens=3_125, accumulate=8)
    assert estimate(parts, parts.model, None, gpu=False).step_flops == pytest.approx(cost.step_flops, rel=1e-12)
    again = recipe_of(name, checkpoint_activations=True)
    assert 1.2 < estimate(again, again.model, None, gpu=False).run_flops / cost.run_flops < 1.34


@pytest.mark.parametrize("name", ["table3-b-dk16", "table3-c-d1024", "table3-e-learned"])
def test_what_is_not_a_run_of_table_2_has_no_published_figure(name: str) -> None:
    other = recipe_of(name)
    assert papers_run(other, other.model) is None
    for changes in ({"steps": 99_999}, {"batch_tokens": 24_999}, {"accumulate": 2}):
        changed = recipe_of("base", **changes)
        assert papers_run(changed, changed.model) is None


def test_shapes_are_those_of_the_real_batches(store: Store) -> None:
    batches = Batches(store, 200, seed=3)
    real = [batches[number] for number in range(batches.per_epoch)]
    expected = [(*batch.source_BS.shape, batch.target_out_BT.shape[1], batch.tokens) for batch in real]
    recipe = Recipe(data=DataConfig(max_length=100), training=TrainingConfig(batch_tokens=200, accumulate=3, steps=7))
    shapes = training_shapes(store.buckets, recipe.training)
    assert sorted(shapes.forward) == sorted(expected)
    assert shapes.reversed == []
    cost = estimate(recipe, shape_of(), shapes, gpu=False)
    assert cost.tokens == pytest.approx(3 * sum(batch.tokens for batch in real) / len(real))
    flops = sum(training_flops(shape_of(), *shape) for shape in expected) / len(real)
    assert cost.run_flops == pytest.approx(7 * 3 * flops)


def test_reversed_batches_are_counted_as_they_are_trained(
    make_pairs: Callable[..., list[Pair]], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """Whole epochs of which the first half is bidirectional, against the batches themselves."""
    uneven = (Pair(f"{source} {source} {source}", target) for source, target in make_pairs(300, seed=2))
    store = write_store(tmp_path / "uneven", uneven, tokenizer, DataConfig(max_ratio=10.0), {})
    epoch = Batches(store, 200, seed=3).per_epoch
    steps = 40 * epoch
    training = TrainingConfig(batch_tokens=200, steps=steps, bidirectional_steps=steps // 2)
    batches = Batches(store, 200, seed=3, bidirectional=steps // 2)
    real = [batches[number] for number in range(steps)]
    flops = sum(training_flops(shape_of(), *b.source_BS.shape, b.target_out_BT.shape[1], b.tokens) for b in real)
    recipe = Recipe(data=DataConfig(max_length=100), training=training)
    cost = estimate(recipe, shape_of(), training_shapes(store.buckets, training), gpu=False)
    assert cost.run_flops == pytest.approx(flops, rel=0.01)
    assert cost.tokens == pytest.approx(sum(batch.tokens for batch in real) / steps, rel=0.01)
    plain = estimate(recipe, shape_of(), BatchShapes(training_shapes(store.buckets, training).forward), gpu=False)
    assert abs(plain.run_flops / flops - 1) > 0.01, "the two directions of this corpus must differ"


def test_the_products_of_muon_are_counted_as_torch_counts_them() -> None:
    config, training = shape_of(N=2, d_model=16, d_ff=24), TrainingConfig(optimizer="muon")
    model = Transformer(config)
    optimizers = make_optimizers(model, "muon")
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    with FlopCounterMode(display=False) as counter:
        for optimizer in optimizers:
            optimizer.step()
    assert optimizer_flops(config, training) == counter.get_total_flops() > 0
    assert optimizer_flops(config, replace(training, optimizer="adam")) == 0


@pytest.mark.parametrize("max_length", [20, 96, 150])
@pytest.mark.parametrize("attention_dropout", [0.0, 0.1])
def test_no_batch_needs_more_than_the_largest(max_length: int, attention_dropout: float) -> None:
    """Every shape that a budget of 600 tokens allows."""
    config, training = shape_of(attention_dropout=attention_dropout), TrainingConfig(batch_tokens=600)
    recipe = Recipe(data=DataConfig(max_length=max_length), model=config, training=training)
    worst = activations(config, training, largest(recipe, config, None, gpu=False), gpu=False)
    for S in range(1, max_length + 1, 5):
        for T in range(1, max_length + 1, 3):
            B = 600 // max(S, T)
            assert activations(config, training, BatchShape(B, S, T, B * T), gpu=False) <= 1.1 * worst


@pytest.mark.parametrize("limit", [10, 24, 100, 333, 999])
def test_a_smaller_batch_is_the_first_that_fits(limit: int) -> None:
    recipe = Recipe(data=DataConfig(max_length=24), training=TrainingConfig(batch_tokens=500, accumulate=2))

    def fits(one: Recipe) -> bool:
        return one.training.batch_tokens <= limit

    tried = [(1_000 // parts, parts) for parts in range(2, 1_000 // 24 + 1)]
    expected = next(((tokens, parts) for tokens, parts in tried if tokens <= limit), None)
    found = smaller_batch(recipe, fits)
    assert (found and (found.training.batch_tokens, found.training.accumulate)) == expected
    assert (expected is None) == (limit < 24)


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


FREE = {"proc/meminfo": "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 5000 kB\n"}
V1 = "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        (FREE, 5_000 * 1024),
        (
            {
                "proc/self/cgroup": "0::/job/mine\n",
                "sys/fs/cgroup/job/mine/memory.max": "max\n",
                "sys/fs/cgroup/job/mine/memory.current": "70\n",
                "sys/fs/cgroup/job/memory.max": "1000\n",
                "sys/fs/cgroup/job/memory.current": "300\n",
                "sys/fs/cgroup/job/memory.stat": "anon 5\ninactive_file 40\n",
            },
            1000 - 300 + 40,
        ),
        (
            {
                "proc/self/cgroup": "5:cpu:/elsewhere\n4:memory,pids:/box\n0::/\n",
                f"{V1}/box/memory.limit_in_bytes": "2000\n",
                f"{V1}/box/memory.usage_in_bytes": "500\n",
                f"{V1}/memory.limit_in_bytes": "9223372036854771712\n",
                f"{V1}/memory.usage_in_bytes": "600\n",
            },
            1_500,
        ),
        ({"proc/self/cgroup": "4:memory:/not/seen\n", f"{V1}/memory.limit_in_bytes": "10"}, 5_000 * 1024),
    ],
    ids=["nothing known", "free", "version 2", "version 1", "hidden"],
)
def test_memory_is_what_the_machine_and_its_groups_leave(
    tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    write_files(tmp_path, {**(FREE if files else {}), **files})
    assert available_memory(CPU, tmp_path) == expected


def test_speed_is_counted_flops_over_the_time_of_real_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock moves by a tenth of a second per reading, and batches grow to the budget."""
    now = iter(range(10_000))
    monkeypatch.setattr(hardware, "perf_counter", lambda: next(now) / 10)
    config = shape_of(N=3, vocab_size=300)
    part = replace(config, N=1, vocab_size=100)
    for checkpointed in (False, True):
        training = TrainingConfig(batch_tokens=55, checkpoint_activations=checkpointed)
        speed = flops_per_second(config, training, CPU, length=5)
        assert speed == pytest.approx(training_flops(part, 11, 5, 5, checkpointed=checkpointed) / 0.1)
