"""The interface of a search for translations, and heedful's own behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch

from heedful.decoding.inference_model import SearchModel
from heedful.decoding.projection_kernels import Precision, require
from heedful.decoding.search import Hypothesis, Penalty, beam_search, length_penalty, power_penalty
from heedful.errors import ModelError, UsageError
from heedful.storage.model_directory import Model

# Multiplications per step. One sentence, beam 4, N = 2, d_model 128, 8,000 tokens: one thread has 102% of the speed of
# two on an idle machine, and 101% alongside a busy process, where two have 34% (docs/results/experiments.md).
_ONE_THREAD = 6_500_000

NAN_OUTPUT = "The model outputs NaN probabilities: its weights are damaged. Restore the model, or train it again."


class Searcher(Protocol):
    """Finds translations. Call it from one thread at a time."""

    name: str
    alpha: float  # the model's own length penalty, in this engine's form

    def search(self, sources: list[list[int]], beam: int, alpha: float, n_best: int) -> list[list[Hypothesis]]:
        """Return the best translations of every source, best first.

        Token ids include the end token.
        """


class OwnSearcher:
    """heedful's beam search."""

    name = "heedful"

    def __init__(self, model: Model, precision: Precision = "fp32", penalty: Penalty = length_penalty) -> None:
        transformer = model.transformer
        require(precision, transformer.embedding.weight_VD.device)
        if precision == "int8" and not all(bool(weight.isfinite().all()) for weight in transformer.parameters()):
            raise ModelError(NAN_OUTPUT)  # NaN cannot be quantized
        self._decoding, self._penalty = model.decoding, penalty
        self.alpha = model.decoding.power_alpha if penalty is power_penalty else model.decoding.alpha
        self._ready = SearchModel(transformer, precision)
        weights = (transformer.embedding.weight_VD, *(w for layer in transformer.decoder for w in layer.parameters()))
        self._weights = sum(weight.numel() for weight in weights)

    def search(self, sources: list[list[int]], beam: int, alpha: float, n_best: int) -> list[list[Hypothesis]]:
        claim_process(self.name)
        own = self._decoding
        with self._threads(len(sources) * beam):
            return beam_search(
                self._ready, sources, beam, alpha, own.max_extra, n_best, own.batch_tokens, self._penalty
            )

    @contextmanager
    def _threads(self, rows: int) -> Iterator[None]:
        """Use one thread for little work: others would spin and slow other processes down."""
        before = torch.get_num_threads()
        if self._ready.device.type == "cpu" and rows * self._weights <= _ONE_THREAD:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


_engine_of_process = ""


def claim_process(engine: str) -> None:
    """Raise if another engine has computed here: spinning threads would halve both speeds."""
    global _engine_of_process
    if _engine_of_process not in ("", engine):
        raise UsageError(
            f"This process already translates with {_engine_of_process}; {engine} in the same process would halve the "
            f"speed of both. Load every model with the same engine, or start another process."
        )
    _engine_of_process = engine
