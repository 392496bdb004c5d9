"""Convert a treebank to parallel text for training: words and linearized trees."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import CorpusError
from heedful.formatting import plural
from heedful.parsing.linearization import linearize
from heedful.parsing.trees import read_trees, to_bracketed

SPLITS = ("train", "valid", "test")
WORDS, TREES, GOLD = "words", "trees", "gold"
SUFFIX = ".mrg"

# The standard split of the Wall Street Journal, by section.
_WSJ_SECTIONS = {**{f"{number:02d}": "train" for number in range(2, 22)}, "22": "valid", "23": "test"}


@dataclass(frozen=True)
class SplitSummary:
    """The size of one split."""

    name: str
    files: int
    trees: int
    words: int

    def __str__(self) -> str:
        return f"{self.name}: {plural(self.files, 'file')}, {plural(self.trees, 'tree')}, {plural(self.words, 'word')}"


def treebank_files(top: Path) -> list[Path]:
    """Return all .mrg files below a directory, sorted by path."""
    if not top.is_dir():
        raise CorpusError(
            f"Directory {top} does not exist. Pass the directory that contains the treebank's {SUFFIX} files."
        )
    paths = (Path(folder, name) for folder, _, names in os.walk(top) for name in names if name.endswith(SUFFIX))
    return sorted(paths)


def split_files(files: list[Path]) -> dict[str, list[Path]]:
    """Return the files of each split; whole files, so that no article is in two splits.

    Files in directories named 02 to 23 follow the sections of the Wall Street Journal: 02-21 train, 22 validation,
    23 test. Otherwise, sorted by path, the last tenth is test and the tenth before it validation.
    """
    by_section = [(_WSJ_SECTIONS.get(path.parent.name), path) for path in files]
    if set(SPLITS) <= {split for split, _ in by_section}:
        return {name: [path for split, path in by_section if split == name] for name in SPLITS}
    if len(files) < len(SPLITS):
        raise CorpusError(
            f"{len(files)} {SUFFIX} file{'s' * (len(files) != 1)} found. Training, validation and test need "
            "at least one file each. Pass a directory with three or more."
        )
    tenth = max(1, round(len(files) / 10))
    train = len(files) - 2 * tenth
    return {"train": files[:train], "valid": files[train : train + tenth], "test": files[train + tenth :]}


def output_file_names() -> set[str]:
    """Return the names of all files that `write_splits` writes."""
    return {f"{split}.{kind}" for split in SPLITS for kind in (WORDS, TREES, GOLD)}


def write_splits(splits: dict[str, list[Path]], out: Path) -> list[SplitSummary]:
    """Write NAME.words (source), NAME.trees (target) and NAME.gold (reference) per split."""
    return [_write_split(name, files, out) for name, files in splits.items()]


def _write_split(name: str, files: list[Path], out: Path) -> SplitSummary:
    trees = [tree for path in files for tree in read_trees(path)]
    if not trees:
        raise CorpusError(f"{files[0]} and the other {name} files contain no trees. Provide bracketed trees.")
    _write_lines(out / f"{name}.{WORDS}", (" ".join(tree.words) for tree in trees))
    _write_lines(out / f"{name}.{TREES}", (linearize(tree.brackets, tree.tags) for tree in trees))
    _write_lines(out / f"{name}.{GOLD}", map(to_bracketed, trees))
    return SplitSummary(name, len(files), len(trees), sum(len(tree.words) for tree in trees))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))
