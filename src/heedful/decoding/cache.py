"""Keys and values that search has already computed, so that a step costs one position, not the whole prefix."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.model.attention import KeysValues
from heedful.model.transformer import Memory, Transformer


class DecoderCache:
    """The decoder in the middle of B sentences with W hypotheses each: rows are sentence-major, B·W of them."""

    def __init__(self, model: Transformer, memory: Memory) -> None:
        self.model = model
        self.length = 0
        self._mask = memory.mask_B11S
        # Once a sentence, shared by its hypotheses (MultiHeadAttention.forward).
        self._memory = [layer.cross_attention.keys_values(memory.states_BSD) for layer in model.decoder]
        self._past: list[KeysValues] = []

    def step(self, last_R: Tensor) -> Tensor:
        """Logits R×V of the piece after `last_R`, the newest piece of each of the R = B·W hypotheses."""
        x_R1D = self.model.embedding(last_R[:, None], start=self.length)
        for number, layer in enumerate(self.model.decoder):
            past = self._extended(number, layer.self_attention.keys_values(x_R1D))
            x_R1D = layer.step(x_R1D, past, self._memory[number], self._mask)
        self.length += 1
        return self.model.embedding.logits(x_R1D[:, 0])

    def _extended(self, number: int, new: KeysValues) -> KeysValues:
        if self.length == 0:
            self._past.append(new)
        else:
            old = self._past[number]
            joined = (torch.cat(both, dim=2) for both in zip(old, new, strict=True))
            self._past[number] = KeysValues(*joined)
        return self._past[number]

    def follow(self, rows_R: Tensor) -> None:
        """Hypothesis i goes on from what was row `rows_R[i]`, of the same sentence."""
        self._past = [KeysValues(*(t.index_select(0, rows_R) for t in past)) for past in self._past]

    def keep(self, sentences_B: Tensor, rows_R: Tensor) -> None:
        """Finished sentences leave the batch: only these go on, with these rows."""
        self.follow(rows_R)
        self._memory = [KeysValues(*(t.index_select(0, sentences_B) for t in kv)) for kv in self._memory]
        if self._mask is not None:
            self._mask = self._mask.index_select(0, sentences_B)
