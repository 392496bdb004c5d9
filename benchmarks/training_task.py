"""The training benchmark's task: one model shape and one list of batches."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

PAD, UNK, BOS, EOS = 0, 1, 2, 3

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    N: int
    d_model: int
    d_ff: int
    h: int
    vocab_size: int
    dropout: float = 0.1
    label_smoothing: float = 0.1


@dataclass(frozen=True)
class Rows:
    """One batch: right-padded ids of the source, the shifted target and the labels."""

    source: Ids
    target_in: Ids
    target_out: Ids

    @property
    def tokens(self) -> int:
        """Return the number of real target tokens, the unit of speed."""
        return int((self.target_out != PAD).sum())

    @property
    def source_tokens(self) -> int:
        return int((self.source != PAD).sum())

    @property
    def padding(self) -> float:
        """Return the fraction of padding over both sides."""
        real = self.source_tokens + self.tokens
        return 1 - real / (self.source.size + self.target_out.size)


@dataclass(frozen=True)
class Task:
    shape: Shape
    batches: list[Rows]


def write_task(task: Task, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "shape.json").write_text(json.dumps(asdict(task.shape)), encoding="utf-8")
    arrays = {f"{name}{i}": getattr(rows, name) for i, rows in enumerate(task.batches) for name in Rows.__annotations__}
    np.savez(directory / "batches.npz", **arrays)


def read_task(directory: Path) -> Task:
    shape = Shape(**json.loads((directory / "shape.json").read_text(encoding="utf-8")))
    with np.load(directory / "batches.npz") as arrays:
        count = len(arrays.files) // 3
        batches = [Rows(*(arrays[f"{name}{i}"] for name in Rows.__annotations__)) for i in range(count)]
    return Task(shape, batches)
