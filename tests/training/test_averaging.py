"""Checkpoint averaging: which checkpoints are averaged, and that the result is the mean."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.numpy
import torch

from heedful.storage.model_directory import Model, write_model
from heedful.storage.run_directory import RunDirectory, open_model
from heedful.training.averaging import averaged_model, steps_to_average
from heedful.training.final_model import has_final_model


def assert_weights(model: Model, expected: dict[str, np.ndarray]) -> None:
    state = model.transformer.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], torch.from_numpy(value)) for name, value in expected.items())


def test_the_average_is_the_mean_of_the_files(tiny_run: Path) -> None:
    run = RunDirectory(tiny_run)
    files = [safetensors.numpy.load_file(run.checkpoint(step) / "model.safetensors") for step in (4, 8, 12)]
    mean = {
        name: np.mean([file[name].astype(np.float64) for file in files], axis=0).astype(np.float32) for name in files[0]
    }
    assert_weights(averaged_model(run, [12, 8, 4]), mean)
    assert_weights(open_model(tiny_run), mean)


@pytest.mark.parametrize(
    ("steps", "newest", "averaged"),
    [
        ([4, 8, 12], 12, [12, 8, 4]),
        ([4, 8, 12, 16], 16, [16, 12, 8]),
        ([4, 8, 10], 10, [10, 8, 4]),
        ([4, 6, 8], 8, [8, 4]),  # an interruption saved 6; an uninterrupted run has no such checkpoint
        ([4], 4, [4]),
    ],
)
def test_the_average_is_of_the_newest_and_regular_ones(steps: list[int], newest: int, averaged: list[int]) -> None:
    run = SimpleNamespace(valid_steps=lambda: steps[::-1])
    assert steps_to_average(run, count=3, save_every=4, newest=newest) == averaged  # type: ignore[arg-type]


def test_a_model_of_an_earlier_step_is_not_the_final_average(own_run: Path) -> None:
    run = RunDirectory(own_run)
    assert has_final_model(run, run.recipe(), 12)
    write_model(run.model, averaged_model(run, [8, 4]))
    assert not has_final_model(run, run.recipe(), 12)
    assert has_final_model(run, run.recipe(), 8)
    (run.model / "config.json").write_text("{}", encoding="utf-8")
    assert not has_final_model(run, run.recipe(), 8)
