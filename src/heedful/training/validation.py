"""How good the model is on text it does not train on: loss, perplexity, and BLEU by decoding."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from time import monotonic

import torch

from heedful.config import DecodingConfig
from heedful.data.batches import collate
from heedful.data.store import Store
from heedful.decoding.translator import Translator
from heedful.evaluation.scores import bleu
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model, TextFacts
from heedful.text.builtin_corpus import BuiltinCorpus
from heedful.text.corpus import Corpus, Pair
from heedful.text.tokenizer import Tokenizer
from heedful.training.loss import batch_loss, perplexity

MOST_DECODED = 1_000  # lines; enough for a curve, and decoding must not outweigh training


@dataclass(frozen=True)
class Scores:
    loss: float  # smoothed as in training, but without dropout
    nll: float
    perplexity: float
    bleu: float  # greedy, 13a, on at most the first MOST_DECODED lines
    seconds: float


class Validation:
    def __init__(
        self,
        store: Store,
        corpus: Corpus | BuiltinCorpus,
        tokenizer: Tokenizer,
        text: TextFacts,
        decoding: DecodingConfig,
    ) -> None:
        self.store = store
        self.pairs: list[Pair] = list(islice(corpus.pairs(), MOST_DECODED))
        self.tokenizer = tokenizer
        self.text = text
        self.decoding = decoding

    def run(self, model: Transformer, batch_tokens: int, label_smoothing: float) -> Scores:
        began = monotonic()
        model.eval()
        loss, nll = self._losses(model, batch_tokens, label_smoothing)
        score = self._bleu(model)
        model.train()
        return Scores(loss, nll, perplexity(nll), score, monotonic() - began)

    @torch.inference_mode()
    def _losses(self, model: Transformer, batch_tokens: int, label_smoothing: float) -> tuple[float, float]:
        device = next(model.parameters()).device
        loss = nll = 0.0
        tokens = 0
        lengths = self.store.lengths("source"), self.store.lengths("target")
        order = sorted(range(len(self.store)), key=lambda i: max(lengths[0][i], lengths[1][i]))
        while order:
            longest = int(max(lengths[0][order[-1]], lengths[1][order[-1]]))
            count = max(1, batch_tokens // longest)
            order, indices = order[:-count], order[-count:]
            batch = collate(self.store, indices).to(device)
            sums = batch_loss(model, batch, label_smoothing)
            loss, nll, tokens = loss + sums.smoothed.item(), nll + sums.nll.item(), tokens + batch.tokens
        return loss / tokens, nll / tokens

    def _bleu(self, model: Transformer) -> float:
        translator = Translator(Model(model, self.tokenizer, self.text, self.decoding))
        translations = translator.translate([pair.source for pair in self.pairs], beam=1)
        hypotheses = [translation.text for translation in translations]
        references = [pair.target for pair in self.pairs]
        return bleu(hypotheses, references, lowercase=self.text.lowercase).value
