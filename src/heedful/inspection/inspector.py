"""Inspect a model on one sentence pair: attention, search, next tokens and single steps."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from heedful.config import BOS
from heedful.decoding.inference_model import SearchModel
from heedful.decoding.search_engine import NAN_OUTPUT
from heedful.decoding.translator import Attention, Translator
from heedful.errors import ModelError
from heedful.inspection.beam_tree import BeamTree, beam_tree
from heedful.inspection.contrast import Contrast, contrast
from heedful.inspection.next_tokens import Candidates, next_tokens
from heedful.inspection.switched_heads import Head, without_heads
from heedful.inspection.trace import LayerSteps, Trace, trace
from heedful.model.transformer import Transformer

CANDIDATES = 6  # next tokens listed per position


@dataclass(frozen=True)
class Inspection:
    """What the model computes for a source and a target: token ids with the end token."""

    source: list[int]
    target: list[int]
    own: list[int]  # the model's own translation, with all heads on
    off: frozenset[Head]
    attention: Attention
    token_log_probabilities: list[float]  # of the target, with the heads off
    all_on_log_probability: float  # of the target, with all heads on
    tree: BeamTree  # the search, with the heads off
    next: list[list[Candidates]]  # by decoder layer and position

    @property
    def log_probability(self) -> float:
        return sum(self.token_log_probabilities)


class Inspector:
    """A translator and its model in the layout of search, made once."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator

    @property
    def model(self) -> Transformer:
        return self.translator.model.transformer

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute on one thread: for one sentence, more threads mostly spin."""
        with self.translator.computing():
            torch.set_num_threads(1)
            yield

    @cached_property
    def _search_model(self) -> SearchModel:
        return SearchModel(self.model)

    def inspect(
        self, source: list[int], target: list[int] | None = None, off: Collection[Head] = (), beam: int | None = None
    ) -> Inspection:
        """Inspect a sentence pair.

        Without a target, inspect the model's own translation with all heads on.
        """
        with self.computing():
            changed = without_heads(self.model, off)
            tree = self._search(self._search_model, source, beam)
            own = tree.ids(tree.best)
            target = own if target is None else target
            if off:
                tree = self._search(SearchModel(changed), source, beam)
            steps = self.trace(changed, source, target)
            log_p_T = _log_probabilities(steps.logits_TV, target)
            all_on_T = _log_probabilities(self.trace(self.model, source, target).logits_TV, target) if off else log_p_T
            return Inspection(
                source,
                target,
                own,
                frozenset(off),
                self._attention(source, target, steps),
                log_p_T.tolist(),
                float(all_on_T.sum()),
                tree,
                next_tokens(changed, steps, target, CANDIDATES),
            )

    def contrast(
        self, source: list[int], target: list[int], position: int, other: int, off: Collection[Head] = ()
    ) -> Contrast:
        """Explain why the token at a position of the target was chosen rather than another."""
        with self.computing():
            model = without_heads(self.model, off)
            return contrast(model, source, [BOS, *target[:-1]], position, target[position], other)

    def steps(self, source: list[int], target: list[int], off: Collection[Head] = ()) -> Trace:
        """Return every step of the forward pass."""
        with self.computing():
            return self.trace(without_heads(self.model, off), source, target)

    def trace(self, model: Transformer, source: list[int], target: list[int]) -> Trace:
        device = self.translator.device
        return trace(model, torch.tensor(source, device=device), torch.tensor([BOS, *target[:-1]], device=device))

    def _search(self, model: SearchModel, source: list[int], beam: int | None) -> BeamTree:
        own = self.translator.model.decoding
        tree = beam_tree(model, source, own.beam if beam is None else beam, own.alpha, own.max_extra)
        if tree.best < 0:
            raise ModelError(NAN_OUTPUT)
        return tree

    def _attention(self, source: list[int], target: list[int], steps: Trace) -> Attention:
        names = self.translator.model.tokenizer.tokens
        cross = [layer.cross_attention for layer in steps.decoder if layer.cross_attention is not None]
        return Attention(
            names(source),
            names(target),
            _self_weights(steps.encoder),
            _self_weights(steps.decoder),
            torch.stack([one.weights_HTS for one in cross]).cpu(),
        )


def _self_weights(layers: list[LayerSteps]) -> Tensor:
    return torch.stack([layer.self_attention.weights_HTS for layer in layers]).cpu()


def _log_probabilities(logits_TV: Tensor, target: list[int]) -> Tensor:
    log_p_TV = logits_TV.float().log_softmax(dim=-1)
    return log_p_TV[torch.arange(len(target)), target].double()
