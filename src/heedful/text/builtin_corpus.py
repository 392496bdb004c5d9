"""The built-in corpus as a training corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from heedful import grammar
from heedful.text.corpus import Pair

VALIDATION_PAIRS = 1_000


@dataclass(frozen=True)
class BuiltinCorpus:
    """The first `size` distinct sentence pairs of a split."""

    split: str
    size: int

    def files(self) -> tuple[Path, ...]:
        """Return no files, because the corpus is generated."""
        return ()

    def require_files(self) -> None:
        """Do nothing: there are no files."""

    def count(self) -> int:
        return self.size

    def pairs(self) -> Iterator[Pair]:
        for pair in grammar.pairs(self.split, self.size):
            yield Pair(pair.english, pair.german)

    def stamp(self) -> str:
        """Return an empty stamp: there are no files."""
        return ""

    def digest(self) -> str:
        """Return a digest of split, size and a thousand sentences; it depends on the grammar."""
        return _digest(self)


@lru_cache(maxsize=8)
def _digest(corpus: BuiltinCorpus) -> str:
    total = hashlib.sha256()
    for pair in BuiltinCorpus(corpus.split, min(corpus.size, 1_000)).pairs():
        total.update(f"{pair.source}\n{pair.target}\n".encode())
    total.update(f"{corpus.split} {corpus.size}".encode())
    return total.hexdigest()
