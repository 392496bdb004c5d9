"""Batches of pairs of similar length within a token budget (section 5.1).

A batch is a pure function of (corpus, seed, number), so resuming a run needs no saved state.

The pairs are sorted by length and cut into batches within the token budget (data/token_budget.py). The boundaries
depend on lengths alone: every epoch has the same number of batches of the same shapes. Each epoch shuffles the order of
the batches, and the pairs within a length bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.config import BOS, PAD
from heedful.data.length_buckets import Numbers, shapes
from heedful.data.store import Ids, Store
from heedful.data.token_budget import bucket_boundaries
from heedful.errors import CorpusError

_EPOCH, _BATCH_ORDER, _RESEGMENTED = (
    1,
    2,
    4,
)  # separate the random streams of one seed; 3 is dropout (training/dropout_schedule.py)
_AFTER_WARMUP = 2**62  # a batch number later than any warmup

Sentence = Ids | list[int]  # with its end token
Resegment = Callable[[list[list[int]], int, int], list[list[int]]]  # (sentences, seed, batch number) → sentences


@dataclass(frozen=True)
class Batch:
    """Right-padded ids.

    The decoder reads `target_in_BT` (shifted right) and predicts `target_out_BT`.
    """

    source_BS: Tensor
    target_in_BT: Tensor
    target_out_BT: Tensor
    tokens: int  # target tokens with the end tokens, without padding
    lines: tuple[int, ...]  # line numbers of the pairs in the text

    def to(self, device: torch.device) -> Batch:
        return replace(
            self,
            source_BS=self.source_BS.to(device, non_blocking=True),
            target_in_BT=self.target_in_BT.to(device, non_blocking=True),
            target_out_BT=self.target_out_BT.to(device, non_blocking=True),
        )


class Batches:
    """The endless sequence of batches of a corpus.

    Memory grows with the number of batches, not of pairs.
    """

    def __init__(
        self, store: Store, batch_tokens: int, seed: int, resegment: Resegment | None = None, bidirectional: int = 0
    ) -> None:
        """Cut the batches.

        `resegment` then samples another segmentation of their sentences (BPE-dropout).

        Every other one of the first `bidirectional` batches is reversed (target to source).
        """
        self._store = store
        self._seed = seed
        self._resegment = resegment
        self._bidirectional = bidirectional
        self._first_G = store.buckets.first
        self._starts = bucket_boundaries(store.buckets, batch_tokens)
        self._shapes = shapes(store.buckets, self._starts)
        self._epoch = -1

    @property
    def per_epoch(self) -> int:
        return len(self._starts) - 1

    def indices(self, number: int) -> Numbers:
        """Return the indices of the pairs in batch `number` (0, 1, …)."""
        epoch, batch = self._place(number)
        begin, end = self._starts[batch : batch + 2]
        buckets = range(
            int(np.searchsorted(self._first_G, begin, side="right")) - 1, int(np.searchsorted(self._first_G, end))
        )
        parts = [self._shuffled(bucket, epoch) for bucket in buckets]
        offset = self._first_G[buckets.start]
        return np.concatenate(parts)[begin - offset : end - offset]

    def __getitem__(self, number: int) -> Batch:
        batch = collate(self._store, self.indices(number))
        if batch.tokens != self.tokens(number):
            raise CorpusError(
                f"The token store {self._store.directory} is damaged: its length order does not match its sentences. "
                "Restore it from a backup, or choose another `--out`."
            )
        batch = self._resegmented(batch, number)
        return reversed_batch(batch) if number < self._bidirectional and number % 2 else batch

    def tokens(self, number: int) -> int:
        """Return the number of target tokens of a batch without reading its sentences."""
        return int(self._shapes.tokens_N[self._place(number)[1]])

    def padding(self) -> float:
        """Return the fraction of padding on both sides, which is the same in every epoch."""
        pairs, source, target, _ = self._shapes
        return 1 - self._store.buckets.tokens / int((pairs * (source + target)).sum())

    def worst(self) -> Batch:
        """Return the batch that needs the most memory: the most padded target positions."""
        pairs_N, source_N, target_N, _ = self._shapes
        padded_N, reversed_N = pairs_N * target_N, pairs_N * source_N
        is_reversed = bool(self._bidirectional) and reversed_N.max() > padded_N.max()
        largest = int(np.argmax(reversed_N if is_reversed else padded_N))
        batch = collate(self._store, self._store.by_length[self._starts[largest] : self._starts[largest + 1]])
        batch = self._resegmented(batch, number=_AFTER_WARMUP)
        return reversed_batch(batch) if is_reversed else batch

    def _resegmented(self, batch: Batch, number: int) -> Batch:
        if self._resegment is None:
            return batch
        sides = (unpadded(batch.source_BS), unpadded(batch.target_out_BT))
        seeds = np.random.SeedSequence((self._seed, _RESEGMENTED, number)).generate_state(2)
        sources, targets = (self._resegment(side, int(seed), number) for side, seed in zip(sides, seeds, strict=True))
        return assemble(sources, targets, batch.lines)

    def _place(self, number: int) -> tuple[int, int]:
        """Return the epoch, and the position of the batch in the length order."""
        epoch, place = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            self._batch_order = np.random.default_rng((self._seed, _BATCH_ORDER, epoch)).permutation(self.per_epoch)
            self._epoch = epoch
        return epoch, int(self._batch_order[place])

    def _shuffled(self, bucket: int, epoch: int) -> Numbers:
        """Return the pairs of a bucket, shuffled anew in each epoch."""
        members: Numbers = self._store.by_length[self._first_G[bucket] : self._first_G[bucket + 1]]
        return np.random.default_rng((self._seed, _EPOCH, epoch, bucket)).permutation(members)


def collate(store: Store, indices: Numbers | list[int]) -> Batch:
    """Return the pairs at `indices` as one padded batch."""
    return assemble(
        [store.source(int(i)) for i in indices],
        [store.target(int(i)) for i in indices],
        tuple(store.line(int(i)) for i in indices),
    )


def assemble(sources: Sequence[Sentence], targets: Sequence[Sentence], lines: tuple[int, ...]) -> Batch:
    """Return a batch of sentences given as ids with end tokens."""
    return _batch(pad(sources), pad(targets), lines)


def reversed_batch(batch: Batch) -> Batch:
    """Return the same pairs from target to source."""
    return _batch(batch.target_out_BT, batch.source_BS, batch.lines)


def _batch(source_BS: Tensor, target_out_BT: Tensor, lines: tuple[int, ...]) -> Batch:
    tokens = int((target_out_BT != PAD).sum())
    return Batch(source_BS, shift_right(target_out_BT), target_out_BT, tokens, lines)


def shift_right(target_BT: Tensor) -> Tensor:
    """Return the decoder's input: start token, then target without end token (section 3.1)."""
    shifted_BT = torch.full_like(target_BT, BOS)
    shifted_BT[:, 1:] = target_BT[:, :-1]
    # In shorter rows the shift moves the end token into the padding, where it counts as padding.
    shifted_BT[target_BT == PAD] = PAD
    return shifted_BT


def unpadded(ids_BT: Tensor) -> list[list[int]]:
    return [[token for token in row if token != PAD] for row in ids_BT.tolist()]


def pad(sentences: Sequence[Sentence]) -> Tensor:
    """Return one row per sentence, right-padded to the longest."""
    padded: npt.NDArray[Any] = np.full((len(sentences), max(map(len, sentences))), PAD, np.int64)
    for row, ids in enumerate(sentences):
        padded[row, : len(ids)] = ids
    return torch.from_numpy(padded)
