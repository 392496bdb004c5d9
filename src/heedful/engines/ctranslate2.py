"""CTranslate2 as a search engine, with the same weights."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

from heedful.config import EOS
from heedful.decoding.search import Hypothesis, power_penalty
from heedful.decoding.search_engine import claim_process
from heedful.interop.ctranslate2_export import write_ctranslate2
from heedful.storage.model_directory import Model

_TOGETHER = 64  # sentences per batch; it sorts them by length


class CTranslate2Searcher:
    """CTranslate2 in float32, its fastest type where measured (docs/results/performance.md).

    Its search differs from heedful's: docs/how-to/deployment.md lists how. The length penalty is |Y|^α.
    """

    name = "ctranslate2"

    def __init__(self, model: Model) -> None:
        self._decoding, self._tokens = model.decoding, model.tokenizer.tokens
        self.alpha = model.decoding.power_alpha
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "model"
            write_ctranslate2(model, path)  # raises an error that names the missing package
            import ctranslate2

            # Batches in parallel with one thread each: two threads per batch were a quarter slower, and at times much
            # slower than that (docs/results/performance.md).
            self._engine: Any = ctranslate2.Translator(
                str(path),
                device="cpu",
                compute_type="float32",
                inter_threads=torch.get_num_threads(),
                intra_threads=1,
            )
        names = self._tokens(range(model.tokenizer.vocab_size))
        self._ids = {name: number for number, name in enumerate(names)}

    def search(self, sources: list[list[int]], beam: int, alpha: float, n_best: int) -> list[list[Hypothesis]]:
        claim_process(self.name)
        penalty = alpha if beam > 1 else 0.0
        limit = max(map(len, sources), default=1) - 1 + self._decoding.max_extra
        found = self._engine.translate_batch(
            [self._tokens(source[:-1]) for source in sources],  # it adds the end token
            beam_size=beam,
            num_hypotheses=n_best,
            length_penalty=penalty,
            return_scores=True,
            min_decoding_length=0,
            max_batch_size=_TOGETHER,
            max_input_length=0,  # otherwise it truncates longer input silently
            max_decoding_length=limit,
        )
        return [
            [
                # Its own score includes the end token, except for a hypothesis that stops at the limit.
                self._hypothesis(tokens, score * (len(tokens) + (len(tokens) < limit)) ** penalty, alpha)
                for tokens, score in zip(result.hypotheses, result.scores, strict=True)
            ]
            for result in found
        ]

    def _hypothesis(self, tokens: list[str], log_probability: float, alpha: float) -> Hypothesis:
        ids = (*map(self._ids.__getitem__, tokens), EOS)
        return Hypothesis(ids, log_probability, float(log_probability / power_penalty(len(ids), alpha)))
