"""Length buckets: the pairs of a corpus sorted by length.

A bucket holds the pairs with the same source length and the same target length. Even a large corpus has only a few
thousand buckets, and the shapes of all batches follow from them without reading a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

Lengths = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
Chunk = tuple[Lengths, Lengths]  # source and target lengths of consecutive pairs

_SPAN = 2**31  # larger than any length


class LengthBuckets(NamedTuple):
    """Source length, target length and number of pairs of each bucket, in order (G: buckets)."""

    source_G: Numbers
    target_G: Numbers
    count_G: Numbers

    @property
    def first(self) -> Numbers:
        """Return where each bucket begins in the sorted order, then the number of pairs."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.count_G)])

    @property
    def tokens(self) -> int:
        """Return the number of tokens on both sides of all pairs."""
        return int((self.count_G * self.source_G).sum()) + self.target_tokens

    @property
    def reversed(self) -> LengthBuckets:
        """Return the buckets of the same pairs from target to source.

        Batches are cut at the same places.
        """
        return LengthBuckets(self.target_G, self.source_G, self.count_G)

    @property
    def target_tokens(self) -> int:
        return int((self.count_G * self.target_G).sum())


class Shapes(NamedTuple):
    """Per batch: pairs, longest source, longest target, target tokens without padding."""

    pairs_N: Numbers
    source_N: Numbers
    target_N: Numbers
    tokens_N: Numbers


def length_buckets(chunks: Iterable[Chunk]) -> LengthBuckets:
    """Return the buckets of a corpus, sorted by target length and then by source length.

    Source lengths rise within one target length and fall within the next, so that neighbours also stay similar where
    the target length changes.
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
    """Write the indices of all pairs, sorted by bucket and by index within a bucket.

    Each index is written straight to its place in the file, so the order is never held in memory.
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
    """Return sort keys of the buckets."""
    source, target = source.astype(np.int64), target.astype(np.int64)
    return target * _SPAN + np.where(target % 2 == 1, _SPAN - 1 - source, source)


def shapes(buckets: LengthBuckets, starts: Numbers) -> Shapes:
    """Return the shapes of the batches between these boundaries.

    They are the same in every epoch.
    """
    first_G = buckets.first
    borders = np.union1d(first_G[:-1], starts[:-1])  # between two borders: one bucket, one batch
    bucket = np.searchsorted(first_G, borders, side="right") - 1
    pairs = np.diff(borders, append=first_G[-1])
    of_batch = np.searchsorted(borders, starts[:-1])
    return Shapes(
        np.diff(starts),
        np.maximum.reduceat(buckets.source_G[bucket], of_batch),
        np.maximum.reduceat(buckets.target_G[bucket], of_batch),
        np.add.reduceat(buckets.target_G[bucket] * pairs, of_batch),
    )
