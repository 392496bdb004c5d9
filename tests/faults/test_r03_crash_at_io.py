"""R3: a crash at any I/O call of saving, pruning or replacing leaves a valid version."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fault_injection import forked, tap
from tiny_runs import leftovers, sha256

from heedful.atomic_files import clear_unfinished
from heedful.errors import HeedfulError
from heedful.model.transformer import Transformer
from heedful.storage import model_directory
from heedful.storage.model_directory import read_model, write_model
from heedful.storage.run_directory import RunDirectory, open_model
from heedful.training import checkpoints
from heedful.training.optimizer import make_optimizers

pytestmark = pytest.mark.faults

Work = Callable[[], None]
DEAD = 137


def calls_of(work: Work, log: Path) -> int:
    """How many calls change the disk."""
    made = log.with_suffix(".count")

    def counting() -> None:
        with pytest.MonkeyPatch.context() as patch, made.open("a") as stream:
            tap(patch, log.parent, lambda *what: print(*what, file=stream, flush=True))
            work()

    assert forked(counting, log) == 0, log.read_text()
    return len(made.read_text().splitlines())


def dies_at(call: int, work: Work, log: Path) -> None:
    made = []

    def count(*_: str) -> None:
        made.append(None)
        if len(made) == call:
            os._exit(DEAD)

    def mortal() -> None:
        with pytest.MonkeyPatch.context() as patch:
            tap(patch, log.parent, count)
            work()

    assert forked(mortal, log) == DEAD, log.read_text()


def save_and_prune(run: RunDirectory, step: int) -> Work:
    """Return work that saves the newest checkpoint with other weights as `step`, and prunes."""

    def work() -> None:
        recipe, last = run.recipe(), run.steps()[-1]
        model = Transformer(replace(recipe.model, vocab_size=open_model(run.path).tokenizer.vocab_size))
        optimizers = make_optimizers(model, recipe.training.optimizer)
        progress = checkpoints.load(run, last, model, optimizers)
        with torch.no_grad():
            next(model.parameters()).add_(1.0)
        progress.step = step
        checkpoints.write(run, checkpoints.state_of(model, optimizers), progress)
        checkpoints.prune(run, 2, 2, newest=step)

    return work


def digests(directory: Path) -> dict[str, str]:
    return {path.name: sha256(path) for path in sorted(directory.iterdir())}


def loads(run: RunDirectory, step: int) -> bool:
    model = Transformer(replace(run.recipe().model, vocab_size=open_model(run.path).tokenizer.vocab_size))
    try:
        checkpoints.load(run, step, model, make_optimizers(model, "adam"))
    except HeedfulError:
        return False
    return True


def survivors(reference: Path, tmp_path: Path, step: int) -> list[bool]:
    """Return per call whether the newest valid checkpoint is an old one or the whole new one."""
    log = tmp_path / "log.txt"
    whole = RunDirectory(Path(shutil.copytree(reference, tmp_path / "whole")))
    known = {name: digests(path) for path in whole.checkpoints.iterdir() for name in [path.name]}
    calls = calls_of(save_and_prune(whole, step), log)
    new = digests(whole.checkpoint(step))
    held = []
    for call in range(1, calls + 1):
        run = RunDirectory(Path(shutil.copytree(reference, tmp_path / "run")))
        dies_at(call, save_and_prune(run, step), log)
        clear_unfinished(run.checkpoints)
        newest = run.valid_steps(1)
        found = digests(run.checkpoint(newest[0])) if newest else {}
        sound = found == new or found == known.get(run.checkpoint(newest[0] if newest else 0).name)
        held.append(bool(newest) and sound and loads(run, newest[0]) and len(run.valid_steps()) >= 2)
        assert leftovers(run.path) == []
        shutil.rmtree(run.path)
    return held


# Step 18 is new; step 16 takes the place of the one that is there, as after a damaged newest one.
@pytest.mark.parametrize("step", [18, 16])
def test_a_valid_checkpoint_at_every_call(
    reference: Path, tmp_path: Path, step: int, counted: Callable[[int, str], None]
) -> None:
    held = survivors(reference, tmp_path, step)
    assert len(held) > 30
    assert all(held), [call for call, good in enumerate(held, start=1) if not good]
    counted(len(held), "calls")


@contextmanager
def in_place(final: Path, *_: object) -> Iterator[Path]:
    """What atomic_files.new_directory prevents."""
    shutil.rmtree(final, ignore_errors=True)
    final.mkdir(parents=True)
    yield final


def test_control_in_place_and_unverified(reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "new_directory", in_place)
    monkeypatch.setattr(RunDirectory, "_verifies", lambda self, step: True)
    held = survivors(reference, tmp_path, 18)
    assert not all(held)


def model_survives(reference: Path, tmp_path: Path) -> list[bool]:
    """For each call of replacing RUN/best: whether it is a model, the old or the new one."""
    log = tmp_path / "log.txt"
    other = open_model(reference, "best")
    with torch.no_grad():
        next(other.transformer.parameters()).add_(1.0)
    fine = [digests(reference / "best")]
    whole = Path(shutil.copytree(reference / "best", tmp_path / "whole" / "best"))
    calls = calls_of(lambda: write_model(whole, other), log)
    fine.append(digests(whole))
    held = []
    for call in range(1, calls + 1):
        best = Path(shutil.copytree(reference / "best", tmp_path / "run" / "best"))
        dies_at(call, lambda best=best: write_model(best, other), log)  # type: ignore[misc]
        clear_unfinished(best.parent)
        try:
            read_model(best)
            held.append(digests(best) in fine and leftovers(best.parent) == [])
        except HeedfulError:
            held.append(False)
        shutil.rmtree(best.parent)
    return held


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two renames"])
def test_a_replaced_model_is_the_old_or_the_new_one(
    reference: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    exchange: bool,
    counted: Callable[[int, str], None],
) -> None:
    if not exchange:
        monkeypatch.setattr("heedful.atomic_files._exchange", lambda first, second: False)
    held = model_survives(reference, tmp_path)
    assert len(held) > 15
    assert all(held), [call for call, good in enumerate(held, start=1) if not good]
    counted(len(held), "calls")


def test_control_a_model_replaced_in_place(reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_directory, "new_directory", in_place)
    assert not all(model_survives(reference, tmp_path))
