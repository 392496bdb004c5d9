"""The translator: text in, text out."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, overload

import torch

from heedful.config import BOS, EOS
from heedful.data.batches import assemble
from heedful.data.token_budget import batches_by_length
from heedful.decoding.likelihood import log_likelihoods
from heedful.decoding.projection_kernels import Precision
from heedful.decoding.search import Hypothesis
from heedful.decoding.search_engine import NAN_OUTPUT, OwnSearcher, Searcher
from heedful.devices import preserved_torch_state
from heedful.errors import InputError, ModelError, UsageError
from heedful.model.transformer import AttentionWeights
from heedful.storage.model_directory import Model
from heedful.text.corpus import clean
from heedful.text.text_files import check_text, one_line
from heedful.text.text_segments import SegmentedText, by_rank, segment_text

log = logging.getLogger("heedful")


class Attention(NamedTuple):
    """Attention weights of every head: weights[layer, head, row, column].

    Tokens name the rows and columns. A row of the decoder is a position, named by the token that it predicts.
    """

    source: list[str]
    target: list[str]
    encoder: torch.Tensor  # encoder layers × H × S × S
    decoder: torch.Tensor  # decoder layers × H × T × T
    cross: torch.Tensor  # decoder layers × H × T × S


@dataclass(frozen=True)
class Translation:
    """The translation of one line.

    Several sentences have their texts joined and their scores summed.
    """

    text: str  #: the translated text
    score: float  #: log-probability divided by the length penalty; 0 for an empty line
    tokens: tuple[str, ...]  #: the tokens of the text, without the end token
    alternatives: tuple[Translation, ...] = ()  #: the next best, with `n_best`; ranks are joined sentence by sentence
    attention: Attention | None = None  #: with `attention=True`; None for an empty line and for several sentences
    sentences: tuple[Translation, ...] = ()  #: the parts of a line with several sentences, each with its own attention


class PairScore(NamedTuple):
    log_probability: float  # natural logarithm
    tokens: int  # of the target, the end token included


_EMPTY = Translation("", 0.0, ())


class Translator:
    """A loaded model that translates and scores text. `heedful.load` returns one."""

    def __init__(self, model: Model, precision: Precision = "fp32", searcher: Searcher | None = None) -> None:
        self.model = model
        self.device = next(model.transformer.parameters()).device
        self.searcher: Searcher = searcher or OwnSearcher(model, precision)

    @overload
    def translate(
        self,
        text: str,
        *,
        beam: int | None = None,
        alpha: float | None = None,
        n_best: int = 1,
        attention: bool = False,
        split: bool = True,
        first_line: int = 1,
    ) -> Translation: ...
    @overload
    def translate(
        self,
        text: list[str],
        *,
        beam: int | None = None,
        alpha: float | None = None,
        n_best: int = 1,
        attention: bool = False,
        split: bool = True,
        first_line: int = 1,
    ) -> list[Translation]: ...
    def translate(
        self,
        text: str | list[str],
        *,
        beam: int | None = None,
        alpha: float | None = None,
        n_best: int = 1,
        attention: bool = False,
        split: bool = True,
        first_line: int = 1,
    ) -> Translation | list[Translation]:
        """Translate a line, or a list of lines in order.

        Beam and alpha default to the model's own.

        A line with several sentences is translated sentence by sentence where the training text had one sentence per
        line; `split=False` prevents that. Tab-separated cells are translated one by one, and the tabs are kept.
        `first_line` is the number of the first line in messages.
        """
        lines = _lines(text)
        segmented = [self._segment_line(line, number, split) for number, line in enumerate(lines, start=first_line)]
        sources = [segment.ids for line in segmented for segment in line.segments]
        found = iter(self.search(sources, beam=beam, alpha=alpha, n_best=n_best))
        results = [self._line(line, [next(found) for _ in line.segments], attention) for line in segmented]
        return results[0] if isinstance(text, str) else results

    def segment(self, text: str, *, split: bool = True) -> SegmentedText:
        """Split a text into the segments that the model translates, each with its token ids."""
        facts = self.model.text
        by_sentence = facts.sentence_per_line and split
        prefix, rest = self.model.tokenizer.language_prefix(text)  # every segment gets it

        def encode(part: str) -> list[int]:
            return self.ids(prefix + part)

        found = segment_text(rest, encode, facts.max_length, by_sentence, facts.source_language)
        skipped = len(text) - len(rest)
        return found._replace(segments=[one._replace(start=one.start + skipped) for one in found.segments])

    def search(
        self, sources: list[list[int]], *, beam: int | None = None, alpha: float | None = None, n_best: int = 1
    ) -> list[list[Hypothesis]]:
        """Find the best translations of every source; both are token ids with the end token."""
        settings = self._settings(beam, alpha, n_best)
        if not sources:
            return []
        found = self.searcher.search(sources, *settings)
        if any(not hypotheses or math.isnan(hypotheses[0].score) for hypotheses in found):
            raise ModelError(NAN_OUTPUT)
        return found

    def score(self, sources: Sequence[str], targets: Sequence[str], *, first_line: int = 1) -> list[PairScore]:
        """Score each target given its source, by teacher forcing. Lines are never split."""
        sides = list(zip(sources, targets, strict=True))
        for number, pair in enumerate(sides, start=first_line):
            check_text("\n".join(pair), f"line {number}")
        pairs = [(self.ids(source), self.target_ids(target)) for source, target in sides]
        results: list[PairScore] = [PairScore(0.0, 0)] * len(pairs)
        longest = [max(map(len, pair)) for pair in pairs]
        most = self.model.text.max_length
        for number, tokens in enumerate(longest, start=first_line):
            if tokens > most:
                raise InputError(
                    f"Line {number} has {tokens} tokens, more than the training maximum of {most}, so its "
                    "probability would be meaningless. Split the line."
                )
        decoding = self.model.decoding
        for batch in batches_by_length(longest, decoding.batch_tokens // decoding.beam):  # as many rows as search has
            scored = self._score_batch([pairs[i] for i in batch])
            for index, result in zip(batch, scored, strict=True):
                results[index] = result
        return results

    def ids(self, text: str) -> list[int]:
        """Return the token ids of a line, with the end token."""
        return [*self.model.tokenizer.encode(clean(text, self.model.text.lowercase)), EOS]

    def target_ids(self, text: str) -> list[int]:
        """Return the token ids of a line in the target language, with the end token."""
        return [*self.model.tokenizer.target.encode(clean(text, self.model.text.lowercase)), EOS]

    def _settings(self, beam: int | None, alpha: float | None, n_best: int) -> _Settings:
        own = self.model.decoding
        settings = _Settings(
            own.beam if beam is None else beam, self.searcher.alpha if alpha is None else alpha, n_best
        )
        if settings.beam < 1 or settings.alpha < 0 or n_best < 1:
            raise UsageError(
                f"beam and n-best must be at least 1, and alpha at least 0, not beam = {settings.beam}, "
                f"n-best = {n_best} and alpha = {settings.alpha}."
            )
        if n_best > settings.beam:
            raise UsageError(f"n-best = {n_best} is larger than beam = {settings.beam}. Raise beam, or lower n-best.")
        return settings

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of token ids with the end token, on one line."""
        return one_line(self.model.tokenizer.decode(ids[:-1]))

    def _segment_line(self, line: str, number: int, split: bool) -> SegmentedText:
        segmented = self.segment(_stripped(check_text(line, f"line {number}")), split=split)
        if segmented.parts:
            log.warning(
                "line %d is longer than the training maximum of %d tokens; translated in %d parts",
                number,
                self.model.text.max_length,
                segmented.parts,
            )
        return segmented

    def _line(self, line: SegmentedText, found: list[list[Hypothesis]], attention: bool) -> Translation:
        """Join the translations of a line's segments, rank by rank."""
        if not found:
            return replace(_EMPTY, text=line.join([]))
        sentences = [
            self._translation(segment.ids, hypotheses, attention)
            for segment, hypotheses in zip(line.segments, found, strict=True)
        ]
        if len(sentences) == 1 and not any(line.separators):
            return sentences[0]
        best, *others = (_joined(line, row) for row in by_rank([(one, *one.alternatives) for one in sentences]))
        if len(sentences) == 1:
            return replace(best, alternatives=tuple(others), attention=sentences[0].attention)
        return replace(best, alternatives=tuple(others), sentences=tuple(sentences))

    def _translation(self, source: list[int], hypotheses: list[Hypothesis], attention: bool) -> Translation:
        tokens = self.model.tokenizer.tokens
        best, *others = (Translation(self.text(one.ids), one.score, tuple(tokens(one.ids[:-1]))) for one in hypotheses)
        weights = self.attention(source, list(hypotheses[0].ids)) if attention else None
        return replace(best, alternatives=tuple(others), attention=weights)

    def attention(self, source: list[int], target: list[int]) -> Attention:
        """Return the attention weights of a sentence pair, given as token ids with the end token."""
        source_1S = torch.tensor([source], device=self.device)
        target_1T = torch.tensor([[BOS, *target[:-1]]], device=self.device)
        with self.computing():
            weights: AttentionWeights = self.model.transformer.attention_weights(source_1S, target_1T)
        names = self.model.tokenizer.tokens
        return Attention(names(source), names(target), *(w[:, 0].cpu() for w in weights))

    def _score_batch(self, pairs: list[tuple[list[int], list[int]]]) -> list[PairScore]:
        sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
        with self.computing():
            totals = log_likelihoods(self.model.transformer, assemble(sources, targets, lines=()).to(self.device))
        return list(map(PairScore, totals, map(len, targets)))

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute with torch, on one thread if another engine's threads may be spinning."""
        with torch.inference_mode(), preserved_torch_state():
            if self.searcher.name != OwnSearcher.name:
                torch.set_num_threads(1)
            yield


def _lines(text: str | list[str]) -> list[str]:
    """Return a text, or a list of texts, as a list; raise TypeError for anything else."""
    lines = [text] if isinstance(text, str) else text
    if isinstance(lines, bytes | bytearray) or not isinstance(lines, Iterable):
        raise TypeError(f"translate takes a str or a list of str, not {_kind(text)}.")
    found = list(lines)
    for number, line in enumerate(found):
        if not isinstance(line, str):
            raise TypeError(f"translate takes a list of str, but item {number} is {_kind(line)}.")
    return found


def _kind(value: object) -> str:
    hint = ': decode it, for example with .decode("utf-8")' if isinstance(value, bytes | bytearray) else ""
    return f"{'None' if value is None else type(value).__name__}{hint}"


def _stripped(line: str) -> str:
    """Return the line without surrounding space, but with its tabs, which mark empty cells."""
    body = line.strip()
    before, _, after = line.partition(body) if body else (line, "", "")
    return "\t" * before.count("\t") + body + "\t" * after.count("\t")


class _Settings(NamedTuple):
    beam: int
    alpha: float
    n_best: int


def _joined(line: SegmentedText, sentences: Sequence[Translation]) -> Translation:
    return Translation(
        text=line.join([one.text for one in sentences]),
        score=sum(one.score for one in sentences),
        tokens=tuple(token for one in sentences for token in one.tokens),
    )
