"""A RUN directory: the paths of a training run, its checkpoints, and the models in it.

config.toml · tokenizer.model · log.jsonl · data/ · checkpoints/step-00001000/ · best/ · model/
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from heedful import recipes
from heedful.atomic_files import clear_unfinished, discard, is_empty
from heedful.config import DataConfig, Recipe
from heedful.data.store import Store, facts_of, is_store
from heedful.errors import CheckpointError, HeedfulError, ModelError, UsageError, nearest
from heedful.manifest import MANIFEST, verify_manifest
from heedful.storage import file_names
from heedful.storage.file_names import CHECKPOINT_FILES, CONFIG, MARKER, STORES, WEIGHTS
from heedful.storage.model_directory import Model, TextFacts, is_model, read_model, read_tensors, with_weights
from heedful.storage.ownership import is_ours, require_no_links, require_outside_models
from heedful.storage.prepared_directory import training_store
from heedful.storage.tokenizer_files import digest_of_files, read_tokenizer

log = logging.getLogger("heedful")

CHECKPOINTS = ("averaged", "best", "last")  # values of --checkpoint


@dataclass(frozen=True)
class RunDirectory:
    """The paths of a run, and checks of what is there."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / file_names.RECIPE

    @property
    def tokenizer_files(self) -> tuple[Path, ...]:
        """Return the paths that the files of a tokenizer may have; a run has some of them."""
        return tuple(self.path / name for name in file_names.TOKENIZER_FILES)

    @property
    def log(self) -> Path:
        return self.path / file_names.LOG

    @property
    def data(self) -> Path:
        return self.path / file_names.DATA

    @property
    def verified(self) -> Path:
        """Return the record of when token stores were verified (storage/verified_stores.py)."""
        return self.data / file_names.VERIFIED

    @property
    def checkpoints(self) -> Path:
        return self.path / file_names.CHECKPOINTS

    @property
    def best(self) -> Path:
        return self.path / file_names.BEST

    @property
    def model(self) -> Path:
        return self.path / file_names.AVERAGED

    @property
    def marker(self) -> Path:
        """Return the file that marks a directory as a run.

        It is written first, and the training process locks it.
        """
        return self.path / MARKER

    def entries(self) -> tuple[Path, ...]:
        """Return every path that heedful writes directly below a run."""
        return tuple(self.path / name for name in file_names.RUN_ENTRIES)

    def require_own(self) -> None:
        """Raise UsageError unless the directory is a run, or a new run would overwrite nothing."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"`--out {self.path}` is a file. Pass the name of a new or existing directory.")
        require_outside_models(self.path)
        stored = self.checkpoints.glob("step-*") if not self.checkpoints.is_symlink() else ()
        if is_ours(self.path):
            require_no_links([*self.entries(), *stored])
            self._require_own_entries()
            return
        if self.config.exists() and self.checkpoints.is_dir():
            raise UsageError(
                f"`--out {self.path}` looks like a run, but its marker file {MARKER} is missing, so heedful may not "
                "have written it. If you copied the run, copy this hidden file too (cp -a). "
                "Otherwise, choose another `--out`."
            )
        for path in (*self.entries(), self.path / CONFIG, self.path / MANIFEST):
            if os.path.lexists(path):
                raise UsageError(
                    f"`--out {self.path}` is not a heedful run, and training would overwrite {path.name} in it. "
                    f"Choose another `--out`, or move {path.name} elsewhere."
                )
        if os.path.lexists(self.marker) and not (self.marker.is_file() and self.marker.stat().st_size == 0):
            raise UsageError(
                f"heedful did not write {self.marker}. Choose another `--out`, or move the file elsewhere."
            )

    def _require_own_entries(self) -> None:
        """Raise UsageError at the start if training would later replace a user's file."""
        if self.config.exists():
            foreign = [path for path in (self.best, self.model) if os.path.lexists(path) and not is_model(path)]
        else:  # a killed start wrote at most the token stores and the tokenizer
            foreign = [path for path in self.entries() if path.exists() and path != self.data]
            foreign = [path for path in foreign if path not in self.tokenizer_files or not self._is_own_tokenizer()]
        if foreign:
            raise UsageError(
                f"{foreign[0]} was not written by heedful, or has been changed since. Training would replace it. "
                "Move it elsewhere and run the same command again."
            )

    def _is_own_tokenizer(self) -> bool:
        """Return whether heedful wrote the tokenizer: the token stores record its digest."""
        present = [path for path in self.tokenizer_files if os.path.lexists(path)]
        if not present or any(path.is_symlink() or not path.is_file() for path in present):
            return False
        digest = digest_of_files(self.path)
        return any(facts_of(self.data / name).get("tokenizer") == digest for name in STORES)

    def clear_failed_start(self) -> None:
        """Remove the files of a start that ended before it wrote config.toml."""
        clear_unfinished(self.path)
        clear_unfinished(self.data)
        if self._is_own_tokenizer():
            for path in self.tokenizer_files:
                path.unlink(missing_ok=True)
        for name in STORES:
            if is_store(self.data / name):
                discard(self.data / name)
        if is_empty(self.data):
            self.data.rmdir()

    def recipe(self) -> Recipe:
        """Return the resolved recipe of the run."""
        return recipes.build(recipes.read(self.config))

    def checkpoint(self, step: int) -> Path:
        return self.checkpoints / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, valid or not, oldest first."""
        names = (path.name.removeprefix("step-") for path in self.checkpoints.glob("step-*"))
        return sorted(int(name) for name in names if name.isdecimal())

    def valid_steps(self, most: int | None = None) -> list[int]:
        """Return the steps with a valid checkpoint, newest first.

        Skip damaged ones with a warning.

        No file points to the newest checkpoint, so no pointer can be wrong.
        """
        return list(islice((step for step in reversed(self.steps()) if self._verifies(step)), most))

    def is_valid(self, step: int) -> bool:
        """Return whether every byte of a checkpoint is as it was written."""
        return not self._damage(step)

    def _verifies(self, step: int) -> bool:
        if damage := self._damage(step):
            log.warning("skipping a damaged checkpoint: %s", damage)
        return not damage

    def _damage(self, step: int) -> str:
        try:
            verify_manifest(self.checkpoint(step), CHECKPOINT_FILES, CheckpointError)
        except CheckpointError as error:
            return str(error)
        return ""


def is_run(path: Path) -> bool:
    """Return whether a directory is a run."""
    return RunDirectory(path).config.is_file()


def open_model(path: Path, checkpoint: str | None = None, device: torch.device | str = "cpu") -> Model:
    """Open a MODEL, or a model of a RUN: "averaged", "best" or "last" (default: the first)."""
    if checkpoint not in (None, *CHECKPOINTS):
        raise UsageError(f'Unknown checkpoint "{checkpoint}".{nearest(str(checkpoint), CHECKPOINTS)}')
    if not is_run(path):
        if checkpoint in ("best", "last") and path.is_dir():
            raise UsageError(f'{path} is a model, not a run: it has no "{checkpoint}" checkpoint. Omit `--checkpoint`.')
        return read_model(path, device)
    run = RunDirectory(path)
    places = {"averaged": run.model, "best": run.best}
    if checkpoint is None:
        checkpoint = next((name for name, place in places.items() if place.is_dir()), "last")
        if checkpoint != "averaged":
            log.warning("%s has no averaged model yet; using the %s one", path, checkpoint)
    if checkpoint == "last":
        return read_last(run, device)
    if not places[checkpoint].is_dir():
        raise ModelError(f'The run {path} has no "{checkpoint}" model yet. Use "last", or continue training.')
    return read_model(places[checkpoint], device)


def read_last(run: RunDirectory, device: torch.device | str = "cpu") -> Model:
    """Return the model of the newest valid checkpoint."""
    newest = run.valid_steps(1)
    if not newest:
        raise ModelError(f"The run {run.path} has no valid checkpoint yet. Run `heedful train` first.")
    weights = read_tensors(run.checkpoint(newest[0]) / WEIGHTS, CheckpointError)
    return model_of_run(run, weights, newest, device)


def model_of_run(
    run: RunDirectory, weights: Mapping[str, Tensor], steps: list[int], device: torch.device | str = "cpu"
) -> Model:
    """Return a model of a run with these weights.

    `steps` are the checkpoints they come from, newest first.
    """
    recipe, tokenizer = run.recipe(), read_tokenizer(run.path)
    config = replace(recipe.model, vocab_size=tokenizer.vocab_size)
    transformer = with_weights(config, weights, run.checkpoint(steps[0]) / WEIGHTS)
    text = TextFacts.of(recipe.data, _training_text(run, recipe.data), tokenizer)
    history = {"steps": steps[0], "averaged_steps": sorted(steps), "precision": recipe.training.precision}
    return Model(transformer.to(device).eval(), tokenizer, text, recipe.decoding, history)


def _training_text(run: RunDirectory, data: DataConfig) -> Store | None:
    try:
        return training_store(run.data, data)
    except HeedfulError as error:
        log.warning("the model will have no language profiles: %s", error)
        return None
