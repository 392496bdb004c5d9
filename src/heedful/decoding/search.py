"""Beam search (section 6.1); greedy search is a beam of one.

A finished hypothesis Y scores log P(Y|X) / ((5 + |Y|) / 6)^α, where |Y| counts tokens with the end token (the length
penalty of GNMT). It has at most source tokens + max_extra tokens: at the last position only the end token is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from heedful.config import BOS, EOS
from heedful.data.batches import pad
from heedful.decoding.cache import DecoderCache
from heedful.decoding.inference_model import SearchModel
from heedful.decoding.top_tokens import top_tokens
from heedful.model.transformer import Transformer

# Sentences enter and leave by an eighth of the batch: the encoder gets a batch and the cache is rarely copied.
_AT_ONCE = 8

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class Hypothesis(NamedTuple):
    """Tokens with the end token, their log-probability, and the score that ranks them."""

    ids: tuple[int, ...]
    log_probability: float
    score: float


def length_penalty(length: Any, alpha: float) -> Any:
    """Return ((5 + |Y|) / 6)^α for a length or an array of lengths."""
    return ((5 + length) / 6) ** alpha


def power_penalty(length: Any, alpha: float) -> Any:
    """Return |Y|^α, the form of CTranslate2 and Marian."""
    return length**alpha


Penalty = Callable[[Any, float], Any]  # of a length or an array of lengths, and α


def beam_search(
    model: Transformer | SearchModel,
    sources: Sequence[list[int]],
    beam: int = 4,
    alpha: float = 0.6,
    max_extra: int = 50,
    n_best: int = 1,
    tokens: int = 0,
    penalty: Penalty | None = None,
) -> list[list[Hypothesis]]:
    """Return the `n_best` hypotheses of each sentence, best first (fewer where fewer exist).

    At most `tokens` padded source tokens times the beam are searched together (0: no limit). When sentences finish,
    waiting ones take their rows. Make a `SearchModel` once if you search more than once.
    """
    ready = model if isinstance(model, SearchModel) else SearchModel(model)
    sentences = [_Sentence(source, len(source) + max_extra) for source in sources]
    waiting = sorted(sentences, key=lambda s: len(s.source))  # longest first: if memory runs out, it does so at once
    with torch.inference_mode():
        beams = _Beams(ready, beam, alpha, n_best, penalty or length_penalty)
        while waiting or beams.live:
            longest = max(len(sentence.source) for sentence in beams.live or waiting)
            room = tokens // (beam * longest) if tokens else len(sentences)
            free = room - len(beams.live)
            if waiting and (not beams.live or free >= max(1, room // _AT_ONCE)):
                beams.admit([waiting.pop() for _ in range(min(len(waiting), max(1, free)))])
            beams.advance()
            beams.dismiss(for_good=not waiting)
    return [sorted(s.finished, key=lambda hypothesis: -hypothesis.score)[:n_best] for s in sentences]


@dataclass(eq=False)
class _Sentence:
    """A source sentence and its finished hypotheses."""

    source: list[int]
    limit: int  # maximum tokens of a hypothesis, the end token included
    finished: list[Hypothesis] = field(default_factory=list)


class _Beams:
    """The sentences being searched, W hypotheses each, one sentence per row of the cache.

    Some rows are free. Each step takes the 2W best extensions of every sentence. Those among the first W that end are
    finished; the best W that do not end stay live. A sentence is done when no live hypothesis can still win, or when W
    have finished and no live one is ahead. With W = 1 this is greedy search.

    Torch computes over the vocabulary; numpy does the bookkeeping, because its operations on small arrays are cheaper.
    """

    def __init__(self, model: SearchModel, beam: int, alpha: float, n_best: int, penalty: Penalty) -> None:
        self.beam, self.n_best = beam, n_best
        self.alpha, self._penalty_of = alpha, penalty
        self._model = model
        self._cache = DecoderCache(model.decoder, beam)
        self._sentences: list[_Sentence | None] = []  # by row; None: free
        self.live: list[_Sentence] = []
        self._state = _BeamState.empty(0, beam)

    def admit(self, sentences: list[_Sentence]) -> None:
        """Encode sentences and give each a row."""
        rows = [row for row, sentence in enumerate(self._sentences) if sentence is None][: len(sentences)]
        more = len(sentences) - len(rows)
        rows += range(len(self._sentences), len(self._sentences) + more)
        self._sentences += [None] * more
        self._state = self._state.extended(more)
        for row, sentence in zip(rows, sentences, strict=True):
            self._sentences[row] = sentence
            self._state.start(row, sentence.limit)
        self.live += sentences
        source_BS = pad([sentence.source for sentence in sentences]).to(self._model.device)
        self._cache.admit(self._model.encoder.encode(source_BS), rows)

    def advance(self) -> None:
        """Extend every live hypothesis by one token."""
        scores_BC, origins_BC, tokens_BC = self._best_extensions()
        state, W = self._state, self.beam
        ends_BC = tokens_BC == EOS
        state.generated_B += 1
        for row, place in np.argwhere(ends_BC[:, :W] & (scores_BC[:, :W] > -math.inf)).tolist():
            self._finish(row, int(origins_BC[row, place]), float(scores_BC[row, place]))
        live_BW = np.argsort(ends_BC, axis=1, kind="stable")[:, :W]  # those that do not end, best first
        rows_B1 = np.arange(len(live_BW))[:, None]
        state.follow(scores_BC[rows_B1, live_BW], origins_BC[rows_B1, live_BW], tokens_BC[rows_B1, live_BW])
        if W > 1:
            self._cache.follow(torch.from_numpy(origins_BC[rows_B1, live_BW]).to(self._model.device))

    def dismiss(self, for_good: bool) -> None:
        """Free the rows of sentences that are done.

        `for_good`: no sentence is waiting for these rows. They are then removed, an eighth of the batch at a time,
        because removing copies the cache.
        """
        over = [row for row in np.flatnonzero(self._over()).tolist() if self._sentences[row] is not None]
        if not over:
            return
        for row in over:
            self._sentences[row] = None
        self.live = [sentence for sentence in self._sentences if sentence is not None]
        rows = [row for row, sentence in enumerate(self._sentences) if sentence is not None]
        steps = int(self._state.generated_B[rows].max(initial=0))
        self._cache.narrow(steps, max((len(s.source) for s in self.live), default=0))
        if for_good and rows and len(self._sentences) - len(rows) > len(self._sentences) // _AT_ONCE:
            self._cache.keep(rows)
            self._sentences = [*self.live]
            self._state = self._state.kept(rows)

    def _best_extensions(self) -> tuple[Floats, Ints, Ints]:
        """Return scores, origins (0 … W-1) and tokens of each row's best 2W, best first.

        Ignore free rows.
        """
        W, state, device = self.beam, self._state, self._model.device
        B = len(self._sentences)
        positions_R = torch.from_numpy(state.generated_B.repeat(W)).to(device)
        logits_RV = self._cache.step(torch.from_numpy(state.last_BW.reshape(-1)).to(device), positions_R)
        at_limit_B = state.generated_B == state.limit_B - 1
        at_limit_R = torch.from_numpy(at_limit_B.repeat(W)).to(device) if at_limit_B.any() else None
        # At most 2W of the best 2W extensions of a sentence come from one hypothesis.
        log_p_RC, tokens_RC = (x.cpu().numpy() for x in top_tokens(logits_RV, at_limit_R, 2 * W))
        C = log_p_RC.shape[1]
        scores = (state.score_BW.reshape(-1, 1) + log_p_RC).reshape(B, W * C)
        best = np.argsort(-scores, axis=1, kind="stable")[:, : min(2 * W, W * C)]
        rows_B1 = np.arange(B)[:, None]
        return scores[rows_B1, best], best // C, tokens_RC.reshape(B, W * C)[rows_B1, best]

    def _finish(self, row: int, origin: int, score: float) -> None:
        sentence, state = self._sentences[row], self._state
        if sentence is None:
            return
        length = int(state.generated_B[row])
        ids = (*state.tokens_BWT[row, origin, : length - 1].tolist(), EOS)
        sentence.finished.append(Hypothesis(ids, score, float(score / self._penalty(length))))
        ranked = sorted((hypothesis.score for hypothesis in sentence.finished), reverse=True)
        state.finished_B[row] = len(ranked)
        if len(ranked) >= max(self.beam, self.n_best):
            state.to_beat_B[row] = ranked[0]  # ends here for every n_best, so that each finds the same best
        elif len(ranked) >= self.n_best:
            state.to_beat_B[row] = ranked[self.n_best - 1]

    def _penalty(self, length: Any) -> Any:
        return self._penalty_of(length, self.alpha)

    def _over(self) -> npt.NDArray[np.bool_]:
        state = self._state
        best_live_B = state.score_BW.max(axis=1).astype(np.float64)
        # Log-probabilities only fall, so a live hypothesis can at best keep its own until the maximum length. Once W
        # have finished, it must be ahead already.
        length_B = np.where(state.finished_B < self.beam, state.limit_B, state.generated_B)
        attainable_B = best_live_B / self._penalty(length_B)
        # NaN is not a hypothesis either.
        over: npt.NDArray[np.bool_] = ~(best_live_B > -math.inf) | (state.to_beat_B >= attainable_B)
        return over


@dataclass
class _BeamState:
    """The state of every row: its W live hypotheses and its finished ones."""

    generated_B: Ints  # tokens of the live hypotheses
    limit_B: Ints
    finished_B: Ints  # number of finished hypotheses
    to_beat_B: npt.NDArray[np.float64]  # score of the n-th best finished one, of the best once W have finished; or -∞
    score_BW: Floats  # log-probabilities; -∞: there is no such hypothesis
    last_BW: Ints  # newest token
    tokens_BWT: Ints  # all tokens, without the start token

    @classmethod
    def empty(cls, rows: int, beam: int) -> _BeamState:
        def filled(value: float, *shape: int, kind: type = np.int64) -> Any:
            return np.full((rows, *shape), value, kind)

        return cls(
            generated_B=filled(0),
            limit_B=filled(0),
            finished_B=filled(0),
            to_beat_B=filled(-math.inf, kind=np.float64),
            score_BW=filled(-math.inf, beam, kind=np.float32),
            last_BW=filled(BOS, beam),
            tokens_BWT=filled(0, beam, 0),
        )

    def start(self, row: int, limit: int) -> None:
        """Assign a row to a new sentence.

        All its hypotheses start equal, so only one of them counts.
        """
        self.generated_B[row], self.limit_B[row], self.finished_B[row], self.to_beat_B[row] = 0, limit, 0, -math.inf
        self.score_BW[row], self.score_BW[row, 0], self.last_BW[row] = -math.inf, 0.0, BOS

    def follow(self, score_BW: Floats, origins_BW: Ints, last_BW: Ints) -> None:
        """Continue from hypotheses `origins_BW` with these tokens and scores."""
        B, W, T = self.tokens_BWT.shape
        if (longest := int(self.generated_B.max(initial=0))) > T:
            wider = np.zeros((B, W, max(16, 2 * longest)), np.int64)
            wider[:, :, :T] = self.tokens_BWT
            self.tokens_BWT = wider
        rows_B = np.arange(B)
        if W > 1:
            self.tokens_BWT = self.tokens_BWT[rows_B[:, None], origins_BW]
        self.tokens_BWT[rows_B, :, self.generated_B - 1] = last_BW
        self.score_BW, self.last_BW = score_BW, last_BW

    def extended(self, rows: int) -> _BeamState:
        """Return a copy with this many additional rows."""
        _, W, T = self.tokens_BWT.shape
        new = _BeamState.empty(rows, W)
        new.tokens_BWT = np.zeros((rows, W, T), np.int64)
        return _BeamState(
            *(np.concatenate([old, more]) for old, more in zip(self._arrays(), new._arrays(), strict=True))
        )

    def kept(self, rows: list[int]) -> _BeamState:
        """Return a copy with only these rows."""
        return _BeamState(*(array[rows] for array in self._arrays()))

    def _arrays(self) -> tuple[Any, ...]:
        return tuple(vars(self).values())
