"""Keys and values that search has already computed, so that a step costs one position, not the whole prefix."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from heedful.decoding.decoder import SearchDecoder
from heedful.model.attention import KeysValues
from heedful.model.transformer import Memory


class DecoderCache:
    """The decoder in the middle of B sentences with W hypotheses each: rows are sentence-major, B·W of them.

    Keys and values never move. Each step adds W places to every sentence; which of a sentence's P places lie on the
    path of a hypothesis is in a mask, and only the mask follows the search. The W hypotheses of a sentence are W
    queries to all of its places: more products than needed, but far fewer bytes moved.
    """

    def __init__(self, decoder: SearchDecoder, memory: Memory, beam: int) -> None:
        self.length = 0
        self._decoder = decoder
        self._beam = beam
        self._memory = [layer.memory(memory.states_BSD) for layer in decoder.layers]
        self._memory_mask = None if memory.mask_B11S is None else _added(memory.mask_B11S, memory.states_BSD)
        B, device = len(memory.states_BSD), memory.states_BSD.device
        self._past: list[KeysValues] = []  # with room for more places than are filled
        self._path_BWP = torch.ones(B, beam, 0, dtype=torch.bool, device=device)

    def step(self, last_R: Tensor) -> Tensor:
        """Logits R×V of the piece after `last_R`, the newest piece of each of the R = B·W hypotheses."""
        sentences = len(self._path_BWP)
        x_RD = self._decoder.model.embedding(last_R[:, None], start=self.length)[:, 0]
        mask = self._own_place(x_RD)
        for number, layer in enumerate(self._decoder.layers):
            query, *new = layer.queries_keys_values(x_RD, sentences)
            past = self._with(number, KeysValues(*new))
            x_RD = layer.step(x_RD, query, past, mask, self._memory[number], self._memory_mask)
        self.length += 1
        return self._decoder.logits(x_RD)

    def follow(self, origins_BW: Tensor) -> None:
        """Each hypothesis goes on from what was hypothesis `origins_BW` (0 … W-1) of the same sentence."""
        if self._beam > 1:
            self._path_BWP = self._path_BWP.gather(1, origins_BW[:, :, None].expand_as(self._path_BWP))

    def keep(self, sentences_B: Tensor) -> None:
        """Finished sentences leave the batch: only these go on."""
        self._past = [_chosen(past, sentences_B) for past in self._past]
        self._memory = [_chosen(memory, sentences_B) for memory in self._memory]
        self._path_BWP = self._path_BWP.index_select(0, sentences_B)
        if self._memory_mask is not None:
            self._memory_mask = self._memory_mask.index_select(0, sentences_B)

    def _own_place(self, x_RD: Tensor) -> Tensor | None:
        """Lengthens every path by the place of its newest piece. The mask; None: a path is all of the places."""
        B, W, _ = self._path_BWP.shape
        own_BWW = torch.eye(W, dtype=torch.bool, device=x_RD.device).expand(B, W, W)
        self._path_BWP = torch.cat([self._path_BWP, own_BWW], dim=2)
        return _added(self._path_BWP[:, None], x_RD) if W > 1 else None

    def _with(self, number: int, new: KeysValues) -> KeysValues:
        """All places of a layer, the newest the last."""
        filled = self.length * self._beam
        if number == len(self._past):
            self._past.append(KeysValues(*(_room(x, 8) for x in new)))
        elif filled == self._past[number].k_BHSK.shape[2]:
            self._past[number] = KeysValues(*(_room(x, 2) for x in self._past[number]))
        past = self._past[number]
        for places, values in zip(past, new, strict=True):
            places[:, :, filled : filled + self._beam] = values
        return KeysValues(*(places[:, :, : filled + self._beam] for places in past))


def _room(x_BHPK: Tensor, times: int) -> Tensor:
    """A copy with room for `times` as many places."""
    B, H, P, K = x_BHPK.shape
    larger = x_BHPK.new_empty(B, H, P * times, K)
    larger[:, :, :P] = x_BHPK
    return larger


def _chosen(kept: KeysValues, sentences_B: Tensor) -> KeysValues:
    return KeysValues(*(x.index_select(0, sentences_B) for x in kept))


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """0 where attention may go, -∞ elsewhere: to add to scores."""
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(~mask, -math.inf)
