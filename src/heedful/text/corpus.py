"""A parallel corpus: files whose n-th lines are translations of each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from heedful.errors import CorpusError
from heedful.formatting import plural
from heedful.text.text_files import read_lines


class Pair(NamedTuple):
    source: str
    target: str


@dataclass(frozen=True)
class Corpus:
    """Files of both sides in order; `target` is empty where every source file is a .tsv with both sides."""

    source: tuple[Path, ...]
    target: tuple[Path, ...]

    @classmethod
    def of(cls, source: tuple[str, ...], target: tuple[str, ...], name: str) -> Corpus:
        if not source:
            raise CorpusError(f"No {name} text was given.")
        tables = [is_table(file) for file in source]
        if all(tables) and not target:
            return cls(tuple(map(Path, source)), ())
        if any(tables) or any(is_table(file) for file in target):
            raise CorpusError(
                f"The {name} text mixes .tsv with other files. A .tsv file has both sides: give it as the source alone."
            )
        if len(source) != len(target):
            raise CorpusError(
                f"The {name} text has {len(source)} source and {len(target)} target files; "
                "each source file needs its target file, in the same order."
            )
        return cls(tuple(map(Path, source)), tuple(map(Path, target)))

    def files(self) -> tuple[Path, ...]:
        return self.source + self.target

    def pairs(self) -> Iterator[Pair]:
        """All pairs, streamed; sides of unequal length and empty files are errors."""
        if not self.target:
            for table in self.source:
                yield from read_table(table)
        else:
            for source, target in zip(self.source, self.target, strict=True):
                yield from read_sides(source, target)

    def require_files(self) -> None:
        """A missing file is said before any work is done."""
        for path in self.files():
            next(read_lines(path), None)

    def count(self) -> int:
        return sum(1 for _ in self.pairs())

    def stamp(self) -> str:
        """What changes when somebody writes to a file: its size and times, and which file it is."""
        try:
            known = [path.stat() for path in self.files()]
        except OSError:
            return ""  # `digest` says what is wrong
        return " ".join(f"{one.st_size}:{one.st_mtime_ns}:{one.st_ctime_ns}:{one.st_ino}" for one in known)

    def digest(self) -> str:
        """sha256 over the bytes of all files, in order: is this the corpus a run began with?"""
        total = hashlib.sha256()
        for path in self.files():
            try:
                with path.open("rb") as stream:
                    total.update(hashlib.file_digest(stream, "sha256").digest())
            except FileNotFoundError:
                raise CorpusError(f"There is no file {path}.") from None
            except OSError as error:
                raise CorpusError(f"{path} cannot be read: {error}.") from None
        return total.hexdigest()


def is_table(name: str) -> bool:
    return name.removesuffix(".gz").endswith(".tsv")


def read_sides(source: Path, target: Path) -> Iterator[Pair]:
    lines = 0
    for left, right in zip_longest(read_lines(source), read_lines(target)):
        if left is None or right is None:
            counts = [sum(1 for _ in read_lines(side)) for side in (source, target)]
            raise CorpusError(
                f"The two sides differ in length: {source} has {plural(counts[0], 'line')}, "
                f"{target} has {counts[1]:,}. "
                f"Line {lines + 1} has no partner: line n of one file must be the translation of line n of the other."
            )
        lines += 1
        yield Pair(left, right)
    if not lines:
        raise CorpusError(f"{source} and {target} are empty. Give files with at least one line of text each.")


def read_table(path: Path) -> Iterator[Pair]:
    lines = 0
    for lines, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise CorpusError(
                f"{path}:{lines}: {len(columns)} column{'s' * (len(columns) != 1)} instead of 2: "
                "a .tsv has a source, a tab and its target on each line."
            )
        yield Pair(columns[0], columns[1])
    if not lines:
        raise CorpusError(f"{path} is empty. Give a file with a source, a tab and its target on each line.")


def clean(text: str, lowercase: bool) -> str:
    """What every line goes through before the tokenizer, in training and in use alike."""
    text = text.strip()
    return text.lower() if lowercase else text
