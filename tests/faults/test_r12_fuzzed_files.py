"""R12: mutated checkpoints, tokenizers and configs raise only heedful's errors.

The digests of the mutated files are valid.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import safetensors.torch
from fault_injection import count, forked
from tiny_runs import LAST, copy_with

from heedful import recipes
from heedful.engines.load import load
from heedful.errors import HeedfulError
from heedful.manifest import write_manifest
from heedful.storage import model_directory
from heedful.storage.run_directory import RunDirectory, read_last
from heedful.training import checkpoints
from heedful.training.optimizer import make_optimizers

pytestmark = pytest.mark.faults

MUTATIONS = count(200, 2_000)
WORDS = [
    b"0",
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"true",
    b'""',
    b"[]",
    b"{}",
    b"9" * 400,
    b"\xff",
    b"\0",
    b"2.5",
    b'"x"',
]
TARGETS = {
    "model": ("config.json", "tokenizer.model", "model.safetensors"),
    "checkpoint": ("state.json", "model.safetensors", "optimizer.safetensors"),
    "recipe": ("config.toml",),
}


def mutated(content: bytes, draw: random.Random) -> bytes:
    """Change, cut, double or replace a few bytes, mostly near the start, where headers are."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5))):
        place = draw.randrange(min(len(changed), draw.choice((16, 2_000, len(changed)))) or 1)
        kind = draw.randrange(7)
        if kind == 0:
            changed[place : place + 1] = bytes([draw.randrange(256)])
        elif kind == 1:
            changed[place:place] = draw.choice(WORDS)
        elif kind == 2:
            del changed[place : place + draw.choice((1, 4, 100))]
        elif kind == 3:
            changed[place:place] = changed[place : place + draw.choice((1, 8, 64))]
        elif kind == 4:
            changed[place : place + 8] = struct.pack("<Q", draw.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)))
        elif kind == 5:
            del changed[place:]
        else:
            changed[:] = replaced_value(bytes(changed), draw)
        changed = changed or bytearray(b"\0")
    return bytes(changed)


def replaced_value(content: bytes, draw: random.Random) -> bytes:
    """In JSON and TOML: one value for another."""
    places = [place for place, byte in enumerate(content[:4_000]) if byte in b":="]
    if not places:
        return content
    begin = draw.choice(places) + 1
    end = min((found for mark in b",\n}" if (found := content.find(mark, begin)) > 0), default=len(content))
    return content[:begin] + b" " + draw.choice(WORDS) + content[end:]


def read_model(run: RunDirectory) -> None:
    load(run.model).translate("a b c", beam=2)


def read_checkpoint(run: RunDirectory) -> None:
    model = read_last(run).transformer
    checkpoints.load(run, LAST, model, make_optimizers(model, "adam"))


def read_recipe(run: RunDirectory) -> None:
    recipes.build(recipes.read(run.config))


READERS: dict[str, Callable[[RunDirectory], None]] = {
    "model": read_model,
    "checkpoint": read_checkpoint,
    "recipe": read_recipe,
}


def survived(run: RunDirectory, kind: str, number: int, log: Path) -> int:
    """Read mutated files in a child process; return 0 if only our own errors came."""
    directory = {"model": run.model, "checkpoint": run.checkpoint(LAST), "recipe": run.path}[kind]
    sound = {name: (directory / name).read_bytes() for name in TARGETS[kind]}

    def work() -> int:
        accepted = 0
        for index in range(number):
            draw = random.Random(f"{kind} {index}")
            name = draw.choice(TARGETS[kind])
            content = mutated(sound[name], draw)
            (directory / name).write_bytes(content)
            if kind != "recipe":
                write_manifest(directory)
            print(f"{kind} {index} {name}")
            try:
                READERS[kind](run)
                accepted += 1
            except HeedfulError:
                pass
            (directory / name).write_bytes(sound[name])
        print(f"accepted {accepted} of {number}")
        return 0

    return forked(work, log)


@pytest.fixture
def run(reference: Path, tmp_path: Path) -> RunDirectory:
    run = copy_with(reference, tmp_path / "run", LAST)
    shutil.copytree(reference / "model", run.model)
    return run


@pytest.mark.parametrize("kind", TARGETS)
def test_only_our_errors(run: RunDirectory, kind: str, tmp_path: Path, counted: Callable[[int, str], None]) -> None:
    number = MUTATIONS // 5 if kind == "recipe" else 2 * MUTATIONS // 5
    log = tmp_path / "log.txt"
    assert survived(run, kind, number, log) == 0, log.read_text()[-3_000:]
    accepted = int(log.read_text().split()[-3])
    assert accepted < number
    counted(number, "mutations")


@pytest.mark.parametrize("kind", TARGETS)
def test_control_without_checks(run: RunDirectory, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without validation, some mutation raises a foreign error."""
    if kind == "model":
        monkeypatch.setattr(model_directory, "read_tensors", lambda path, _: safetensors.torch.load_file(path))
    elif kind == "checkpoint":
        unchecked = asdict(checkpoints.Progress())
        unchecked_progress = lambda _, values: SimpleNamespace(**{**unchecked, **values})  # noqa: E731
        monkeypatch.setattr(checkpoints, "build_dataclass", unchecked_progress)
    else:
        monkeypatch.setattr(recipes, "check_type", lambda value, *_: value)
    log = tmp_path / "log.txt"
    assert survived(run, kind, 400, log) != 0
    assert "Traceback" in log.read_text()
