"""Tiny runs for the fault tests, and the final state to compare."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

import synthetic_tasks
from heedful.atomic_files import is_empty
from heedful.model.transformer import Transformer
from heedful.storage.run_directory import RunDirectory
from heedful.training.optimizer import Optimizers, load_state_tensors
from heedful.training.run import train
from heedful.training.run_log import read_log

# Eight checkpoints, of which three are kept; four validations; dropout; two epoch borders.
SETTINGS: dict[str, Any] = {
    **synthetic_tasks.TINY,
    "training.steps": 16,
    "training.batch_tokens": 96,
    "training.save_every": 2,
    "training.validate_every": 4,
    "training.average": 2,
    "training.keep": 3,
}
LAST = 16

_CLOCK = ("seconds", "log_bytes")  # what a checkpoint's state owes to the machine's speed


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def end_of(path: Path, last: int = LAST) -> dict[str, Any]:
    """Return everything in a finished run that must not depend on interruptions."""
    run = RunDirectory(path)
    newest = run.checkpoint(last)
    files = [newest / "model.safetensors", newest / "optimizer.safetensors"]
    files += [run.model / "model.safetensors", run.best / "model.safetensors", run.path / "tokenizer.model", run.config]
    state = json.loads((newest / "state.json").read_text(encoding="utf-8"))
    log = read_log(run.log)
    return {
        **{str(file.relative_to(path)): sha256(file) for file in files},
        "state": {key: value for key, value in state.items() if key not in _CLOCK},
        "train": synthetic_tasks.entries_without_clock(log, "train"),
        "valid": synthetic_tasks.entries_without_clock(log, "valid"),
        "checkpoints": run.steps(),
    }


def leftovers(path: Path) -> list[str]:
    """Hidden files and directories.

    An empty directory has no marker and is not removed: it could be the user's.
    """
    found = [one for one in path.rglob(".*") if one.name != ".heedful" and not is_empty(one)]
    return [str(one.relative_to(path)) for one in found]


def continued(path: Path, settings: dict[str, Any]) -> None:
    """Start or resume a run with the same command."""
    train(out=path, overrides=settings)


def load_without_moments(model: Transformer, optimizers: Optimizers, tensors: dict[str, Tensor]) -> None:
    """What a control puts in place of optimizer.load_state_tensors."""
    load_state_tensors(model, optimizers, {name: tensor * ("exp_avg" not in name) for name, tensor in tensors.items()})


def copy_with(source: Path, target: Path, *steps: int) -> RunDirectory:
    """Copy a run with only these checkpoints, without the models that come at its end."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("tensorboard", "model", "step-*"))
    run = RunDirectory(target)
    for step in steps:
        shutil.copytree(RunDirectory(source).checkpoint(step), run.checkpoint(step))
    return run
