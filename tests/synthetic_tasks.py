"""Synthetic tasks that a Transformer can learn fully: copy, reverse and sort letters.

Each line is a pure function of (seed, index), so a held-out line is one whose index no training file has.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

LETTERS = "abcdefgh"


class Outcome(NamedTuple):
    """The exit code and output of a heedful call."""

    code: int
    out: str
    err: str


Program = Callable[..., Outcome]
Task = Callable[[list[str]], list[str]]
Pairs = list[tuple[str, str]]


def copy(letters: list[str]) -> list[str]:
    return letters


def reverse(letters: list[str]) -> list[str]:
    return letters[::-1]


def sort(letters: list[str]) -> list[str]:
    return sorted(letters)


def line(seed: int, index: int, shortest: int = 3, longest: int = 8) -> str:
    """Letters separated by spaces."""
    draw = random.Random(f"{seed} {index}")
    return " ".join(draw.choices(LETTERS, k=draw.randint(shortest, longest)))


def pairs(task: Task, indices: range, seed: int = 1, shortest: int = 3, longest: int = 8) -> Pairs:
    sources = [line(seed, index, shortest, longest) for index in indices]
    return [(source, " ".join(task(source.split()))) for source in sources]


def held_out(task: Task, count: int, training: Pairs, seed: int = 2, shortest: int = 3, longest: int = 8) -> Pairs:
    """Pairs whose source is in no training pair."""
    seen = {source for source, _ in training}
    candidates = pairs(task, range(20 * count), seed, shortest, longest)
    return [pair for pair in candidates if pair[0] not in seen][:count]


def write(directory: Path, name: str, content: Pairs) -> tuple[Path, Path]:
    """name.src and name.tgt."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = directory / f"{name}.src", directory / f"{name}.tgt"
    for side, path in enumerate(paths):
        path.write_text("".join(f"{pair[side]}\n" for pair in content), encoding="utf-8")
    return paths


# A run of a second or two: three checkpoints, two validations, an epoch border, dropout. In float32, so that it is the
# same run on every processor.
TINY: dict[str, Any] = {
    "data.vocab_size": 300,
    "data.max_length": 40,
    "model.N": 1,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.h": 2,
    "model.dropout": 0.2,
    "training.steps": 12,
    "training.batch_tokens": 64,
    "training.warmup_steps": 4,
    "training.learning_rate": 0.2,
    "training.log_every": 1,
    "training.validate_every": 6,
    "training.save_every": 4,
    "training.average": 3,
    "training.patience": 0,
    "training.threads": 1,
    "training.precision": "fp32",
}


def tiny_corpus(directory: Path) -> dict[str, str]:
    """The four files of a small reversal corpus, as keys of a recipe."""
    write(directory, "train", pairs(reverse, range(80)))
    write(directory, "valid", pairs(reverse, range(80, 86)))
    return corpus_in(directory)


def corpus_in(directory: Path) -> dict[str, str]:
    """The keys of a recipe for train.* and valid.* of a directory."""
    names = {"source": "train.src", "target": "train.tgt", "valid_source": "valid.src", "valid_target": "valid.tgt"}
    return {f"data.{key}": str(directory / name) for key, name in names.items()}


def set_options(settings: dict[str, Any]) -> list[str]:
    """The same settings for the command line."""
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in settings.items()}
    return [part for key, text in texts.items() for part in ("--set", f"{key}={text}")]


def file_options(corpus: dict[str, str]) -> list[str]:
    """A corpus for the command line."""
    return [part for key, path in corpus.items() for part in (key.replace("data.", "--").replace("_", "-"), path)]


def once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """Build a directory once per test session, in whichever worker comes first."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    directory = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            try:
                build(directory)
            except BaseException:
                shutil.rmtree(directory, ignore_errors=True)
                raise
    return directory


def tiny_run(factory: pytest.TempPathFactory) -> Path:
    """A finished run of TINY beside its corpus: RUN is `run`, the text `text`.

    To be read, not written.
    """

    def build(directory: Path) -> None:
        from heedful.training.run import train

        train(out=directory / "run", overrides={**tiny_corpus(directory / "text"), **TINY})

    return once(factory, "tiny", build)


def entries_without_clock(log: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the log entries of a kind, without machine-dependent values."""
    clock = ("seconds", "tokens_per_second")
    return [{key: entry[key] for key in entry if key not in clock} for entry in log if entry["kind"] == kind]
