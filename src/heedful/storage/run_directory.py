"""A RUN directory: where everything of a training run lies, and how to find a model in it.

config.toml · tokenizer.model · log.jsonl · data/ · checkpoints/step-00001000/ · best/ · model/
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch

from heedful import recipes
from heedful.config import Recipe
from heedful.data.store import Store
from heedful.errors import CheckpointError, HeedfulError, ModelError, UsageError, nearest
from heedful.storage.manifest import verify_manifest
from heedful.storage.model_directory import (
    TOKENIZER,
    WEIGHTS,
    Model,
    TextFacts,
    read_model,
    read_tensors,
    with_weights,
)
from heedful.text.tokenizer import Tokenizer

log = logging.getLogger("heedful")

OPTIMIZER, STATE = "optimizer.safetensors", "state.json"
CHECKPOINTS = ("averaged", "best", "last")
CHECKPOINT_FILES = (WEIGHTS, OPTIMIZER, STATE)


@dataclass(frozen=True)
class RunDirectory:
    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def tokenizer(self) -> Path:
        return self.path / TOKENIZER

    @property
    def log(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def best(self) -> Path:
        return self.path / "best"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def lock(self) -> Path:
        return self.path / ".lock"

    def recipe(self) -> Recipe:
        """The resolved recipe the run began with."""
        return recipes.build(recipes.read(self.config))

    def checkpoint(self, step: int) -> Path:
        return self.checkpoints / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """Steps that have a checkpoint, valid or not, oldest first."""
        names = (path.name.removeprefix("step-") for path in self.checkpoints.glob("step-*"))
        return sorted(int(name) for name in names if name.isdecimal())

    def valid_steps(self, most: int | None = None) -> list[int]:
        """Steps whose checkpoint verifies, newest first; a damaged one is passed over with a warning.

        There is no pointer to the newest that could be wrong.
        """
        return list(islice((step for step in reversed(self.steps()) if self._verifies(step)), most))

    def is_valid(self, step: int) -> bool:
        """Whether every byte of a step's checkpoint is what was written."""
        return not self._damage(step)

    def _verifies(self, step: int) -> bool:
        if damage := self._damage(step):
            log.warning("checkpoint passed over: %s", damage)
        return not damage

    def _damage(self, step: int) -> str:
        try:
            verify_manifest(self.checkpoint(step), CHECKPOINT_FILES, CheckpointError)
        except CheckpointError as error:
            return str(error)
        return ""


def is_run(path: Path) -> bool:
    return (path / "config.toml").is_file()


def open_model(path: Path, checkpoint: str | None = None, device: torch.device | str = "cpu") -> Model:
    """The model of a MODEL or a RUN. `checkpoint`: "averaged", "best" or "last" of a RUN; None: the first there is."""
    if checkpoint not in (None, *CHECKPOINTS):
        raise UsageError(f'There is no checkpoint "{checkpoint}".{nearest(str(checkpoint), CHECKPOINTS)}')
    if not is_run(path):
        if checkpoint in ("best", "last") and path.is_dir():
            raise UsageError(f'{path} is a model, not a run: it has no "{checkpoint}" beside it. Leave it out.')
        return read_model(path, device)
    run = RunDirectory(path)
    places = {"averaged": run.model, "best": run.best}
    if checkpoint is None:
        checkpoint = next((name for name, place in places.items() if place.is_dir()), "last")
        if checkpoint != "averaged":
            log.warning("%s has no averaged model yet; using its %s one", path, checkpoint)
    if checkpoint == "last":
        return read_last(run, device)
    if not places[checkpoint].is_dir():
        raise ModelError(f'The run {path} has no "{checkpoint}" model yet. Use "last", or let it train on.')
    return read_model(places[checkpoint], device)


def read_last(run: RunDirectory, device: torch.device | str = "cpu") -> Model:
    newest = run.valid_steps(1)
    if not newest:
        raise ModelError(f"The run {run.path} has no valid checkpoint yet.")
    return model_of_checkpoints(run, newest, device)


def model_of_checkpoints(run: RunDirectory, steps: list[int], device: torch.device | str = "cpu") -> Model:
    """The parameter average of some checkpoints of a run (section 6.1), as a model."""
    recipe, tokenizer = run.recipe(), Tokenizer.read(run.tokenizer)
    total: dict[str, torch.Tensor] = {}
    for step in steps:
        tensors = read_tensors(run.checkpoint(step) / WEIGHTS, CheckpointError)
        for name, tensor in tensors.items():
            # Sums in float64: the average does not depend on the size of what is added.
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    average = {name: (tensor / len(steps)).float() for name, tensor in total.items()}
    config = replace(recipe.model, vocab_size=tokenizer.vocab_size)
    transformer = with_weights(config, average, run.checkpoint(steps[0]) / WEIGHTS)
    text = TextFacts.of(recipe.data, _training_text(run), tokenizer)
    history = {"steps": steps[0], "averaged_steps": sorted(steps)}
    return Model(transformer.to(device).eval(), tokenizer, text, recipe.decoding, history)


def _training_text(run: RunDirectory) -> Store | None:
    try:
        return Store(run.data / "training")
    except HeedfulError as error:
        log.warning("the model will not know the languages of its text: %s", error)
        return None
