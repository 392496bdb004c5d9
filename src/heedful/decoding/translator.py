"""Text in, text out."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, overload

import torch
import torch.nn.functional as F

from heedful.config import BOS, EOS, PAD
from heedful.data.batches import pad
from heedful.decoding.decoder import SearchDecoder, has_int8
from heedful.decoding.search import Hypothesis, beam_search
from heedful.errors import InputError, MachineError, ModelError, UsageError
from heedful.model.transformer import AttentionWeights
from heedful.storage.model_directory import Model
from heedful.text.corpus import clean
from heedful.text.lines import check_text, one_line
from heedful.text.sentences import split_text

log = logging.getLogger("heedful")


class Attention(NamedTuple):
    """What every head attended to: weights[layer, head, row, column], rows and columns named by tokens.

    The decoder's rows are positions, each named by the token that it says next.
    """

    source: list[str]
    target: list[str]
    encoder: torch.Tensor  # N × H × S × S
    decoder: torch.Tensor  # N × H × T × T
    cross: torch.Tensor  # N × H × T × S


@dataclass(frozen=True)
class Translation:
    """The translation of one line."""

    text: str  #: the translated text
    score: float  #: log-probability divided by the length penalty; 0 for an empty line
    tokens: tuple[str, ...]  #: the tokens of the text, without the end symbol
    alternatives: tuple[Translation, ...] = ()  #: the next best translations, with `n_best`
    attention: Attention | None = None  #: with `attention=True`; None for empty or split lines


class PairScore(NamedTuple):
    log_probability: float  # natural logarithm
    tokens: int  # of the target, the end symbol included


_EMPTY = Translation("", 0.0, ())
_NOT_NUMBERS = "The model cannot translate: its probabilities are not numbers. Its weights are damaged."


class Translator:
    """A loaded model that translates and scores text. `heedful.load` returns one."""

    def __init__(self, model: Model, int8: bool = False) -> None:
        self.model = model
        self.device = next(model.transformer.parameters()).device
        if int8 and self.device.type != "cpu":
            raise UsageError(f"int8 is for a CPU, and this model is on {self.device}. Leave out one of the two.")
        if int8 and not has_int8():
            raise MachineError("This torch has no products of 8-bit integers. Leave out int8, or use another torch.")
        if int8 and not all(bool(weight.isfinite().all()) for weight in model.transformer.parameters()):
            raise ModelError(_NOT_NUMBERS)  # which has no place among integers
        self._decoder = SearchDecoder(model.transformer, int8)

    @overload
    def translate(
        self,
        text: str,
        *,
        beam: int | None = None,
        alpha: float | None = None,
        n_best: int = 1,
        attention: bool = False,
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
        first_line: int = 1,
    ) -> Translation | list[Translation]:
        """Translate one line, or a list of lines in order. `beam` and `alpha` default to the model's own.

        `first_line` is the number of the first line in error messages.
        """
        lines = [text] if isinstance(text, str) else list(text)
        settings = self._settings(beam, alpha, n_best)
        parts = [self._parts(line, number) for number, line in enumerate(lines, start=first_line)]
        flat = iter(self._translate_parts([part for line in parts for part in line], settings, attention))
        results = [_joined([next(flat) for _ in line]) for line in parts]
        return results[0] if isinstance(text, str) else results

    def score(self, sources: Sequence[str], targets: Sequence[str], *, first_line: int = 1) -> list[PairScore]:
        """Return the log-probability of each target, given its source (teacher forcing)."""
        sides = list(zip(sources, targets, strict=True))
        for number, pair in enumerate(sides, start=first_line):
            check_text("\n".join(pair), f"line {number}")
        pairs = [(self.ids(source), self.ids(target)) for source, target in sides]
        results: list[PairScore] = [PairScore(0.0, 0)] * len(pairs)
        longest = [max(map(len, pair)) for pair in pairs]
        for number, tokens in enumerate(longest, start=first_line):
            if tokens > self.model.text.max_length:
                raise InputError(
                    f"Line {number} has {tokens} tokens, more than the {self.model.text.max_length} that this model "
                    "was trained on: its probability would mean nothing. Split it."
                )
        decoding = self.model.decoding
        for batch in _batches(longest, decoding.batch_tokens // decoding.beam):  # as many rows as search has
            scored = self._score_batch([pairs[i] for i in batch])
            for index, result in zip(batch, scored, strict=True):
                results[index] = result
        return results

    def ids(self, text: str) -> list[int]:
        """Return the token ids of a line, with the end token."""
        return [*self.model.tokenizer.encode(clean(text, self.model.text.lowercase)), EOS]

    def _settings(self, beam: int | None, alpha: float | None, n_best: int) -> _Settings:
        own = self.model.decoding
        settings = _Settings(own.beam if beam is None else beam, own.alpha if alpha is None else alpha, n_best)
        if settings.beam < 1 or settings.alpha < 0 or n_best < 1:
            raise UsageError("beam and n-best must be at least 1, and alpha at least 0.")
        if n_best > settings.beam:
            raise UsageError(f"n-best {n_best} is more than the beam of {settings.beam} can find. Raise the beam.")
        return settings

    def _parts(self, line: str, number: int) -> list[str]:
        """The line itself, or its sentences where it is longer than anything the model was trained on."""
        longest = self.model.text.max_length
        line = clean(check_text(line, f"line {number}"), self.model.text.lowercase)
        # A token has at least one byte: most lines need no tokenizing to know that they fit.
        if not line or len(line.encode("utf-8")) + 2 <= longest or len(self.ids(line)) <= longest:
            return [line]
        parts = split_text(line, lambda part: len(self.ids(part)) <= longest)
        log.warning(
            "line %d is longer than the %d tokens this model was trained on; translated in %d parts",
            number,
            longest,
            len(parts),
        )
        return parts

    def _translate_parts(self, parts: list[str], settings: _Settings, attention: bool) -> list[Translation]:
        results = [_EMPTY] * len(parts)
        filled = [index for index, part in enumerate(parts) if part]
        sources = [self.ids(parts[index]) for index in filled]
        found = self._search(sources, settings) if sources else []
        for index, source, hypotheses in zip(filled, sources, found, strict=True):
            results[index] = self._translation(source, hypotheses, attention)
        return results

    def _search(self, sources: list[list[int]], settings: _Settings) -> list[list[Hypothesis]]:
        own = self.model.decoding
        found = beam_search(
            self.model.transformer,
            sources,
            settings.beam,
            settings.alpha,
            own.max_extra,
            settings.n_best,
            tokens=own.batch_tokens,
            decoder=self._decoder,
        )
        if any(not hypotheses or math.isnan(hypotheses[0].score) for hypotheses in found):
            raise ModelError(_NOT_NUMBERS)
        return found

    def _translation(self, source: list[int], hypotheses: list[Hypothesis], attention: bool) -> Translation:
        best, *others = (self._text(hypothesis) for hypothesis in hypotheses)
        weights = self.attention(source, list(hypotheses[0].ids)) if attention else None
        return replace(best, alternatives=tuple(others), attention=weights)

    def _text(self, hypothesis: Hypothesis) -> Translation:
        ids = hypothesis.ids[:-1]
        tokenizer = self.model.tokenizer
        return Translation(one_line(tokenizer.decode(ids)), hypothesis.score, tuple(tokenizer.tokens(ids)))

    @torch.inference_mode()
    def attention(self, source: list[int], target: list[int]) -> Attention:
        """All weights of one pair of sentences, given as ids with their end symbols."""
        source_1S = torch.tensor([source], device=self.device)
        target_1T = torch.tensor([[BOS, *target[:-1]]], device=self.device)
        weights: AttentionWeights = self.model.transformer.attention_weights(source_1S, target_1T)
        names = self.model.tokenizer.tokens
        return Attention(names(source), names(target), *(w[:, 0].cpu() for w in weights))

    @torch.inference_mode()
    def _score_batch(self, pairs: list[tuple[list[int], list[int]]]) -> list[PairScore]:
        source_BS = pad([source for source, _ in pairs]).to(self.device)
        target_BT = pad([target for _, target in pairs]).to(self.device)
        shifted_BT = F.pad(target_BT, (1, 0), value=BOS)[:, :-1]
        logits_BTV = self.model.transformer(source_BS, shifted_BT).float()
        picked_BT = logits_BTV.gather(2, target_BT[:, :, None])[:, :, 0] - logits_BTV.logsumexp(dim=2)
        totals = (picked_BT * (target_BT != PAD)).sum(dim=1).tolist()
        return [PairScore(total, len(target)) for total, (_, target) in zip(totals, pairs, strict=True)]


class _Settings(NamedTuple):
    beam: int
    alpha: float
    n_best: int


def _batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices in batches of at most `tokens` padded positions, longest first: memory runs out at once or never."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _joined(parts: list[Translation]) -> Translation:
    """One translation of a line's parts: their texts side by side, their scores summed. It has no attention."""
    if len(parts) == 1:
        return parts[0]
    ranked = zip(*((part, *part.alternatives) for part in parts), strict=False)
    best, *others = (
        Translation(
            text=" ".join(part.text for part in row),
            score=sum(part.score for part in row),
            tokens=tuple(token for part in row for token in part.tokens),
        )
        for row in ranked
    )
    return replace(best, alternatives=tuple(others))
