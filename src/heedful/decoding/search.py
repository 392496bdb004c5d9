"""Beam search (section 6.1); greedy search is a beam of one.

A hypothesis Y that has ended scores log P(Y|X) / ((5 + |Y|) / 6)^α, |Y| counted in tokens with the end symbol
(the length penalty of GNMT). It has at most source tokens + max_extra tokens: at the last position only the end symbol
is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.config import BOS, EOS, PAD
from heedful.data.batches import pad
from heedful.decoding.cache import DecoderCache
from heedful.decoding.decoder import SearchDecoder
from heedful.model.transformer import Transformer

_NEVER_SAID = slice(PAD, EOS)  # padding, unknown, start
_AT_ONCE = 8  # sentences come and go by an eighth of the batch: the encoder has some to work on, the cache rarely moves


class Hypothesis(NamedTuple):
    """Tokens with the end symbol, their log-probability, and the score that ranks them."""

    ids: tuple[int, ...]
    log_probability: float
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """((5 + |Y|) / 6)^α."""
    return float(((5 + length) / 6) ** alpha)


def beam_search(
    model: Transformer,
    sources: Sequence[list[int]],
    beam: int = 4,
    alpha: float = 0.6,
    max_extra: int = 50,
    n_best: int = 1,
    tokens: int = 0,
    decoder: SearchDecoder | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each sentence (ids with the end symbol), best first (fewer where fewer exist).

    At most `tokens` padded source tokens times the beam are searched together (0: all of them); where sentences
    end, waiting ones come in. `decoder` is the model's own, made ready before; without it, it is made here.
    """
    sentences = [_Sentence(source, len(source) + max_extra, beam) for source in sources]
    waiting = sorted(sentences, key=lambda s: len(s.source))  # longest first: memory suffices at once or never
    with torch.inference_mode():
        beams = _Beams(model, decoder or SearchDecoder(model), beam, alpha, n_best)
        while waiting or beams.live():
            longest = max(len(sentence.source) for sentence in beams.live() or waiting)
            room = tokens // (beam * longest) if tokens else len(sentences)
            free = room - len(beams.live())
            if waiting and (not beams.live() or free >= max(1, room // _AT_ONCE)):
                beams.admit([waiting.pop() for _ in range(min(len(waiting), max(1, free)))])
            beams.advance()
            beams.dismiss(for_good=not waiting)
    return [sorted(s.finished, key=lambda hypothesis: -hypothesis.score)[:n_best] for s in sentences]


def likeliest(logits_RV: Tensor, at_limit_R: Tensor | None, count: int) -> tuple[Tensor, Tensor]:
    """The `count` likeliest tokens of each row that may be said, best first, and their true log-probabilities.

    Where the limit is reached, that is the end symbol alone. Fewer where there are fewer tokens.
    """
    log_p_RV = logits_RV.float().log_softmax(dim=1)
    log_p_RV[:, _NEVER_SAID] = -math.inf
    if at_limit_R is not None:
        end_R = log_p_RV[at_limit_R, EOS]
        log_p_RV[at_limit_R] = -math.inf
        log_p_RV[at_limit_R, EOS] = end_R
    values, tokens = log_p_RV.topk(min(count, log_p_RV.shape[1]), dim=1)
    return values, tokens


Prefix = tuple["Prefix | None", int]  # what was said before, and the newest token: hypotheses share their beginnings


@dataclass
class _Sentence:
    """A source sentence, its W live hypotheses and those that have ended."""

    source: list[int]
    limit: int  # most tokens of a hypothesis, the end symbol included
    beam: InitVar[int]
    said: int = 0  # tokens of its live hypotheses
    prefixes: list[Prefix] = field(init=False)
    scores: list[float] = field(init=False)  # log-probabilities; -inf: there is none
    finished: list[Hypothesis] = field(default_factory=list)

    def __post_init__(self, beam: int) -> None:
        self.prefixes = [(None, BOS)] * beam
        self.scores = [0.0] + [-math.inf] * (beam - 1)  # all begin alike: only one of them counts


Extension = tuple[float, int, int]  # score, the hypothesis (0 … W-1) that it goes on from, and its new token


class _Beams:
    """The sentences that are searched, W hypotheses each. Every row of the cache has one, or is free.

    Each step takes the 2W best extensions of a sentence. Those of the first W that end are finished; the best W that
    do not end live on. A sentence is over when no live one can still win, or when W have finished and none is ahead.
    With W = 1 this is greedy search. What takes time for every token of the vocabulary is done by tensors, what there
    is only a handful of for each sentence, by lists: an operation on a small tensor costs more than both.
    """

    def __init__(self, model: Transformer, decoder: SearchDecoder, beam: int, alpha: float, n_best: int) -> None:
        self.beam, self.alpha, self.n_best = beam, alpha, n_best
        self._model = model
        self._device = model.embedding.weight_VD.device
        self._cache = DecoderCache(decoder, beam)
        self._rows: list[_Sentence | None] = []  # of the cache; None: free

    def live(self) -> list[_Sentence]:
        return [sentence for sentence in self._rows if sentence is not None]

    def admit(self, sentences: list[_Sentence]) -> None:
        free = [row for row, sentence in enumerate(self._rows) if sentence is None][: len(sentences)]
        more = len(sentences) - len(free)
        free += range(len(self._rows), len(self._rows) + more)
        self._rows += [None] * more
        for row, sentence in zip(free, sentences, strict=True):
            self._rows[row] = sentence
        source_BS = pad([sentence.source for sentence in sentences]).to(self._device)
        self._cache.admit(self._model.encode(source_BS), free)

    def advance(self) -> None:
        """One more token for every live hypothesis."""
        origins = [
            self._extend(sentence, extensions) if sentence is not None else [0] * self.beam
            for sentence, extensions in zip(self._rows, self._best_extensions(), strict=True)
        ]
        self._cache.follow(self._tensor(origins))

    def dismiss(self, for_good: bool) -> None:
        """Those that are over leave their rows to others; `for_good`, if there are no others: then rows are taken away,
        an eighth of them at a time, because the cache is copied.
        """
        over = [row for row, s in enumerate(self._rows) if s is not None and self._is_over(s)]
        for row in over:
            self._rows[row] = None
        live = self.live()
        if over:
            self._cache.narrow(max((s.said for s in live), default=0), max((len(s.source) for s in live), default=0))
        if for_good and live and len(self._rows) - len(live) > len(self._rows) // _AT_ONCE:
            self._cache.keep([row for row, sentence in enumerate(self._rows) if sentence is not None])
            self._rows = list(live)

    def _best_extensions(self) -> list[list[Extension]]:
        """Of each row, best first; those of a free row mean nothing."""
        W, nobody = self.beam, _Sentence([], limit=2, beam=self.beam)  # who never comes to the limit
        sentences = [sentence or nobody for sentence in self._rows]
        last_R = self._tensor([token for s in sentences for _, token in s.prefixes])
        position_R = self._tensor([s.said for s in sentences for _ in range(W)])
        score_R1 = self._tensor([[score] for s in sentences for score in s.scores])
        at_limit = [s.said == s.limit - 1 for s in sentences for _ in range(W)]
        logits_RV = self._cache.step(last_R, position_R)
        # No more than 2W of the best 2W extensions of a sentence come from one hypothesis.
        log_p_RC, tokens_RC = likeliest(logits_RV, self._tensor(at_limit) if any(at_limit) else None, 2 * W)
        B, C = len(sentences), log_p_RC.shape[1]
        scores, flat = (score_R1 + log_p_RC).view(B, W * C).topk(min(2 * W, W * C), dim=1)
        tokens = tokens_RC.view(B, W * C).gather(1, flat)
        rows = zip(scores.tolist(), (flat // C).tolist(), tokens.tolist(), strict=True)
        return [list(zip(*row, strict=True)) for row in rows]

    def _extend(self, sentence: _Sentence, extensions: list[Extension]) -> list[int]:
        """The sentence's next hypotheses; from which of the last ones each of them goes on."""
        before = sentence.prefixes
        sentence.said += 1
        for score, origin, token in extensions[: self.beam]:
            if token == EOS and score > -math.inf:
                ids = (*_tokens(before[origin]), EOS)
                ranked = score / length_penalty(sentence.said, self.alpha)
                sentence.finished.append(Hypothesis(ids, score, ranked))
        live = [extension for extension in extensions if extension[2] != EOS][: self.beam]
        sentence.prefixes = [(before[origin], token) for _, origin, token in live]
        sentence.scores = [score for score, _, _ in live]
        return [origin for _, origin, _ in live]

    def _is_over(self, sentence: _Sentence) -> bool:
        found, best_live = sentence.finished, max(sentence.scores)
        if not best_live > -math.inf:  # not a number is no hypothesis either
            return True
        if len(found) < self.n_best:
            return False
        # Log-probabilities only fall, so a live hypothesis can at best keep its own up to the longest length. Once W
        # have finished it gets no such credit: it must be ahead as it stands.
        length = sentence.limit if len(found) < self.beam else sentence.said
        attainable = best_live / length_penalty(length, self.alpha)
        return sorted((h.score for h in found), reverse=True)[self.n_best - 1] >= attainable

    def _tensor(self, values: Sequence[object]) -> Tensor:
        return torch.tensor(values, device=self._device)


def _tokens(prefix: Prefix) -> list[int]:
    """Without the start symbol."""
    tokens = []
    before, token = prefix
    while before is not None:
        tokens.append(token)
        before, token = before
    return tokens[::-1]
