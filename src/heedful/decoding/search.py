"""Beam search (section 6.1); greedy search is a beam of one.

A hypothesis Y that has ended scores log P(Y|X) / ((5 + |Y|) / 6)^α, |Y| counted in pieces with the end symbol
(the length penalty of GNMT). It has at most source pieces + max_extra pieces: at the last position only the end symbol
is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.config import BOS, EOS, PAD, UNK
from heedful.data.batches import pad
from heedful.decoding.cache import DecoderCache
from heedful.decoding.decoder import SearchDecoder
from heedful.model.transformer import Memory, Transformer

_NEVER_SAID = [PAD, UNK, BOS]
_AT_ONCE = 8  # sentences come and go by an eighth of the batch: the cache is copied whenever some do


class Hypothesis(NamedTuple):
    """Pieces with the end symbol, their log-probability, and the score that ranks them."""

    ids: tuple[int, ...]
    log_probability: float
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """((5 + |Y|) / 6)^α."""
    return float(((5 + length) / 6) ** alpha)


@torch.inference_mode()
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

    At most `tokens` padded source pieces times the beam are searched together (0: all of them); where sentences
    end, waiting ones come in. `decoder` is the model's own, made ready before; without it, it is made here.
    """
    lengths = [len(source) for source in sources]
    waiting = sorted(range(len(sources)), key=lambda i: lengths[i])  # longest first: memory suffices at once or never
    cache = DecoderCache(decoder or SearchDecoder(model), beam)
    state = _Beams(cache, beam, alpha, max_extra, n_best, finished=[[] for _ in lengths])
    while waiting or state.sentences:
        room = tokens // (beam * max(lengths[i] for i in state.sentences or waiting)) if tokens else len(lengths)
        free = room - len(state.sentences)
        if waiting and (not state.sentences or free >= max(1, room // _AT_ONCE)):
            new = [waiting.pop() for _ in range(min(len(waiting), max(1, free)))]
            source_BS = pad([sources[i] for i in new]).to(model.embedding.weight_VD.device)
            state.admit(model.encode(source_BS), new, [lengths[i] for i in new])
        state.advance()
    return [sorted(found, key=lambda hypothesis: -hypothesis.score)[:n_best] for found in state.finished]


def likeliest(logits_RV: Tensor, at_limit_R: Tensor | None, count: int) -> tuple[Tensor, Tensor]:
    """The `count` likeliest pieces of each row that may be said, best first, and their true log-probabilities.

    Where the limit is reached, that is the end symbol alone. Fewer where there are fewer pieces. A log-softmax would
    write a number for every piece where one normaliser for the row will do.
    """
    logits_RV = logits_RV.float()
    normaliser_R1 = logits_RV.logsumexp(dim=1, keepdim=True)
    logits_RV[:, _NEVER_SAID] = -math.inf
    if at_limit_R is not None:
        end_R = logits_RV[at_limit_R, EOS]
        logits_RV[at_limit_R] = -math.inf
        logits_RV[at_limit_R, EOS] = end_R
    values, pieces = logits_RV.topk(min(count, logits_RV.shape[1]), dim=1)
    return values - normaliser_R1, pieces


@dataclass
class _Beams:
    """The live hypotheses of the sentences that are searched: B sentences, W hypotheses each.

    Each step takes the 2W best extensions of a sentence. Those of the first W that end are finished; the best W that
    do not end live on. A sentence is over when no live one can still win, or when W have finished and none is ahead.
    With W = 1 this is greedy search.
    """

    cache: DecoderCache
    beam: int
    alpha: float
    max_extra: int  # most pieces of a hypothesis beyond those of its source
    n_best: int
    finished: list[list[Hypothesis]]  # of every source sentence
    sentences: list[int] = field(default_factory=list)  # which source sentence each of the B is
    said: list[int] = field(default_factory=list)  # pieces of its hypotheses
    lengths: list[int] = field(default_factory=list)  # pieces of its source
    scores_BW: Tensor = field(default_factory=lambda: torch.zeros(0))  # log-probabilities; -inf: there is none
    prefixes_BWT: Tensor = field(default_factory=lambda: torch.zeros(0))  # the last `said` columns are its own

    def admit(self, memory: Memory, sentences: list[int], lengths: list[int]) -> None:
        """More sentences, each with the start symbol."""
        self.cache.admit(memory)
        n, W, device = len(sentences), self.beam, memory.states_BSD.device
        scores_BW = torch.full((n, W), -math.inf, device=device)
        scores_BW[:, 0] = 0.0  # all W hypotheses begin alike: only one of them counts
        prefixes_BWT = torch.full((n, W, self.cache.length + 1), BOS, device=device)
        if self.sentences:
            scores_BW = torch.cat([self.scores_BW, scores_BW])
            prefixes_BWT = torch.cat([self.prefixes_BWT, prefixes_BWT])
        self.scores_BW, self.prefixes_BWT = scores_BW, prefixes_BWT
        self.sentences, self.lengths = self.sentences + sentences, self.lengths + lengths
        self.said = self.said + [0] * n

    def limit(self, b: int) -> int:
        """Most pieces of a sentence's hypotheses, the end symbol included."""
        return self.lengths[b] + self.max_extra

    def advance(self) -> None:
        """One more piece for every live hypothesis."""
        scores, rows, pieces = self._best_extensions()
        self.said = [length + 1 for length in self.said]
        ends = pieces == EOS
        self._finish(scores, rows, ends)
        live_BW = _first_without(ends, self.beam)
        self.scores_BW, rows_BW, pieces_BW = (t.gather(1, live_BW) for t in (scores, rows, pieces))
        self.cache.follow(rows_BW)
        before_BWT = self.prefixes_BWT.gather(1, rows_BW[:, :, None].expand_as(self.prefixes_BWT))
        self.prefixes_BWT = torch.cat([before_BWT, pieces_BW[:, :, None]], dim=2)
        best_live = self.scores_BW.amax(dim=1).tolist()
        self._dismiss([b for b in range(len(self.sentences)) if self._is_over(b, best_live[b])])

    def _best_extensions(self) -> tuple[Tensor, Tensor, Tensor]:
        """Score, origin (0 … W-1) and new piece of the best extensions of each sentence, best first: B × 2W each."""
        B, W = self.scores_BW.shape
        last_BW = self.prefixes_BWT[:, :, -1]
        # A sentence that is over and still here has no position of its own any more.
        positions = [min(said, self.limit(b) - 1) for b, said in enumerate(self.said)]
        at_limit = [said == self.limit(b) - 1 for b, said in enumerate(self.said)]
        logits_RV = self.cache.step(last_BW.reshape(-1), self._of_rows(positions))
        # No more than 2W of the best 2W extensions of a sentence come from one hypothesis.
        log_p_RC, pieces_RC = likeliest(logits_RV, self._of_rows(at_limit) if any(at_limit) else None, 2 * W)
        C = log_p_RC.shape[1]
        totals = (self.scores_BW.view(-1, 1) + log_p_RC).view(B, W * C)
        scores, flat = totals.topk(min(2 * W, W * C), dim=1)
        return scores, flat // C, pieces_RC.view(B, W * C).gather(1, flat)

    def _of_rows(self, of_sentences: list[int] | list[bool]) -> Tensor:
        return torch.tensor(of_sentences, device=self.scores_BW.device).repeat_interleave(self.beam)

    def _finish(self, scores: Tensor, rows: Tensor, ends: Tensor) -> None:
        ended = ends[:, : self.beam] & (scores[:, : self.beam] > -math.inf)
        for b, place in ended.nonzero().tolist():
            total, length = float(scores[b, place]), self.said[b]
            prefix = self.prefixes_BWT[b, rows[b, place]].tolist()
            ids = (*prefix[len(prefix) - length + 1 :], EOS)
            self.finished[self.sentences[b]].append(Hypothesis(ids, total, total / length_penalty(length, self.alpha)))

    def _is_over(self, b: int, best_live: float) -> bool:
        found = self.finished[self.sentences[b]]
        if not best_live > -math.inf:  # not a number is no hypothesis either
            return True
        if len(found) < self.n_best:
            return False
        # Log-probabilities only fall, so a live hypothesis can at best keep its own up to the longest length. Once W
        # have finished it gets no such credit: it must be ahead as it stands.
        length = self.limit(b) if len(found) < self.beam else self.said[b]
        attainable = best_live / length_penalty(length, self.alpha)
        return sorted((h.score for h in found), reverse=True)[self.n_best - 1] >= attainable

    def _dismiss(self, over: list[int]) -> None:
        """Sentences that are over have no hypothesis any more; they leave once they are some of the batch."""
        if not over:
            return
        if len(over) <= len(self.sentences) // _AT_ONCE:
            self.scores_BW[over] = -math.inf
            return
        gone = set(over)
        kept = [b for b in range(len(self.sentences)) if b not in gone]
        self.sentences, self.said, self.lengths = (
            [values[b] for b in kept] for values in (self.sentences, self.said, self.lengths)
        )
        kept_B = torch.tensor(kept, dtype=torch.long, device=self.scores_BW.device)
        steps = max(self.said, default=0)
        self.cache.keep(kept_B, steps, max(self.lengths, default=0))
        self.scores_BW = self.scores_BW[kept_B]
        self.prefixes_BWT = self.prefixes_BWT[kept_B, :, self.prefixes_BWT.shape[2] - steps - 1 :]


def _first_without(ends: Tensor, count: int) -> Tensor:
    """Places of the first `count` extensions that do not end, per sentence, in order of score."""
    places = torch.arange(ends.shape[1], device=ends.device).expand_as(ends)
    ranked = torch.where(ends, places + ends.shape[1], places).sort(dim=1).values[:, :count]
    return ranked % ends.shape[1]
