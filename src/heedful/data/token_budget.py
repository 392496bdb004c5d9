"""Token-budget batching (section 5.1): B pairs padded to length T satisfy B × T ≤ budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from heedful.data.length_buckets import LengthBuckets, Numbers


def batch_boundaries(lengths: Sequence[int], counts: Sequence[int], batch_tokens: int) -> list[int]:
    """Cut a sorted sequence into batches that fit the token budget, padding included.

    Each batch has as many items as fit, and at least one. The sequence has counts[0] items of lengths[0], then
    counts[1] items of lengths[1], and so on. Return the index of the first item of each batch, plus the number of items
    as the last entry.
    """
    starts, begin, size, longest = [0], 0, 0, 0
    for length, left in zip(lengths, counts, strict=True):
        while left:
            longest = max(longest, length)
            fitting = min(left, max(batch_tokens // longest - size, 0 if size else 1))
            begin, size, left = begin + fitting, size + fitting, left - fitting
            if left:  # the batch is full
                starts.append(begin)
                size = longest = 0
    return [*starts, begin]


def bucket_boundaries(buckets: LengthBuckets, batch_tokens: int) -> Numbers:
    """Cut the pairs of a corpus, in the order of its length buckets, into batches."""
    lengths = np.maximum(buckets.source_G, buckets.target_G)
    return np.array(batch_boundaries(lengths.tolist(), buckets.count_G.tolist(), batch_tokens), np.int64)


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield the indices in batches, longest first: if memory runs out, it does so at once."""
    longest_first = sorted(range(len(lengths)), key=lambda index: lengths[index])[::-1]
    starts = batch_boundaries([lengths[index] for index in longest_first], [1] * len(lengths), batch_tokens)
    for begin, end in pairwise(starts):
        if begin < end:  # skip the empty batch of an empty sequence
            yield longest_first[begin:end][::-1]
