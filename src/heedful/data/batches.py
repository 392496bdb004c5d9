"""Batches: pairs of about the same length within a token budget (section 5.1).

A batch is a pure function of (corpus, seed, number): nothing has to be saved to take up a run where it stopped.

Pairs are put in order of length, and cut wherever one more would exceed the budget. The cuts depend on lengths alone,
so every epoch has the same number of batches of the same shapes; what changes from epoch to epoch is which
sentences of equal length go together, and the order of the batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.config import BOS, PAD
from heedful.data.store import Ids, Store

Lengths = npt.NDArray[np.int32]
Order = npt.NDArray[np.int64]

_EPOCH, _BATCH_ORDER = 1, 2  # keep the random streams of one seed apart


@dataclass(frozen=True)
class Batch:
    """Right-padded ids. The decoder reads `target_in_BT` (shifted right) and is to say `target_out_BT`."""

    source_BS: Tensor
    target_in_BT: Tensor
    target_out_BT: Tensor
    tokens: int  # real target pieces, the end symbol included
    lines: tuple[int, ...]  # where the pairs stand in the text

    def to(self, device: torch.device) -> Batch:
        return replace(
            self,
            source_BS=self.source_BS.to(device, non_blocking=True),
            target_in_BT=self.target_in_BT.to(device, non_blocking=True),
            target_out_BT=self.target_out_BT.to(device, non_blocking=True),
        )


class Batches:
    """The endless sequence of a corpus's batches, by number."""

    def __init__(self, store: Store, batch_tokens: int, seed: int) -> None:
        self._store = store
        self._seed = seed
        self.source_lengths = store.lengths("source")
        self.target_lengths = store.lengths("target")
        self._by_length, self._keys = order_by_length(self.source_lengths, self.target_lengths)
        self._starts = cut(self.source_lengths[self._by_length], self.target_lengths[self._by_length], batch_tokens)
        self._epoch = -1

    @property
    def per_epoch(self) -> int:
        return len(self._starts) - 1

    def indices(self, number: int) -> Order:
        """Which pairs are in batch `number` (0, 1, …)."""
        epoch, place = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            self._begin(epoch)
        batch = self._batch_order[place]
        return self._order[self._starts[batch] : self._starts[batch + 1]]

    def __getitem__(self, number: int) -> Batch:
        return collate(self._store, self.indices(number))

    def tokens(self, number: int) -> int:
        """Real target pieces of a batch, without reading it."""
        return int(self.target_lengths[self.indices(number)].sum())

    def padding(self) -> float:
        """The share of all positions of both sides that is padding; the same for every epoch."""
        sizes = np.diff(self._starts)
        real = padded = 0
        for lengths in (self.source_lengths, self.target_lengths):
            longest = np.maximum.reduceat(lengths[self._by_length], self._starts[:-1])
            real += int(lengths.sum())
            padded += int((longest.astype(np.int64) * sizes).sum())
        return 1 - real / padded

    def worst(self) -> Batch:
        """The batch that needs most memory: logits and activations grow with the padded target positions."""
        sizes = np.diff(self._starts)
        longest = np.maximum.reduceat(self.target_lengths[self._by_length], self._starts[:-1])
        largest = int(np.argmax(longest.astype(np.int64) * sizes))
        return collate(self._store, self._by_length[self._starts[largest] : self._starts[largest + 1]])

    def _begin(self, epoch: int) -> None:
        shuffled = np.random.default_rng((self._seed, _EPOCH, epoch)).permutation(len(self._by_length))
        # A stable sort by length of a shuffled order: sentences of equal length change places, nothing else does.
        self._order = shuffled[np.argsort(self._keys[shuffled], kind="stable")]
        self._batch_order = np.random.default_rng((self._seed, _BATCH_ORDER, epoch)).permutation(self.per_epoch)
        self._epoch = epoch


def order_by_length(source_lengths: Lengths, target_lengths: Lengths) -> tuple[Order, npt.NDArray[np.int64]]:
    """An order of the pairs by target length, then source length, and the key that sorts it.

    Source lengths go up within one target length and down within the next, so that neighbours are alike
    across the border too.
    """
    span = int(source_lengths.max()) + 1
    down = target_lengths % 2 == 1
    key = target_lengths.astype(np.int64) * span + np.where(down, span - 1 - source_lengths, source_lengths)
    return np.argsort(key, kind="stable"), key


def cut(source_lengths: Lengths, target_lengths: Lengths, batch_tokens: int) -> Order:
    """Borders of the batches: as many pairs as keep both padded sides within the budget."""
    starts = [0]
    total = len(target_lengths)
    while starts[-1] < total:
        begin = starts[-1]
        most = batch_tokens // int(target_lengths[begin])
        window = slice(begin, min(total, begin + most))
        longest = np.maximum.accumulate(np.maximum(source_lengths[window], target_lengths[window]))
        padded = longest * np.arange(1, len(longest) + 1)
        starts.append(begin + max(1, int(np.searchsorted(padded, batch_tokens, side="right"))))
    return np.array(starts, np.int64)


def collate(store: Store, indices: Order | list[int]) -> Batch:
    """The pairs at `indices`, padded to one rectangle a side."""
    sources = [store.source(int(i)) for i in indices]
    targets = [store.target(int(i)) for i in indices]
    target_out = pad(targets)
    target_in = torch.full_like(target_out, BOS)
    target_in[:, 1:] = target_out[:, :-1]
    # Behind the shorter sentences stands padding alone, not the end symbol that the shift has moved there.
    target_in[target_out == PAD] = PAD
    return Batch(
        source_BS=pad(sources),
        target_in_BT=target_in,
        target_out_BT=target_out,
        tokens=sum(map(len, targets)),
        lines=tuple(int(store.lines[int(i)]) for i in indices),
    )


def pad(sentences: Sequence[Ids | list[int]]) -> Tensor:
    """Right-padded to the longest: one row a sentence."""
    padded: npt.NDArray[Any] = np.full((len(sentences), max(map(len, sentences))), PAD, np.int64)
    for row, ids in enumerate(sentences):
        padded[row, : len(ids)] = ids
    return torch.from_numpy(padded)
