"""From a treebank to text that a model can be trained on: words and linearised trees, line by line, in three parts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import CorpusError
from heedful.parsing.linearization import linearize
from heedful.parsing.trees import read_trees, to_bracketed

SPLITS = ("train", "valid", "test")
WORDS, TREES, GOLD = "words", "trees", "gold"
SUFFIX = ".mrg"

# The split of the Wall Street Journal that parsers are compared on, by section.
_WSJ_SECTIONS = {**{f"{number:02d}": "train" for number in range(2, 22)}, "22": "valid", "23": "test"}


@dataclass(frozen=True)
class SplitSummary:
    """What of a treebank went into one part."""

    name: str
    files: int
    trees: int
    words: int

    def __str__(self) -> str:
        return f"{self.name}: {self.files:,} files, {self.trees:,} trees, {self.words:,} words"


def treebank_files(top: Path) -> list[Path]:
    """All *.mrg below a directory, by name."""
    if not top.is_dir():
        raise CorpusError(f"There is no directory {top}. Give the one that has the treebank's {SUFFIX} files.")
    found = (Path(folder, name) for folder, _, names in os.walk(top) for name in names if name.endswith(SUFFIX))
    return sorted(found)


def split_files(files: list[Path]) -> dict[str, list[Path]]:
    """Whole files, so that no article is in two parts.

    Where they lie in folders 02 to 23, the sections of the Wall Street Journal: 02-21 train, 22 validation, 23 test.
    Elsewhere by name: the last tenth test, the tenth before it validation, at least one file each.
    """
    by_section = [(_WSJ_SECTIONS.get(path.parent.name), path) for path in files]
    if set(SPLITS) <= {split for split, _ in by_section}:
        return {name: [path for split, path in by_section if split == name] for name in SPLITS}
    if len(files) < len(SPLITS):
        raise CorpusError(
            f"{len(files)} {SUFFIX} file{'s' * (len(files) != 1)} found; training, validation and test text need "
            "at least one each."
        )
    tenth = max(1, round(len(files) / 10))
    train = len(files) - 2 * tenth
    return {"train": files[:train], "valid": files[train : train + tenth], "test": files[train + tenth :]}


def output_file_names() -> set[str]:
    """The names of all that `write_parts` writes."""
    return {f"{split}.{kind}" for split in SPLITS for kind in (WORDS, TREES, GOLD)}


def write_splits(splits: dict[str, list[Path]], out: Path) -> list[SplitSummary]:
    """For each part: NAME.words and NAME.trees (the model's two sides) and NAME.gold (bracketed, to score by)."""
    return [_write_split(name, files, out) for name, files in splits.items()]


def _write_split(name: str, files: list[Path], out: Path) -> SplitSummary:
    trees = [tree for path in files for tree in read_trees(path)]
    if not trees:
        raise CorpusError(f"{files[0]} and the other files of the {name} part have no trees.")
    _write_lines(out / f"{name}.{WORDS}", (" ".join(tree.words) for tree in trees))
    _write_lines(out / f"{name}.{TREES}", (linearize(tree.brackets, tree.tags) for tree in trees))
    _write_lines(out / f"{name}.{GOLD}", map(to_bracketed, trees))
    return SplitSummary(name, len(files), len(trees), sum(len(tree.words) for tree in trees))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))
