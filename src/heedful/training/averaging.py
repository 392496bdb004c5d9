"""Checkpoint averaging (section 6.1): selection, mean and the resulting model."""

from __future__ import annotations

import torch

from heedful.errors import CheckpointError
from heedful.storage.file_names import WEIGHTS
from heedful.storage.model_directory import Model, read_tensors
from heedful.storage.run_directory import RunDirectory, model_of_run


def steps_to_average(run: RunDirectory, count: int, save_every: int, newest: int) -> list[int]:
    """Return the newest step and the regular ones before it, `count` in all.

    Checkpoints that were saved because a run was interrupted do not count, so interruptions do not change the average.
    """
    regular = [step for step in run.valid_steps() if step % save_every == 0 and step < newest]
    return [newest, *regular][:count]


def average_weights(run: RunDirectory, steps: list[int]) -> dict[str, torch.Tensor]:
    """Return the mean of each parameter over the checkpoints of these steps."""
    total: dict[str, torch.Tensor] = {}
    for step in steps:
        for name, tensor in read_tensors(run.checkpoint(step) / WEIGHTS, CheckpointError).items():
            # Sum in float64, so that the mean is rounded only once.
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / len(steps)).float() for name, tensor in total.items()}


def averaged_model(run: RunDirectory, steps: list[int]) -> Model:
    """Return a model with the average weights of these checkpoints, newest first."""
    return model_of_run(run, average_weights(run, steps), steps)
