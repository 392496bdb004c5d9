"""Batches: pairs of about the same length within a token budget (section 5.1).

A batch is a pure function of (corpus, seed, number): nothing has to be saved to take up a run where it stopped.

Pairs are in order of length, and cut wherever one more would exceed the budget (data/lengths.py). The cuts depend on
lengths alone, so every epoch has the same number of batches of the same shapes; what changes from epoch to epoch is
which sentences of equal length go together, and the order of the batches.
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
from heedful.data.lengths import Numbers, cut, shapes
from heedful.data.store import Ids, Store
from heedful.errors import CorpusError

_EPOCH, _BATCH_ORDER, _RESEGMENTED = 1, 2, 4  # keep the random streams of one seed apart; 3 is dropout's
_LATE = 2**62  # the number of a batch that comes after every warm-up

Sentence = Ids | list[int]  # with its end symbol
Resegment = Callable[[list[list[int]], int, int], list[list[int]]]  # of sentences, a seed and the batch's number


@dataclass(frozen=True)
class Batch:
    """Right-padded ids. The decoder reads `target_in_BT` (shifted right) and is to say `target_out_BT`."""

    source_BS: Tensor
    target_in_BT: Tensor
    target_out_BT: Tensor
    tokens: int  # real target tokens, the end symbol included
    lines: tuple[int, ...]  # where the pairs stand in the text

    def to(self, device: torch.device) -> Batch:
        return replace(
            self,
            source_BS=self.source_BS.to(device, non_blocking=True),
            target_in_BT=self.target_in_BT.to(device, non_blocking=True),
            target_out_BT=self.target_out_BT.to(device, non_blocking=True),
        )


class Batches:
    """The endless sequence of a corpus's batches, by number. It holds a few numbers a batch, and none a pair."""

    def __init__(
        self, store: Store, batch_tokens: int, seed: int, resegment: Resegment | None = None, bidirectional: int = 0
    ) -> None:
        """`resegment` gives sentences in other tokens: batches are cut before it, by the lengths stored.

        Of the first `bidirectional` batches every other one is reversed, from target to source.
        """
        self._store = store
        self._seed = seed
        self._resegment = resegment
        self._bidirectional = bidirectional
        self._first_G = store.buckets.first
        self._starts = cut(store.buckets, batch_tokens)
        self._shapes = shapes(store.buckets, self._starts)
        self._epoch = -1

    @property
    def per_epoch(self) -> int:
        return len(self._starts) - 1

    def indices(self, number: int) -> Numbers:
        """Which pairs are in batch `number` (0, 1, …)."""
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
            raise CorpusError("The token store's order of length is damaged. Train into another --out.")
        batch = self._resegmented(batch, number)
        return reversed_batch(batch) if number < self._bidirectional and number % 2 else batch

    def tokens(self, number: int) -> int:
        """Real target tokens of a batch, without reading it."""
        return int(self._shapes.tokens_N[self._place(number)[1]])

    def padding(self) -> float:
        """The share of all positions of both sides that is padding; the same for every epoch."""
        pairs, source, target, _ = self._shapes
        return 1 - self._store.buckets.tokens / int((pairs * (source + target)).sum())

    def worst(self) -> Batch:
        """The batch that needs most memory: logits and activations grow with the padded target positions."""
        pairs_N, source_N, target_N, _ = self._shapes
        padded_N, reversed_N = pairs_N * target_N, pairs_N * source_N
        is_reversed = bool(self._bidirectional) and reversed_N.max() > padded_N.max()
        largest = int(np.argmax(reversed_N if is_reversed else padded_N))
        batch = collate(self._store, self._store.by_length[self._starts[largest] : self._starts[largest + 1]])
        batch = self._resegmented(batch, number=_LATE)
        return reversed_batch(batch) if is_reversed else batch

    def _resegmented(self, batch: Batch, number: int) -> Batch:
        if self._resegment is None:
            return batch
        sides = (unpadded(batch.source_BS), unpadded(batch.target_out_BT))
        seeds = np.random.SeedSequence((self._seed, _RESEGMENTED, number)).generate_state(2)
        sources, targets = (self._resegment(side, int(seed), number) for side, seed in zip(sides, seeds, strict=True))
        return assemble(sources, targets, batch.lines)

    def _place(self, number: int) -> tuple[int, int]:
        """The epoch, and which of its batches in order of length."""
        epoch, place = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            self._batch_order = np.random.default_rng((self._seed, _BATCH_ORDER, epoch)).permutation(self.per_epoch)
            self._epoch = epoch
        return epoch, int(self._batch_order[place])

    def _shuffled(self, bucket: int, epoch: int) -> Numbers:
        """Pairs of equal lengths change places with each other from epoch to epoch; nothing else does."""
        members: Numbers = self._store.by_length[self._first_G[bucket] : self._first_G[bucket + 1]]
        return np.random.default_rng((self._seed, _EPOCH, epoch, bucket)).permutation(members)


def collate(store: Store, indices: Numbers | list[int]) -> Batch:
    """The pairs at `indices`, padded to one rectangle a side."""
    return assemble(
        [store.source(int(i)) for i in indices],
        [store.target(int(i)) for i in indices],
        tuple(int(store.lines[int(i)]) for i in indices),
    )


def assemble(sources: Sequence[Sentence], targets: Sequence[Sentence], lines: tuple[int, ...]) -> Batch:
    """Padded, and the target shifted right for the decoder to read."""
    return _batch(pad(sources), pad(targets), lines)


def reversed_batch(batch: Batch) -> Batch:
    """The same pairs, from target to source."""
    return _batch(batch.target_out_BT, batch.source_BS, batch.lines)


def _batch(source_BS: Tensor, target_out_BT: Tensor, lines: tuple[int, ...]) -> Batch:
    target_in_BT = torch.full_like(target_out_BT, BOS)
    target_in_BT[:, 1:] = target_out_BT[:, :-1]
    padding_BT = target_out_BT == PAD
    # Behind the shorter sentences stands padding alone, not the end symbol that the shift has moved there.
    target_in_BT[padding_BT] = PAD
    return Batch(source_BS, target_in_BT, target_out_BT, int((~padding_BT).sum()), lines)


def unpadded(ids_BT: Tensor) -> list[list[int]]:
    return [[token for token in row if token != PAD] for row in ids_BT.tolist()]


def pad(sentences: Sequence[Sentence]) -> Tensor:
    """Right-padded to the longest: one row a sentence."""
    padded: npt.NDArray[Any] = np.full((len(sentences), max(map(len, sentences))), PAD, np.int64)
    for row, ids in enumerate(sentences):
        padded[row, : len(ids)] = ids
    return torch.from_numpy(padded)
