"""The KV cache: past keys and values, so that a step computes only one position."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from heedful.decoding.decoder import SearchDecoder
from heedful.model.transformer import Memory

_MORE = 1.25  # spare capacity for sentences, so that not every new one copies the cache


class DecoderCache:
    """Decoder state of B sentences with W hypotheses each.

    Rows are sentence-major, B·W of them.

    Keys and values never move. Each step appends W slots to every sentence. A mask marks which of the P slots belong
    to a hypothesis, and only the mask changes when hypotheses are reordered. The W hypotheses of a sentence are W
    queries to all of its slots: more products than needed, but far fewer bytes moved. A sentence may enter while others
    are in progress, also in the row of a finished one, because its mask excludes all earlier slots.

    Keys and values have capacity for more rows and slots than are used; the used part is a view.
    """

    def __init__(self, decoder: SearchDecoder, beam: int) -> None:
        self._decoder = decoder
        self._beam = beam
        self._sentences = 0  # B
        self._longest = 0  # S, tokens of the longest source
        self._first = 0  # steps `first` to `end` - 1 have slots in use
        self._end = 0
        self._memory: list[Tensor] = []  # keys and values of the encoder's output, per layer: 2×B×H×S×K
        self._past: list[Tensor] = []  # keys and values of generated tokens: 2×B×H×P×K
        # Masks are added to scores: 0 where attention may go, -∞ elsewhere.
        self._memory_mask_B11S = torch.zeros(0, 1, 1, 0)
        self._path_BWP = torch.zeros(0, beam, 0)

    @property
    def length(self) -> int:
        """The number of steps whose slots are in use."""
        return self._end - self._first

    def admit(self, memory: Memory, rows: list[int]) -> None:
        """Add encoded sentences, each in a free row or in the next one after all others."""
        states = memory.states_BSD
        S = states.shape[1]
        self._sentences = max(self._sentences, max(rows) + 1)
        self._longest = max(self._longest, S)
        self._make_room(states)
        index = torch.tensor(rows, device=states.device)
        for layer, kept, past in zip(self._decoder.layers, self._memory, self._past, strict=True):
            # Values left by an earlier sentence get weight 0, but 0 times infinity is not 0.
            kept[:, index] = 0.0
            past[:, index] = 0.0
            kept[:, :, :, :S].index_copy_(1, index, layer.memory(states))
        self._memory_mask_B11S[index] = -math.inf
        self._memory_mask_B11S[index, :, :, :S] = 0.0 if memory.mask_B11S is None else _added(memory.mask_B11S, states)
        path_BWP = states.new_full((self._sentences, self._beam, self.length * self._beam), -math.inf)
        path_BWP[: len(self._path_BWP)] = self._path_BWP
        path_BWP[index] = -math.inf
        self._path_BWP = path_BWP

    def step(self, last_R: Tensor, position_R: Tensor) -> Tensor:
        """Return logits R×V of the token after `last_R`, for each of the R = B·W hypotheses."""
        B, W, S = self._sentences, self._beam, self._longest
        x_RD = self._decoder.embedded(last_R, position_R)
        self._lengthen_paths(x_RD)
        first, new, end = self._first * W, self._end * W, (self._end + 1) * W
        memory_mask_B11S = self._memory_mask_B11S[:B, :, :, :S]
        for layer, memory, past in zip(self._decoder.layers, self._memory, self._past, strict=True):
            query_BHWK, past[:, :B, :, new:end] = layer.queries_and_new(x_RD, B)
            x_RD = layer.step(
                x_RD,
                query_BHWK,
                past[:, :B, :, first:end],
                self._path_BWP[:, None],
                memory[:, :B, :, :S],
                memory_mask_B11S,
            )
        self._end += 1
        return self._decoder.logits(x_RD)

    def follow(self, origins_BW: Tensor) -> None:
        """Let each hypothesis continue hypothesis `origins_BW` (0 … W-1) of the same sentence."""
        if self._beam > 1:
            self._path_BWP = self._path_BWP.gather(1, origins_BW[:, :, None].expand_as(self._path_BWP))

    def narrow(self, steps: int, longest: int) -> None:
        """Drop slots before the last `steps` steps and source positions after `longest`."""
        first = self._end - steps
        self._path_BWP = self._path_BWP[:, :, (first - self._first) * self._beam :]
        self._first, self._longest = first, longest

    def keep(self, rows: list[int]) -> None:
        """Keep only the sentences of these rows, as rows 0, 1, …, and free the others' memory."""
        index = torch.tensor(rows, dtype=torch.long, device=self._path_BWP.device)
        self._past = [x.index_select(1, index) for x in self._past]
        self._memory = [x[:, :, :, : self._longest].index_select(1, index) for x in self._memory]
        self._memory_mask_B11S = self._memory_mask_B11S[..., : self._longest].index_select(0, index)
        self._path_BWP = self._path_BWP.index_select(0, index)
        self._sentences = len(rows)

    def _lengthen_paths(self, x_RD: Tensor) -> None:
        """Add the slot of its newest token to every hypothesis, growing the cache if it is full."""
        B, W, _ = self._path_BWP.shape
        own_WW = x_RD.new_full((W, W), -math.inf).fill_diagonal_(0.0)
        self._path_BWP = torch.cat([self._path_BWP, own_WW.expand(B, W, W)], dim=2)
        _, rows, _, places, _ = self._past[0].shape
        if (self._end + 1) * W > places:
            self._move_past(rows)

    def _make_room(self, states: Tensor) -> None:
        """Allocate capacity for all sentences and the longest source."""
        if not self._memory:
            empty = [states.new_empty(2, 0, layer.h, 0, layer.width) for layer in self._decoder.layers]
            self._memory, self._past = empty, list(empty)
            self._memory_mask_B11S = states.new_empty(0, 1, 1, 0)
        _, rows, _, longest, _ = self._memory[0].shape
        if self._sentences <= rows and self._longest <= longest:
            return
        more = int(self._sentences * _MORE) if 0 < rows < self._sentences else max(rows, self._sentences)
        self._move_past(more)
        for number, x in enumerate(self._memory):
            self._memory[number] = _larger(x[:, :, :, : self._longest], more, self._longest)
        mask = states.new_full((more, 1, 1, self._longest), -math.inf)
        kept = self._memory_mask_B11S[..., : self._longest]
        mask[:rows, ..., : kept.shape[3]] = kept
        self._memory_mask_B11S = mask

    def _move_past(self, rows: int) -> None:
        """Copy past keys and values into new tensors with room for as many steps again."""
        W = self._beam
        used, room = slice(self._first * W, self._end * W), max(8, 2 * self.length) * W
        for number, x in enumerate(self._past):
            self._past[number] = _larger(x[:, :, :, used], rows, room)
        self._first, self._end = 0, self.length


def _larger(x: Tensor, rows: int, places: int) -> Tensor:
    """Return a larger copy, padded with zeros because uninitialised memory may contain NaN."""
    _, B, H, P, K = x.shape
    larger = x.new_zeros(2, rows, H, places, K)
    larger[:, :B, :, :P] = x
    return larger


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """Return the mask as numbers to add to scores."""
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(~mask, -math.inf)
