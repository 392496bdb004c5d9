"""The pairs of a corpus in order of length, and where batches are cut from that order.

Pairs of one source and one target length are a bucket. There are a few thousand buckets, however large the corpus: all
that is known of batches before they are read comes from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

Lengths = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
Chunk = tuple[Lengths, Lengths]  # of the sources and targets of pairs that follow one another

_SPAN = 2**31  # above every length


class LengthBuckets(NamedTuple):
    """Pairs alike in both lengths, in order: tokens of their source, of their target, and how many they are."""

    source_G: Numbers
    target_G: Numbers
    count_G: Numbers

    @property
    def first(self) -> Numbers:
        """Where each bucket begins in the order; one more than buckets, the last the number of all pairs."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.count_G)])

    @property
    def tokens(self) -> int:
        """Of both sides of all pairs."""
        return int((self.count_G * self.source_G).sum()) + self.target_tokens

    @property
    def reversed(self) -> LengthBuckets:
        """The same pairs, from target to source; batches are cut at the same places."""
        return LengthBuckets(self.target_G, self.source_G, self.count_G)

    @property
    def target_tokens(self) -> int:
        return int((self.count_G * self.target_G).sum())


class Shapes(NamedTuple):
    """Of every batch: pairs, longest source and target, and real target tokens."""

    pairs_N: Numbers
    source_N: Numbers
    target_N: Numbers
    tokens_N: Numbers


def length_buckets(chunks: Iterable[Chunk]) -> LengthBuckets:
    """The buckets of a corpus that is read a chunk at a time, in their order: by target length, then source length.

    Source lengths go up within one target length and down within the next, so that neighbours are alike
    across the border too.
    """
    every, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for source, target in chunks:
        keys, count = np.unique(_keys(source, target), return_counts=True)
        every, where = np.unique(np.concatenate([every, keys]), return_inverse=True)
        both = np.concatenate([counts, count])
        counts = np.zeros(len(every), np.int64)
        np.add.at(counts, where, both)
    target_G, within_G = every // _SPAN, every % _SPAN
    return LengthBuckets(np.where(target_G % 2 == 1, _SPAN - 1 - within_G, within_G), target_G, counts)


def write_order(chunks: Iterable[Chunk], buckets: LengthBuckets, file: IO[bytes]) -> None:
    """Writes the numbers of all pairs in the order of their buckets, as they come within one.

    A number goes to its place in the file at once: the order of a large corpus is never in memory.
    """
    keys_G = _keys(buckets.source_G, buckets.target_G)
    next_G = buckets.first[:-1].copy()
    begin = 0
    for source, target in chunks:
        keys = _keys(source, target)
        sorted_by_key = np.argsort(keys, kind="stable")
        found, first = np.unique(keys[sorted_by_key], return_index=True)
        parts = np.split(begin + sorted_by_key, first[1:])
        for place, numbers in zip(np.searchsorted(keys_G, found), parts, strict=True):
            file.seek(int(next_G[place]) * numbers.itemsize)
            file.write(numbers.tobytes())
            next_G[place] += len(numbers)
        begin += len(keys)


def _keys(source: Lengths | Numbers, target: Lengths | Numbers) -> Numbers:
    """Numbers that sort as the buckets do."""
    source, target = source.astype(np.int64), target.astype(np.int64)
    return target * _SPAN + np.where(target % 2 == 1, _SPAN - 1 - source, source)


def cut(buckets: LengthBuckets, batch_tokens: int) -> Numbers:
    """Borders of the batches: as many pairs as keep both padded sides within the budget, and at least one."""
    starts, begin, size, longest = [0], 0, 0, 0
    for length, left in zip(
        np.maximum(buckets.source_G, buckets.target_G).tolist(), buckets.count_G.tolist(), strict=True
    ):
        while left:
            longest = max(longest, length)
            fitting = min(left, max(batch_tokens // longest - size, 0 if size else 1))
            begin, size, left = begin + fitting, size + fitting, left - fitting
            if left:  # the batch is full
                starts.append(begin)
                size = longest = 0
    return np.array([*starts, begin], np.int64)


def shapes(buckets: LengthBuckets, starts: Numbers) -> Shapes:
    """What the batches between these borders are like; the same in every epoch."""
    first_G = buckets.first
    borders = np.union1d(first_G[:-1], starts[:-1])  # every chunk between them is of one bucket and in one batch
    bucket = np.searchsorted(first_G, borders, side="right") - 1
    pairs = np.diff(borders, append=first_G[-1])
    of_batch = np.searchsorted(borders, starts[:-1])
    return Shapes(
        np.diff(starts),
        np.maximum.reduceat(buckets.source_G[bucket], of_batch),
        np.maximum.reduceat(buckets.target_G[bucket], of_batch),
        np.add.reduceat(buckets.target_G[bucket] * pairs, of_batch),
    )
