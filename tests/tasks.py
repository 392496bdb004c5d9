"""Synthetic tasks that a Transformer can learn whole: copy, reverse and sort letters.

Each line is a pure function of (seed, index), so a held-out line is one whose index no training file has.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

LETTERS = "abcdefgh"

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
