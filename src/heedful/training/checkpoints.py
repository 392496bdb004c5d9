"""Checkpoints: immutable directories from which a run resumes exactly, and their pruning."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import torch

from heedful.atomic_files import discard, disk_message, free_bytes, holds_only, new_directory, read_at_most
from heedful.errors import CheckpointError, ConfigError, MachineError, as_sentence, cause
from heedful.manifest import MANIFEST, MOST_JSON, write_manifest
from heedful.model.transformer import Transformer
from heedful.storage.file_names import CHECKPOINT_FILES, OPTIMIZER, STATE, WEIGHTS
from heedful.storage.model_directory import read_tensors, write_tensors
from heedful.storage.run_directory import RunDirectory
from heedful.training.moving_average import PREFIX, MovingAverage
from heedful.training.optimizer import Optimizers, load_state_tensors, state_tensors
from heedful.training.progress import Progress
from heedful.training.sharding import gathered_in_main, placed_like
from heedful.typed_dataclasses import build_dataclass, require_format_version

FORMAT_VERSION = 1  # of state.json


class State(NamedTuple):
    """The tensors of a checkpoint, whole even if each process trains a part of them."""

    weights: dict[str, torch.Tensor]
    optimizer: dict[str, torch.Tensor]  # optimizer state and moving average
    has_moving_average: bool


def state_of(
    model: Transformer, optimizers: Optimizers, moving_average: MovingAverage | None = None, is_main: bool = True
) -> State:
    """Return the tensors of a checkpoint.

    If they are sharded, every process must call this, and only the main process gets them.
    """
    average = {} if moving_average is None else moving_average.state_tensors()
    return State(
        gathered_in_main(model.state_dict(), is_main),
        gathered_in_main({**state_tensors(model, optimizers), **average}, is_main),
        has_moving_average=bool(average),
    )


def write(run: RunDirectory, tensors: State, progress: Progress) -> Path:
    """Write the checkpoint of a step atomically, and return its directory."""
    final = run.checkpoint(progress.step)
    parameters = sum(tensor.numel() for tensor in tensors.weights.values())
    needed = bytes_per_parameter(tensors.has_moving_average) * parameters
    require_space(final, needed)
    with new_directory(final, needed, _is_checkpoint) as unfinished:
        write_tensors(unfinished / WEIGHTS, tensors.weights)
        write_tensors(unfinished / OPTIMIZER, tensors.optimizer)
        state = {"format_version": FORMAT_VERSION, **asdict(progress)}
        (unfinished / STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")
        about = {"precision": progress.facts["precision"]} if "precision" in progress.facts else {}
        write_manifest(unfinished, about)
    return final


def bytes_per_parameter(has_moving_average: bool) -> int:
    """Return checkpoint bytes per parameter: 4 per weight, moment and moving average."""
    return 4 * (3 + has_moving_average)


def load(
    run: RunDirectory,
    step: int,
    model: Transformer,
    optimizers: Optimizers,
    moving_average: MovingAverage | None = None,
) -> Progress:
    """Load a verified checkpoint into model, optimizers and average; return its progress."""
    directory = run.checkpoint(step)
    progress = read_progress(directory)
    weights = read_tensors(directory / WEIGHTS, CheckpointError)
    state = read_tensors(directory / OPTIMIZER, CheckpointError)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(placed_like(_require_tensor(weights, name, parameter, directory), parameter))
    if progress.step > progress.skipped:  # before the first update there is no state
        try:
            if moving_average is not None:
                moving_average.load(state, model)
                state = {name: tensor for name, tensor in state.items() if not name.startswith(PREFIX)}
            load_state_tensors(model, optimizers, state)
        except ValueError as error:
            raise CheckpointError(
                f"{directory} is not a valid checkpoint: {cause(error)}. Restore it from a backup."
            ) from None
    return progress


def read_progress(directory: Path) -> Progress:
    """Read state.json of a checkpoint."""
    path = directory / STATE
    try:
        state = json.loads(read_at_most(path, MOST_JSON).decode("utf-8"))
        version = state.pop("format_version", None)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"Cannot read {path}: {cause(error)}. Restore the checkpoint from a backup.") from None
    require_format_version(version, FORMAT_VERSION, path, CheckpointError)
    try:
        return build_dataclass(Progress, state)
    except (TypeError, ValueError, ConfigError) as error:
        raise CheckpointError(f"Cannot read {path}: {as_sentence(error)}") from None


def prune(run: RunDirectory, keep: int, save_every: int, newest: int) -> list[int]:
    """Remove all but the newest `keep` regular checkpoints, and return the removed steps.

    Checkpoints between regular ones, saved by an interrupted run, go too. `newest`, which was just saved, always stays,
    and so does one valid checkpoint before it. Checkpoints after `newest` were damaged when the run resumed; training
    overwrites them.
    """
    steps = [step for step in run.steps() if step <= newest and _is_checkpoint(run.checkpoint(step))]
    regular = [step for step in steps if step % save_every == 0]
    kept = {*regular[-keep:], newest}
    removed = [step for step in steps if step not in kept]
    if removed and not any(run.is_valid(step) for step in sorted(kept - {newest}, reverse=True)):
        spared = next((step for step in reversed(removed) if run.is_valid(step)), None)
        removed = [step for step in removed if step != spared]
    for step in removed:
        discard(run.checkpoint(step))
    return removed


def _is_checkpoint(directory: Path) -> bool:
    """Return whether a directory holds only the files of a checkpoint, damaged or not."""
    return holds_only(directory, (*CHECKPOINT_FILES, MANIFEST))


def require_space(path: Path, needed: int) -> None:
    """Raise MachineError if the disk has fewer free bytes than needed."""
    if free_bytes(path) < needed:
        raise MachineError(disk_message(path, "not enough space", needed))


def require_space_for_all(run: RunDirectory, size: int, keep: int) -> None:
    """Raise MachineError if `keep` checkpoints and the next one do not fit on the disk.

    Those of a resumed run exist already.
    """
    require_space(run.checkpoints, size * max(1, keep + 1 - len(run.steps())))


def _require_tensor(tensors: dict[str, torch.Tensor], name: str, like: torch.Tensor, directory: Path) -> torch.Tensor:
    tensor = tensors.get(name)
    if tensor is None or tensor.shape != like.shape:
        found = "missing" if tensor is None else f"of shape {tuple(tensor.shape)}"
        raise CheckpointError(
            f"{directory}: {name} is {found}, expected {tuple(like.shape)}. Restore the checkpoint from a backup."
        )
    return tensor
