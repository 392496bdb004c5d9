"""Keys and values that search has already computed, so that a step costs one position, not the whole prefix."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.decoding.decoder import SearchDecoder
from heedful.model.attention import KeysValues
from heedful.model.transformer import Memory


class DecoderCache:
    """The decoder in the middle of B sentences with W hypotheses each: rows are sentence-major, B·W of them.

    Keys and values never move. Each step adds W places to every sentence; which of the P places lie on the path of a
    hypothesis is in a mask, and only the mask follows the search. The W hypotheses of a sentence are W queries to all
    of its places: more products than needed, but far fewer bytes moved. A sentence may come when others are under
    way: the places before it are not on its paths.
    """

    def __init__(self, decoder: SearchDecoder, beam: int) -> None:
        self.length = 0  # steps whose places are kept
        self._decoder = decoder
        self._beam = beam
        self._memory: list[KeysValues] = []
        self._memory_mask_B11S: Tensor | None = None  # added to the scores; None: nothing is padding
        self._past: list[KeysValues] = []  # with room for more places than are filled
        self._path_BWP = torch.zeros(0, beam, 0, dtype=torch.bool)

    def admit(self, memory: Memory) -> None:
        """More sentences, behind those that are here."""
        new = [layer.memory(memory.states_BSD) for layer in self._decoder.layers]
        mask = None if memory.mask_B11S is None else _added(memory.mask_B11S, memory.states_BSD)
        B, W, P = len(memory.states_BSD), self._beam, self.length * self._beam
        nowhere_BWP = torch.zeros(B, W, P, dtype=torch.bool, device=memory.states_BSD.device)
        if not self._memory:
            self._memory, self._memory_mask_B11S, self._path_BWP = new, mask, nowhere_BWP
            return
        self._memory_mask_B11S = _joined_masks(self._memory, self._memory_mask_B11S, new, mask)
        self._memory = [_joined(*both) for both in zip(self._memory, new, strict=True)]
        # A place that is not on a path has weight 0, and 0 times whatever lies in new memory need not be 0.
        self._past = [KeysValues(*(torch.cat([x, x.new_zeros(B, *x.shape[1:])]) for x in kv)) for kv in self._past]
        self._path_BWP = torch.cat([self._path_BWP, nowhere_BWP])

    def step(self, last_R: Tensor, position_R: Tensor) -> Tensor:
        """Logits R×V of the piece after `last_R`, the newest piece of each of the R = B·W hypotheses."""
        sentences = len(self._path_BWP)
        x_RD = self._decoder.embedded(last_R, position_R)
        mask = self._own_place(x_RD)
        for number, layer in enumerate(self._decoder.layers):
            query, *new = layer.queries_keys_values(x_RD, sentences)
            past = self._with(number, KeysValues(*new))
            x_RD = layer.step(x_RD, query, past, mask, self._memory[number], self._memory_mask_B11S)
        self.length += 1
        return self._decoder.logits(x_RD)

    def follow(self, origins_BW: Tensor) -> None:
        """Each hypothesis goes on from what was hypothesis `origins_BW` (0 … W-1) of the same sentence."""
        if self._beam > 1:
            self._path_BWP = self._path_BWP.gather(1, origins_BW[:, :, None].expand_as(self._path_BWP))

    def keep(self, sentences_B: Tensor, steps: int, longest: int) -> None:
        """Only these sentences go on: only the last `steps` steps' places are on their paths, none has a source of
        more than `longest` pieces, and nothing wider is kept.
        """
        if not len(sentences_B):
            self._memory, self._past, self.length = [], [], 0
            return
        first, end = (self.length - steps) * self._beam, self.length * self._beam
        room = 2 * steps * self._beam
        self._past = [
            KeysValues(*(_room(x[:, :, first:end].index_select(0, sentences_B), room) for x in kv)) for kv in self._past
        ]
        self._memory = [
            KeysValues(*(x[:, :, :longest].index_select(0, sentences_B) for x in kv)) for kv in self._memory
        ]
        self._path_BWP = self._path_BWP[:, :, first:].index_select(0, sentences_B)
        if self._memory_mask_B11S is not None:
            self._memory_mask_B11S = self._memory_mask_B11S[..., :longest].index_select(0, sentences_B)
        self.length = steps

    def _own_place(self, x_RD: Tensor) -> Tensor | None:
        """Lengthens every path by the place of its newest piece. The mask; None: a path is all of the places."""
        B, W, _ = self._path_BWP.shape
        own_BWW = torch.eye(W, dtype=torch.bool, device=x_RD.device).expand(B, W, W)
        self._path_BWP = torch.cat([self._path_BWP, own_BWW], dim=2)
        return None if bool(self._path_BWP.all()) else _added(self._path_BWP[:, None], x_RD)

    def _with(self, number: int, new: KeysValues) -> KeysValues:
        """All places of a layer, the newest the last."""
        filled, W = self.length * self._beam, self._beam
        if number == len(self._past):
            self._past.append(KeysValues(*(_room(x[:, :, :0], 8 * W) for x in new)))
        elif filled + W > self._past[number].k_BHSK.shape[2]:
            self._past[number] = KeysValues(*(_room(x, 2 * filled) for x in self._past[number]))
        past = self._past[number]
        for places, values in zip(past, new, strict=True):
            places[:, :, filled : filled + W] = values
        return KeysValues(*(places[:, :, : filled + W] for places in past))


def _room(x_BHPK: Tensor, places: int) -> Tensor:
    """A copy with room for so many places."""
    B, H, P, K = x_BHPK.shape
    larger = x_BHPK.new_empty(B, H, max(P, places), K)
    larger[:, :, :P] = x_BHPK
    return larger


def _joined(old: KeysValues, new: KeysValues) -> KeysValues:
    """The sentences of both, padded to one length."""
    S = max(old.k_BHSK.shape[2], new.k_BHSK.shape[2])
    both = ([F.pad(x, (0, 0, 0, S - x.shape[2])) for x in pair] for pair in zip(old, new, strict=True))
    return KeysValues(*(torch.cat(pair) for pair in both))


def _joined_masks(
    old: list[KeysValues], old_mask: Tensor | None, new: list[KeysValues], new_mask: Tensor | None
) -> Tensor | None:
    sides = [(kv[0].k_BHSK, mask) for kv, mask in ((old, old_mask), (new, new_mask))]
    S = max(k.shape[2] for k, _ in sides)
    if old_mask is None and new_mask is None and all(k.shape[2] == S for k, _ in sides):
        return None
    masks = [k.new_zeros(len(k), 1, 1, k.shape[2]) if mask is None else mask for k, mask in sides]
    return torch.cat([F.pad(mask, (0, S - mask.shape[3]), value=-math.inf) for mask in masks])


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """0 where attention may go, -∞ elsewhere: to add to scores."""
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(~mask, -math.inf)
