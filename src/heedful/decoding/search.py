"""Greedy and beam search (section 6.1).

A hypothesis Y that has ended scores log P(Y|X) / ((5 + |Y|) / 6)^α, |Y| counted in pieces with the end symbol
(the length penalty of GNMT). It has at most source pieces + max_extra pieces: at the last position only the end symbol
is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.config import BOS, EOS, PAD, UNK
from heedful.decoding.cache import DecoderCache
from heedful.decoding.decoder import SearchDecoder
from heedful.model.transformer import Transformer

_NEVER_SAID = [PAD, UNK, BOS]


class Hypothesis(NamedTuple):
    """Pieces with the end symbol, their log-probability, and the score that ranks them."""

    ids: tuple[int, ...]
    log_probability: float
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """((5 + |Y|) / 6)^α."""
    return float(((5 + length) / 6) ** alpha)


def most_pieces(source_BS: Tensor, max_extra: int) -> Tensor:
    """The longest output of each sentence, the end symbol included."""
    return (source_BS != PAD).sum(dim=1) + max_extra


@torch.inference_mode()
def greedy(
    model: Transformer,
    source_BS: Tensor,
    max_extra: int = 50,
    alpha: float = 0.6,
    decoder: SearchDecoder | None = None,
) -> list[Hypothesis]:
    """The likeliest piece at each position."""
    limits_B = most_pieces(source_BS, max_extra)
    active_B = torch.arange(len(source_BS), device=source_BS.device)
    cache = DecoderCache(decoder or SearchDecoder(model), model.encode(source_BS), beam=1)
    last_B = torch.full_like(active_B, BOS)
    said: list[list[int]] = [[] for _ in range(len(source_BS))]
    log_probabilities = torch.zeros(len(source_BS), device=source_BS.device)
    while len(active_B):
        log_p_B1, pieces_B1 = likeliest(cache.step(last_B), limits_B[active_B] == cache.length, 1)
        last_B = pieces_B1[:, 0]
        log_probabilities[active_B] += log_p_B1[:, 0]
        for row, piece in zip(active_B.tolist(), last_B.tolist(), strict=True):
            said[row].append(piece)
        going_on = (last_B != EOS).nonzero()[:, 0]
        if len(going_on) < len(active_B):
            cache.keep(going_on)
            active_B, last_B = active_B[going_on], last_B[going_on]
    return [
        Hypothesis(tuple(ids), total, total / length_penalty(len(ids), alpha))
        for ids, total in zip(said, log_probabilities.tolist(), strict=True)
    ]


def likeliest(logits_RV: Tensor, at_limit_R: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` likeliest pieces of each row that may be said, best first, and their true log-probabilities.

    Where the limit is reached, that is the end symbol alone. Fewer where there are fewer pieces. A log-softmax would
    write a number for every piece where one normaliser for the row will do. The logits are used up.
    """
    logits_RV = logits_RV.float()
    normaliser_R1 = logits_RV.logsumexp(dim=1, keepdim=True)
    logits_RV[:, _NEVER_SAID] = -math.inf
    if bool(at_limit_R.any()):
        end_R = logits_RV[at_limit_R, EOS]
        logits_RV[at_limit_R] = -math.inf
        logits_RV[at_limit_R, EOS] = end_R
    values, pieces = logits_RV.topk(min(count, logits_RV.shape[1]), dim=1)
    return values - normaliser_R1, pieces


@torch.inference_mode()
def beam_search(
    model: Transformer,
    source_BS: Tensor,
    beam: int = 4,
    alpha: float = 0.6,
    max_extra: int = 50,
    n_best: int = 1,
    decoder: SearchDecoder | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each sentence, best first (fewer where fewer exist).

    `decoder` is the model's own, made ready before; without it, it is made here.
    """
    cache = DecoderCache(decoder or SearchDecoder(model), model.encode(source_BS), beam)
    state = _Beams.start(cache, source_BS, beam, alpha, max_extra, n_best)
    while state.sentences:
        state.advance()
    return [sorted(found, key=lambda hypothesis: -hypothesis.score)[:n_best] for found in state.finished]


@dataclass
class _Beams:
    """The live hypotheses of the sentences still searched: B sentences, W hypotheses each.

    Each step takes the 2W best extensions of a sentence. Those of the first W that end are finished; the best W that
    do not end live on. A sentence leaves when no live one can still win, or when W have finished and none is ahead.
    With W = 1 this is greedy search.
    """

    cache: DecoderCache
    beam: int
    alpha: float
    n_best: int
    limits_B: Tensor
    sentences: list[int]  # which source sentence each row of the batch is
    scores_BW: Tensor  # log-probability of each live hypothesis; -inf: there is none
    prefixes_BWT: Tensor
    finished: list[list[Hypothesis]]

    @classmethod
    def start(
        cls, cache: DecoderCache, source_BS: Tensor, beam: int, alpha: float, max_extra: int, n_best: int
    ) -> _Beams:
        B, device = len(source_BS), source_BS.device
        scores_BW = torch.full((B, beam), -math.inf, device=device)
        scores_BW[:, 0] = 0.0  # all W hypotheses begin alike: only one of them counts
        return cls(
            cache=cache,
            beam=beam,
            alpha=alpha,
            n_best=n_best,
            limits_B=most_pieces(source_BS, max_extra),
            sentences=list(range(B)),
            scores_BW=scores_BW,
            prefixes_BWT=torch.full((B, beam, 1), BOS, device=device),
            finished=[[] for _ in range(B)],
        )

    def advance(self) -> None:
        """One more piece for every live hypothesis."""
        scores, rows, pieces = self._best_extensions()
        ends = pieces == EOS
        self._finish(scores, rows, ends)
        live_BW = _first_without(ends, self.beam)
        self.scores_BW, rows_BW, pieces_BW = (t.gather(1, live_BW) for t in (scores, rows, pieces))
        best_live = self.scores_BW.amax(dim=1).tolist()
        going_on = [b for b in range(len(self.sentences)) if not self._is_over(b, best_live[b])]
        self._shrink_to(going_on, rows_BW, pieces_BW)

    def _best_extensions(self) -> tuple[Tensor, Tensor, Tensor]:
        """Score, origin (0 … W-1) and new piece of the best extensions of each sentence, best first: B × 2W each."""
        B, W = self.scores_BW.shape
        logits_RV = self.cache.step(self.prefixes_BWT[:, :, -1].reshape(-1))
        at_limit_R = (self.limits_B == self.cache.length).repeat_interleave(W)
        # No more than 2W of the best 2W extensions of a sentence come from one hypothesis.
        log_p_RC, pieces_RC = likeliest(logits_RV, at_limit_R, 2 * W)
        C = log_p_RC.shape[1]
        totals = (self.scores_BW.view(-1, 1) + log_p_RC).view(B, W * C)
        scores, flat = totals.topk(min(2 * W, W * C), dim=1)
        return scores, flat // C, pieces_RC.view(B, W * C).gather(1, flat)

    def _finish(self, scores: Tensor, rows: Tensor, ends: Tensor) -> None:
        ended = ends[:, : self.beam] & (scores[:, : self.beam] > -math.inf)
        length = self.cache.length
        penalty = length_penalty(length, self.alpha)
        for b, place in ended.nonzero().tolist():
            total = float(scores[b, place])
            prefix = self.prefixes_BWT[b, rows[b, place], 1:].tolist()
            self.finished[self.sentences[b]].append(Hypothesis((*prefix, EOS), total, total / penalty))

    def _is_over(self, b: int, best_live: float) -> bool:
        found = self.finished[self.sentences[b]]
        if not best_live > -math.inf:  # not a number is no hypothesis either
            return True
        if len(found) < self.n_best:
            return False
        # Log-probabilities only fall, so a live hypothesis can at best keep its own up to the longest length. Once W
        # have finished it gets no such credit: it must be ahead as it stands.
        length = int(self.limits_B[b]) if len(found) < self.beam else self.cache.length
        attainable = best_live / length_penalty(length, self.alpha)
        return sorted((h.score for h in found), reverse=True)[self.n_best - 1] >= attainable

    def _shrink_to(self, going_on: list[int], rows_BW: Tensor, pieces_BW: Tensor) -> None:
        """Extends the prefixes, reorders the cache, and lets finished sentences leave the batch."""
        self.cache.follow(rows_BW)
        kept_B = torch.tensor(going_on, dtype=torch.long, device=rows_BW.device)
        if len(going_on) < len(self.sentences):
            self.cache.keep(kept_B)
            rows_BW, pieces_BW = rows_BW[kept_B], pieces_BW[kept_B]
        before = self.prefixes_BWT[kept_B[:, None], rows_BW]
        self.prefixes_BWT = torch.cat([before, pieces_BW[:, :, None]], dim=2)
        self.scores_BW = self.scores_BW[kept_B]
        self.limits_B = self.limits_B[kept_B]
        self.sentences = [self.sentences[b] for b in going_on]


def _first_without(ends: Tensor, count: int) -> Tensor:
    """Places of the first `count` extensions that do not end, per sentence, in order of score."""
    places = torch.arange(ends.shape[1], device=ends.device).expand_as(ends)
    ranked = torch.where(ends, places + ends.shape[1], places).sort(dim=1).values[:, :count]
    return ranked % ends.shape[1]
