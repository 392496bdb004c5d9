"""The pairs of a corpus in order of length, and where batches are cut from that order.

Pairs of one source and one target length are a group. There are a few thousand groups, however large the corpus: all
that is known of batches before they are read comes from them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Lengths = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


class Groups(NamedTuple):
    """Pairs alike in both lengths, in order: pieces of their source, of their target, and how many they are."""

    source_G: Numbers
    target_G: Numbers
    count_G: Numbers

    @property
    def first(self) -> Numbers:
        """Where each group begins in the order; one more than groups, the last the number of all pairs."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.count_G)])

    @property
    def pieces(self) -> int:
        """Of both sides of all pairs."""
        return int((self.count_G * (self.source_G + self.target_G)).sum())


class Shapes(NamedTuple):
    """Of every batch: pairs, longest source and target, and real target pieces."""

    pairs_N: Numbers
    source_N: Numbers
    target_N: Numbers
    tokens_N: Numbers


def order_by_length(source_lengths: Lengths, target_lengths: Lengths) -> tuple[Numbers, Groups]:
    """An order of the pairs by target length, then source length, and its groups.

    Source lengths go up within one target length and down within the next, so that neighbours are alike
    across the border too.
    """
    span = int(source_lengths.max(initial=0)) + 1
    down = target_lengths % 2 == 1
    key = target_lengths.astype(np.int64) * span + np.where(down, span - 1 - source_lengths, source_lengths)
    order = np.argsort(key, kind="stable")
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    ones = order[first]
    return order, Groups(source_lengths[ones].astype(np.int64), target_lengths[ones].astype(np.int64), count)


def cut(groups: Groups, batch_tokens: int) -> Numbers:
    """Borders of the batches: as many pairs as keep both padded sides within the budget, and at least one."""
    starts, begin, size, longest = [0], 0, 0, 0
    for length, left in zip(
        np.maximum(groups.source_G, groups.target_G).tolist(), groups.count_G.tolist(), strict=True
    ):
        while left:
            longest = max(longest, length)
            fitting = min(left, max(batch_tokens // longest - size, 0 if size else 1))
            begin, size, left = begin + fitting, size + fitting, left - fitting
            if left:  # the batch is full
                starts.append(begin)
                size = longest = 0
    return np.array([*starts, begin], np.int64)


def shapes(groups: Groups, starts: Numbers) -> Shapes:
    """What the batches between these borders are like; the same in every epoch."""
    first_G = groups.first
    borders = np.union1d(first_G[:-1], starts[:-1])  # every stretch between them is of one group and in one batch
    group = np.searchsorted(first_G, borders, side="right") - 1
    pairs = np.diff(borders, append=first_G[-1])
    of_batch = np.searchsorted(borders, starts[:-1])
    return Shapes(
        np.diff(starts),
        np.maximum.reduceat(groups.source_G[group], of_batch),
        np.maximum.reduceat(groups.target_G[group], of_batch),
        np.add.reduceat(groups.target_G[group] * pairs, of_batch),
    )
