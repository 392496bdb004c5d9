"""Validation: loss, perplexity and greedy BLEU on held-out text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from time import monotonic

import numpy as np
import torch

from heedful.config import DecodingConfig
from heedful.data.batches import collate
from heedful.data.store import Store
from heedful.data.token_budget import batches_by_length
from heedful.decoding.search import Penalty, length_penalty
from heedful.decoding.search_engine import OwnSearcher
from heedful.decoding.translator import Translator
from heedful.evaluation.sacrebleu_scores import Score, bleu
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model, TextFacts
from heedful.text.corpus import Pair, ParallelText
from heedful.text.tokenizer import Tokenizer
from heedful.training.display import Report, Sample
from heedful.training.loss import batch_loss, perplexity

MOST_DECODED = 1_000  # lines; enough for a curve, and decoding must not dominate training time
_TOGETHER = 100  # lines translated between two progress reports
_SAMPLES = 3


@dataclass(frozen=True)
class Scores:
    """The scores of one validation."""

    loss: float  # smoothed as in training, but without dropout
    nll: float
    perplexity: float
    bleu: float  # greedy, 13a, on at most the first MOST_DECODED lines
    length_ratio: float  # words of these translations per word of their references
    seconds: float


class Validation:
    """The validation text, as tokens for the loss and as lines for BLEU."""

    def __init__(
        self,
        store: Store,
        corpus: ParallelText,
        tokenizer: Tokenizer,
        text: TextFacts,
        decoding: DecodingConfig,
    ) -> None:
        self.store = store
        self.pairs: list[Pair] = list(islice(corpus.pairs(), MOST_DECODED))
        self.tokenizer = tokenizer
        self.text = text
        self.decoding = decoding

    def run(
        self, model: Transformer, batch_tokens: int, label_smoothing: float, report: Report
    ) -> tuple[Scores, list[Sample]]:
        """Return the scores and a few translations; `report` gets the lines done and the total."""
        began = monotonic()
        total = len(self.store) + len(self.pairs)
        was_training = model.training
        model.eval()
        loss, nll = self._losses(model, batch_tokens, label_smoothing, lambda done: report(done, total))
        translations = self._translate(model, lambda done: report(len(self.store) + done, total))
        model.train(was_training)
        score = self._score(translations)
        ratio = score.length_ratio or 0.0
        seconds = monotonic() - began
        return Scores(loss, nll, perplexity(nll), score.value, ratio, seconds), self._samples(translations)

    def bundle(self, transformer: Transformer) -> Model:
        """Return the transformer with its tokenizer and settings, ready to use or save."""
        return Model(transformer, self.tokenizer, self.text, self.decoding)

    @torch.inference_mode()
    def _losses(
        self, model: Transformer, batch_tokens: int, label_smoothing: float, report: Callable[[int], None]
    ) -> tuple[float, float]:
        device = next(model.parameters()).device
        loss = nll = 0.0
        tokens = done = 0
        lengths = np.maximum(self.store.lengths("source"), self.store.lengths("target")).tolist()
        for indices in batches_by_length(lengths, batch_tokens):
            batch = collate(self.store, indices).to(device)
            sums = batch_loss(model, batch, label_smoothing)
            loss, nll, tokens = loss + sums.smoothed.item(), nll + sums.nll.item(), tokens + batch.tokens
            done += len(indices)
            report(done)
        return loss / tokens, nll / tokens

    def bleu(
        self,
        model: Transformer,
        beam: int,
        alpha: float | None = None,
        lines: int = MOST_DECODED,
        penalty: Penalty = length_penalty,
    ) -> float:
        """Return BLEU of beam search on the first `lines` lines."""
        was_training = model.training
        model.eval()
        translations = self._translate(model, lambda _: None, beam, alpha, lines, penalty)
        model.train(was_training)
        return self._score(translations).value

    def _score(self, translations: list[str]) -> Score:
        references = [pair.target for pair in self.pairs[: len(translations)]]
        return bleu(translations, references, lowercase=self.text.lowercase)

    def _translate(
        self,
        model: Transformer,
        report: Callable[[int], None],
        beam: int = 1,
        alpha: float | None = None,
        lines: int = MOST_DECODED,
        penalty: Penalty = length_penalty,
    ) -> list[str]:
        model_with_text = self.bundle(model)
        translator = Translator(model_with_text, searcher=OwnSearcher(model_with_text, penalty=penalty))
        sources = [pair.source for pair in self.pairs[:lines]]
        translations = [""] * len(sources)
        order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
        for first in range(0, len(order), _TOGETHER):
            numbers = order[first : first + _TOGETHER]
            found = translator.translate([sources[number] for number in numbers], beam=beam, alpha=alpha)
            for number, translation in zip(numbers, found, strict=True):
                translations[number] = translation.text
            report(first + len(numbers))
        return translations

    def _samples(self, translations: list[str]) -> list[Sample]:
        """Return sample translations, always of the same lines, for comparison over time."""
        spread = sorted({len(self.pairs) * number // _SAMPLES for number in range(_SAMPLES)})
        return [
            Sample(self.pairs[number].source, translations[number], self.pairs[number].target)
            for number in spread
            if self.pairs
        ]
