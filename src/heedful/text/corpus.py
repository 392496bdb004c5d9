"""Parallel corpora: files in which line n of one side translates line n of the other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from heedful.errors import CorpusError, cause
from heedful.formatting import plural
from heedful.text.pair_files import Pair as Pair
from heedful.text.pair_files import kind_of, read_pairs
from heedful.text.text_files import read_lines


class ParallelText(Protocol):
    """Text to train on or validate with: files, part of their pairs, or the built-in corpus."""

    def files(self) -> tuple[Path, ...]: ...
    def require_files(self) -> None: ...
    def count(self) -> int: ...
    def pairs(self) -> Iterator[Pair]: ...
    def stamp(self) -> str: ...
    def digest(self) -> str: ...


@dataclass(frozen=True)
class Corpus:
    """Source and target files in order; `target` is empty if source files have both sides."""

    source: tuple[Path, ...]
    target: tuple[Path, ...]

    @classmethod
    def of(cls, source: tuple[str, ...], target: tuple[str, ...], name: str) -> Corpus:
        if not source:
            keys = "data.valid_source and data.valid_target" if name == "validation" else "data.source and data.target"
            raise CorpusError(f"No {name} text given. Set {keys}.")
        tables = [bool(kind_of(file)) for file in source]
        if all(tables) and not target:
            return cls(tuple(map(Path, source)), ())
        if any(tables) or any(bool(kind_of(file)) for file in target):
            raise CorpusError(
                f"The {name} text mixes .tsv, .jsonl or .tmx with other files. Such a file has both sides: "
                "pass it only as source."
            )
        if len(source) != len(target):
            raise CorpusError(
                f"The {name} text has {len(source)} source and {len(target)} target files. "
                "Pass one target file per source file, in the same order."
            )
        return cls(tuple(map(Path, source)), tuple(map(Path, target)))

    def files(self) -> tuple[Path, ...]:
        return self.source + self.target

    def pairs(self) -> Iterator[Pair]:
        """Yield all pairs. Raise if the sides differ in length or a file is empty."""
        if not self.target:
            for table in self.source:
                yield from read_pairs(table)
        else:
            for source, target in zip(self.source, self.target, strict=True):
                yield from read_sides(source, target)

    def require_files(self) -> None:
        """Raise before any work for a missing file, or a pipe, which cannot be read twice."""
        for path in self.files():
            if path.is_fifo() or path.is_char_device():
                raise CorpusError(
                    f"{path} is a pipe or a device, but training reads its text several times. "
                    "Write the text to a file first."
                )
            next(read_lines(path), None)

    def count(self) -> int:
        return sum(1 for _ in self.pairs())

    def stamp(self) -> str:
        """Return sizes, times and inodes of the files, which change when a file is written."""
        try:
            known = [path.stat() for path in self.files()]
        except OSError:
            return ""  # `digest` raises the error
        return " ".join(f"{one.st_size}:{one.st_mtime_ns}:{one.st_ctime_ns}:{one.st_ino}" for one in known)

    def digest(self) -> str:
        """Return the SHA-256 of all files in order, to recognise the corpus of a run."""
        total = hashlib.sha256()
        for path in self.files():
            try:
                with path.open("rb") as stream:
                    total.update(hashlib.file_digest(stream, "sha256").digest())
            except FileNotFoundError:
                raise CorpusError(f"File {path} does not exist. Check the path.") from None
            except OSError as error:
                raise CorpusError(f"Cannot read {path}: {cause(error)}. Check the file and its permissions.") from None
        return total.hexdigest()


def read_sides(source: Path, target: Path) -> Iterator[Pair]:
    lines = 0
    for left, right in zip_longest(read_lines(source), read_lines(target)):
        if left is None or right is None:
            counts = [sum(1 for _ in read_lines(side)) for side in (source, target)]
            raise CorpusError(
                f"The two sides differ in length: {source} has {plural(counts[0], 'line')}, "
                f"{target} has {counts[1]:,}. Line {lines + 1} has no counterpart. "
                "Line n of one file must be the translation of line n of the other."
            )
        lines += 1
        yield Pair(left, right)
    if not lines:
        raise CorpusError(f"{source} and {target} are empty. Pass files with at least one line of text each.")


def clean(text: str, lowercase: bool) -> str:
    """Return a line as the tokenizer receives it, in training and in translation alike."""
    text = text.strip()
    return text.lower() if lowercase else text
