"""The exponential moving average: values, checkpoints, and place among final models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import synthetic_tasks as tasks
from heedful.config import ModelConfig, TrainingConfig
from heedful.errors import CheckpointError, ConfigError
from heedful.model.transformer import Transformer
from heedful.storage.file_names import OPTIMIZER
from heedful.storage.model_directory import read_model, read_tensors, write_tensors
from heedful.storage.run_directory import RunDirectory
from heedful.training import checkpoints
from heedful.training.moving_average import MovingAverage, decay_at, moving_average_weights
from heedful.training.optimizer import make_optimizers
from heedful.training.progress import Progress
from heedful.training.run import train
from heedful.training.trainer import Trainer
from heedful.training.validation import Validation

CONFIG = ModelConfig(vocab_size=20, N=1, d_model=8, d_ff=16, h=2, dropout=0.0)
EMA = {"training.ema_decay": 0.9, "training.select_final": True}


def randomised(model: Transformer, seed: int) -> None:
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))


def test_the_average_is_the_weighted_sum_of_all_weights_so_far() -> None:
    """The oracle is the sum in float64: each step's share is multiplied by every later decay."""
    model, average, decay = Transformer(CONFIG), MovingAverage(0.6), 0.6
    seen = []
    for update in range(1, 9):
        randomised(model, update)
        average.update(model, update)
        seen.append({name: parameter.detach().double().clone() for name, parameter in model.named_parameters()})
    shares = [1.0] + [1 - decay_at(update, decay) for update in range(2, 9)]
    for name, found in average.weights.items():
        expected = torch.zeros_like(seen[0][name])
        for number, weights in enumerate(seen):
            later = torch.tensor([1 - share for share in shares[number + 1 :]], dtype=torch.float64).prod()
            expected += shares[number] * later * weights[name]
        torch.testing.assert_close(found.double(), expected, rtol=0.0, atol=1e-6)
        assert found.dtype == torch.float32


def test_the_decay_rises_to_its_value() -> None:
    decays = [decay_at(update, 0.99) for update in range(1, 2_000)]
    assert decays == sorted(decays)
    assert decays[0] == pytest.approx(2 / 11)
    assert decays[-1] == 0.99


def test_without_a_decay_nothing_is_kept() -> None:
    average = MovingAverage(0.0)
    average.update(Transformer(CONFIG), 1)
    assert average.weights == {}
    assert average.state_tensors() == {}


def test_a_skipped_update_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainingConfig(ema_decay=0.9, select_final=True, non_finite="skip", precision="fp32")
    trainer = Trainer(Transformer(CONFIG), config)
    monkeypatch.setattr(trainer, "_accumulate_gradients", lambda *_: (float("nan"), float("nan")))
    assert trainer.train_step([]).skipped
    assert trainer.moving_average.weights == {}


def test_a_checkpoint_returns_the_average(tmp_path: Path) -> None:
    run, model, average = RunDirectory(tmp_path), Transformer(CONFIG), MovingAverage(0.9)
    optimizers = make_optimizers(model, "adam")
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizers[0].step()
    for update in (1, 2):
        randomised(model, update)
        average.update(model, update)
    checkpoints.write(run, checkpoints.state_of(model, optimizers, average), Progress(step=2))
    found = MovingAverage(0.9)
    checkpoints.load(run, 2, model, optimizers, found)
    assert found.weights.keys() == average.weights.keys()
    assert all(torch.equal(found.weights[name], tensor) for name, tensor in average.weights.items())
    path = run.checkpoint(2) / OPTIMIZER
    tensors = read_tensors(path, CheckpointError)
    write_tensors(path, {name: tensor for name, tensor in tensors.items() if name != "ema.embedding.weight_VD"})
    with pytest.raises(CheckpointError, match=r"ema\.embedding\.weight_VD is missing"):
        checkpoints.load(run, 2, model, optimizers, found)


def ended(path: Path) -> dict[str, torch.Tensor]:
    run = RunDirectory(path)
    tensors = read_tensors(run.checkpoint(run.steps()[-1]) / OPTIMIZER, CheckpointError)
    return moving_average_weights(tensors)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_resumed_average_matches_an_uninterrupted_one(tmp_path: Path, optimizer: str) -> None:
    settings: dict[str, Any] = {**tasks.tiny_corpus(tmp_path / "text"), **tasks.TINY, **EMA}
    settings["training.optimizer"] = optimizer
    for name, sittings in (("whole", (12,)), ("stopped", (3, 5, 12))):
        for steps in sittings:
            train(out=tmp_path / name, overrides={**settings, "training.steps": steps})
    whole, stopped = ended(tmp_path / "whole"), ended(tmp_path / "stopped")
    assert whole
    assert all(torch.equal(whole[name], stopped[name]) for name in whole)


def test_control_forgetting_the_average_ends_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**tasks.tiny_corpus(tmp_path / "text"), **tasks.TINY, **EMA}
    train(out=tmp_path / "whole", overrides=settings)
    train(out=tmp_path / "stopped", overrides={**settings, "training.steps": 5})
    monkeypatch.setattr(MovingAverage, "load", lambda *_: None)
    train(out=tmp_path / "stopped", overrides=settings)
    whole, stopped = ended(tmp_path / "whole"), ended(tmp_path / "stopped")
    assert any(not torch.equal(whole[name], stopped[name]) for name in whole)


def test_the_average_can_become_the_final_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other candidates score 0: whichever is asked third is the moving average."""
    scores = iter([0.0, 0.0, 50.0, 0.0])
    monkeypatch.setattr(Validation, "bleu", lambda *_, **__: next(scores))
    run = train(out=tmp_path / "run", overrides={**tasks.tiny_corpus(tmp_path / "text"), **tasks.TINY, **EMA})
    model = read_model(run.path / "model")
    assert model.history["selected"] == "moving average"
    average = ended(run.path)
    assert all(torch.equal(average[name], tensor) for name, tensor in model.transformer.state_dict().items())
    last = read_tensors(RunDirectory(run.path).checkpoint(12) / "model.safetensors", CheckpointError)
    assert any(not torch.equal(average[name], last[name]) for name in last)


def test_an_average_that_nothing_would_use_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no effect without training\.select_final"):
        TrainingConfig(ema_decay=0.999)
