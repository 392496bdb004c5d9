"""Checkpoints: what is loaded is what was saved; pruning and averaging by their rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from heedful.config import ModelConfig
from heedful.errors import CheckpointError, MachineError
from heedful.model.transformer import Transformer
from heedful.storage.file_names import OPTIMIZER
from heedful.storage.model_directory import read_tensors, write_tensors
from heedful.storage.run_directory import RunDirectory
from heedful.training import checkpoints
from heedful.training.checkpoints import load, prune, require_space, state_of, write
from heedful.training.optimizer import Optimizers, make_optimizers, state_tensors
from heedful.training.progress import Progress

CONFIG = ModelConfig(vocab_size=20, N=1, d_model=8, d_ff=16, h=2, dropout=0.0)

Trained = tuple[Transformer, Optimizers]


def trained(seed: int, updates: int = 3) -> Trained:
    torch.manual_seed(seed)
    model = Transformer(CONFIG)
    optimizers = make_optimizers(model, "adam")
    for _ in range(updates):
        model(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7, 8]])).square().sum().backward()
        update(optimizers, 0.01)
    return model, optimizers


def update(optimizers: Optimizers, lr: float) -> None:
    for optimizer in optimizers:
        optimizer.param_groups[0]["lr"] = lr
        optimizer.step()
        optimizer.zero_grad()


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


@pytest.fixture
def make(run: RunDirectory) -> Callable[..., None]:
    """`make(4, 8)`: checkpoints of these steps."""
    model, optimizers = trained(1)

    def make(*steps: int) -> None:
        for step in steps:
            write(run, state_of(model, optimizers), Progress(step=step))

    return make


def test_weights_moments_and_progress_come_back_bit_for_bit(run: RunDirectory) -> None:
    model, optimizers = trained(1)
    progress = Progress(
        step=3,
        tokens=71,
        seconds=1.5,
        best={"step": 2, "bleu": 0.1, "nll": 1 / 3},
        lowest_nll=1 / 3,
        validations_without_gain=1,
        window={"loss": 0.1 + 0.2, "nll": 1e-17, "tokens": 7},
        log_bytes=123,
        facts={"threads": 1},
    )
    write(run, state_of(model, optimizers), progress)
    other, other_optimizers = trained(2, updates=0)
    assert load(run, 3, other, other_optimizers) == progress
    for before, after in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(before, after)
    expected, found = state_tensors(model, optimizers), state_tensors(other, other_optimizers)
    assert len(expected) == 3 * len(list(model.parameters()))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) and found[name].any() for name in expected)


def test_the_next_update_is_the_one_that_would_have_been(run: RunDirectory) -> None:
    model, optimizers = trained(1)
    write(run, state_of(model, optimizers), Progress(step=3))
    other, other_optimizers = trained(2, updates=0)
    load(run, 3, other, other_optimizers)
    for one, its_optimizers in ((model, optimizers), (other, other_optimizers)):
        one(torch.tensor([[9, 3]]), torch.tensor([[2, 7]])).sum().backward()
        update(its_optimizers, 0.02)
    assert all(torch.equal(*pair) for pair in zip(model.parameters(), other.parameters(), strict=True))


def test_skipped_updates_are_not_counted_by_adam(run: RunDirectory) -> None:
    model, optimizers = trained(1, updates=3)
    write(run, state_of(model, optimizers), Progress(step=5, skipped=2))
    other, other_optimizers = trained(2, updates=0)
    load(run, 5, other, other_optimizers)
    steps = [tensor for name, tensor in state_tensors(other, other_optimizers).items() if name.startswith("step.")]
    assert [step.item() for step in steps] == [3] * len(list(model.parameters()))


def test_an_optimizer_without_an_update_can_be_saved(run: RunDirectory) -> None:
    model, optimizers = trained(1, updates=0)
    write(run, state_of(model, optimizers), Progress(step=1, skipped=1))
    other, other_optimizers = trained(2, updates=0)
    assert load(run, 1, other, other_optimizers).step == 1
    assert state_tensors(other, other_optimizers) == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exp_avg.embedding.weight_VD": None}, r"exp_avg\.embedding\.weight_VD is missing, expected \(20, 8\)"),
        ({"exp_avg.embedding.weight_VD": torch.zeros(20, 9)}, r"is of shape \(20, 9\), expected \(20, 8\)"),
        ({"step.embedding.weight_VD": torch.zeros(1)}, r"is of shape \(1,\), expected \(\)"),
        ({"exp_avg.other": torch.zeros(1)}, "exp_avg.other does not belong to this model and optimizer"),
    ],
    ids=["missing", "misshapen", "a step of one dimension", "unknown"],
)
def test_wrong_optimizer_state_is_an_error_of_ours(
    run: RunDirectory, make: Callable[..., None], change: dict[str, torch.Tensor | None], message: str
) -> None:
    make(4)
    path = run.checkpoint(4) / OPTIMIZER
    tensors = {**read_tensors(path, CheckpointError), **change}
    write_tensors(path, {name: tensor for name, tensor in tensors.items() if tensor is not None})
    with pytest.raises(CheckpointError, match=message) as caught:
        load(run, 4, *trained(2, updates=0))
    assert str(run.checkpoint(4)) in str(caught.value)


def test_the_state_of_another_optimizer_is_refused(run: RunDirectory, make: Callable[..., None]) -> None:
    make(4)
    model, _ = trained(2, updates=0)
    with pytest.raises(CheckpointError, match=r"momentum_buffer\..* is missing"):
        load(run, 4, model, make_optimizers(model, "muon"))


def test_another_shape_is_refused_with_both(run: RunDirectory, make: Callable[..., None]) -> None:
    make(4)
    wider = Transformer(ModelConfig(vocab_size=21, N=1, d_model=8, d_ff=16, h=2))
    with pytest.raises(CheckpointError, match=r"of shape \(20, 8\), expected \(21, 8\)"):
        load(run, 4, wider, make_optimizers(wider, "adam"))


_UNKNOWN_KEY = '{"format_version": 1, "no_such": 1}'


@pytest.mark.parametrize("content", ["", "[]", "{", _UNKNOWN_KEY, '{"format_version": 1, "step": 2.5}', "5", "\ufffd"])
def test_an_unreadable_state_is_an_error_of_ours(run: RunDirectory, make: Callable[..., None], content: str) -> None:
    make(4)
    (run.checkpoint(4) / "state.json").write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"Cannot read .*state\.json"):
        checkpoints.read_progress(run.checkpoint(4))


@pytest.mark.parametrize("version", ["2", "null", "true", '"1"'])
def test_a_state_of_another_format_version_is_refused(
    run: RunDirectory, make: Callable[..., None], version: str
) -> None:
    make(4)
    path = run.checkpoint(4) / "state.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"format_version": 1', f'"format_version": {version}'))
    with pytest.raises(CheckpointError, match=r"has format_version .*; heedful .* reads format_version 1"):
        checkpoints.read_progress(run.checkpoint(4))


def test_state_is_json_for_people(run: RunDirectory, make: Callable[..., None]) -> None:
    make(4)
    assert json.loads((run.checkpoint(4) / "state.json").read_text())["step"] == 4


@pytest.mark.parametrize(
    ("steps", "keep", "left"),
    [
        ([4, 8, 12, 16], 2, [12, 16]),
        ([4, 8, 12, 16], 4, [4, 8, 12, 16]),
        ([4], 2, [4]),
        ([4, 8, 12, 14], 2, [8, 12, 14]),  # stopped between: the regular ones stay
        ([4, 8, 10, 12], 2, [8, 12]),  # and the one between goes when the next regular one is there
        ([3], 2, [3]),
        ([8, 12, 16, 17, 18], 1, [16, 18]),
    ],
)
def test_pruning_keeps_the_newest_regular_ones_and_the_newest(
    run: RunDirectory, make: Callable[..., None], steps: list[int], keep: int, left: list[int]
) -> None:
    make(*steps)
    removed = prune(run, keep, save_every=4, newest=steps[-1])
    assert run.steps() == left
    assert sorted(removed + left) == steps
    assert run.valid_steps() == left[::-1]
    assert len(list(run.checkpoints.iterdir())) == len(left)


@pytest.mark.parametrize(
    ("steps", "damaged", "newest", "left"),
    [
        ([4, 8, 9, 12, 16], [12, 16], 9, [4, 8, 9, 12, 16]),  # went on from 8: what is newer counts for nothing
        ([4, 8, 12, 16], [12], 16, [8, 12, 16]),
        ([4, 8, 12, 16], [8, 12], 16, [4, 12, 16]),
        ([4, 8, 12], [4, 8], 12, [8, 12]),
    ],
)
def test_pruning_never_leaves_the_newest_alone(
    run: RunDirectory, make: Callable[..., None], steps: list[int], damaged: list[int], newest: int, left: list[int]
) -> None:
    make(*steps)
    for step in damaged:
        (run.checkpoint(step) / "state.json").write_text("{}")
    prune(run, keep=2, save_every=4, newest=newest)
    assert run.steps() == left


def test_too_little_space_is_said_before_writing(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "free_bytes", lambda _: 1_000)
    with pytest.raises(MachineError, match="12,345 bytes needed") as caught:
        require_space(run.checkpoints, 12_345)
    assert caught.value.exit_code == 4
    with pytest.raises(MachineError):
        write(run, state_of(*trained(1)), Progress(step=4))
    assert not run.checkpoints.exists()


def test_stored_checkpoints_need_no_more_space(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "free_bytes", lambda _: 2_000)
    with pytest.raises(MachineError, match="5,000 bytes needed"):
        checkpoints.require_space_for_all(run, 1_000, keep=4)
    for step in (1, 2, 3):
        run.checkpoint(step).mkdir(parents=True)
    checkpoints.require_space_for_all(run, 1_000, keep=4)
    monkeypatch.setattr(checkpoints, "free_bytes", lambda _: 999)
    with pytest.raises(MachineError, match="1,000 bytes needed"):
        checkpoints.require_space_for_all(run, 1_000, keep=1)
