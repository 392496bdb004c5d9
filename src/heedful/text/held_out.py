"""Validation text for a corpus without any: held-out pairs, chosen by a hash.

The choice depends on the text of the pairs alone, not on their order, their files or the random seed. Training leaves
out every pair that shares a side with a held-out one; otherwise a model that has learned a source by heart would
score well on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from pathlib import Path

from heedful.errors import CorpusError
from heedful.formatting import plural
from heedful.text.corpus import Corpus, Pair

SHARE = 0.05  # of the pairs
FEWEST, MOST = 20, 1_000  # pairs; validation translates at most MOST lines
FEWEST_IN_ALL = 5 * FEWEST  # distinct pairs: with fewer, holding out FEWEST would leave too little


def size_for(pairs: int) -> int:
    """Return how many of `pairs` pairs are held out."""
    return min(MOST, max(FEWEST, round(SHARE * pairs)))


@dataclass(frozen=True)
class HeldOut:
    """The validation part of a corpus: the `size` distinct pairs with the smallest hashes.

    The pairs are in the order of their hashes. If `size` is 0, `size_for` decides. The corpus is read once, when the
    pairs are first needed.
    """

    corpus: Corpus
    size: int = 0

    @cached_property
    def chosen(self) -> tuple[Pair, ...]:
        """The held-out pairs."""
        most = self.size or MOST
        smallest, read = smallest_pairs(self.corpus.pairs(), most)
        wanted = self.size or size_for(read)
        # `smallest` has all distinct pairs if there are fewer than `most`.
        if len(smallest) < most and len(smallest) < max(wanted, FEWEST_IN_ALL):
            raise CorpusError(
                f"The training text has {plural(len(smallest), 'distinct pair')}: too few to hold out {wanted:,} for "
                f"validation. Provide at least {max(wanted, FEWEST_IN_ALL):,} pairs, or validation files "
                "(`--valid-source`, `--valid-target`)."
            )
        return tuple(smallest[:wanted])

    @cached_property
    def sides(self) -> tuple[frozenset[str], frozenset[str]]:
        """All held-out sources and all held-out targets, normalized."""
        sources, targets = zip(*(map(normalized, pair) for pair in self.chosen), strict=True)
        return frozenset(sources), frozenset(targets)

    def files(self) -> tuple[Path, ...]:
        return self.corpus.files()

    def require_files(self) -> None:
        self.corpus.require_files()

    def count(self) -> int:
        return len(self.chosen)

    def pairs(self) -> Iterator[Pair]:
        yield from self.chosen

    def stamp(self) -> str:
        return self.corpus.stamp()

    def digest(self) -> str:
        return self.corpus.digest()


@dataclass(frozen=True)
class Remaining:
    """The training part: the pairs of a corpus that share no side with a held-out pair."""

    held_out: HeldOut

    @cached_property
    def _count(self) -> int:
        count = sum(1 for _ in self.pairs())
        if not count:
            raise CorpusError(
                "Every pair of the training text has the same source or target as a pair held out for validation. "
                "Pass validation files (`--valid-source`, `--valid-target`), or text with more distinct sentences."
            )
        return count

    def files(self) -> tuple[Path, ...]:
        return self.held_out.files()

    def require_files(self) -> None:
        self.held_out.require_files()

    def count(self) -> int:
        return self._count

    def pairs(self) -> Iterator[Pair]:
        sources, targets = self.held_out.sides
        for pair in self.held_out.corpus.pairs():
            if normalized(pair.source) not in sources and normalized(pair.target) not in targets:
                yield pair

    def stamp(self) -> str:
        return self.held_out.stamp()

    def digest(self) -> str:
        return self.held_out.digest()


def normalized(text: str) -> str:
    """Return a side without differences in case and spacing."""
    return " ".join(text.casefold().split())


def smallest_pairs(pairs: Iterator[Pair], most: int) -> tuple[list[Pair], int]:
    """Return the `most` distinct pairs of smallest hash, and the number of complete pairs.

    Pairs with an empty side are not candidates: they cannot be scored.
    """
    found: dict[int, Pair] = {}
    heap: list[int] = []  # negative hashes: the largest hash comes first
    read = 0
    for pair in pairs:
        source, target = map(normalized, pair)
        if not (source and target):
            continue
        read += 1
        # normalized text has no newline
        number = int.from_bytes(hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=16).digest())
        if number in found:
            found[number] = min(found[number], pair)  # of several spellings, one that does not depend on the order
        elif len(heap) < most or number < -heap[0]:
            found[number] = pair
            heappush(heap, -number)
            if len(heap) > most:
                del found[-heappop(heap)]
    return [found[number] for number in sorted(found)], read
