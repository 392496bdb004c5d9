"""Word alignment of a translation with its source, computed from cross-attention."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from heedful.decoding.translator import Translator
from heedful.serving.inline_markup import FAINT, AlignedText, Run, Span, Word
from heedful.text.text_segments import Segment, SegmentedText
from heedful.views.word_attention import group_tokens, word_weights


def needs_alignment(borders: Sequence[int], segment: Segment) -> bool:
    """Return whether an element starts or ends inside a segment."""
    at = bisect_right(borders, segment.start)
    return at < len(borders) and borders[at] < segment.start + len(segment.text)


def align_words(translator: Translator, segment: Segment, target: list[int]) -> AlignedText:
    """Return the words of a segment's translation with their weights to the source words."""
    attention, text = translator.attention(segment.ids, target), translator.text(target)
    source_owners, target_owners = (group_tokens(tokens)[1] for tokens in (attention.source, attention.target))
    weights_TS = word_weights(attention.cross.mean(dim=(0, 1)), target_owners, source_owners)
    source_words = _words(translator, segment.text, segment.ids, source_owners)
    target_words = _words(translator, text, target, target_owners)
    rows = _weaken_mismatched_weights(
        weights_TS[: len(target_words), : len(source_words)],  # without EOS
        [_is_punctuation(text[slice(*span)]) for span in target_words],
        [_is_punctuation(segment.text[slice(*span)]) for span in source_words],
    )
    words = [Word(*span, row, 0) for span, row in zip(target_words, rows.tolist(), strict=True)]
    return AlignedText(text, words, source_words)


def _weaken_mismatched_weights(weights_TS: Tensor, target: list[bool], source: list[bool]) -> Tensor:
    """Weaken weights between words and punctuation: idle heads attend to the full stop."""
    alike_TS = torch.tensor(target)[:, None] == torch.tensor(source)[None, :]
    return torch.where(alike_TS, weights_TS, FAINT * weights_TS)


def _is_punctuation(word: str) -> bool:
    return not any(character.isalnum() for character in word)


def _words(translator: Translator, text: str, ids: Sequence[int], owners: Sequence[int]) -> list[Span]:
    """Return the spans of a text's words, from their tokens; EOS is excluded."""
    groups: list[list[int]] = [[] for _ in range(owners[-1])]
    for token, owner in zip(ids[:-1], owners, strict=False):
        groups[owner].append(token)
    spans, position = [], 0
    for group in groups:
        word = translator.model.tokenizer.decode(group).strip()
        found = text.find(word, position)
        start = found if found >= 0 else min(position, len(text))  # lowercased, or an incomplete character
        position = min(start + len(word), len(text))
        spans.append((start, position))
    return spans


def whole(segment: Segment, text: str) -> AlignedText:
    """Return a translation as a single aligned word."""
    return AlignedText(text, [Word(0, len(text), [1.0], 0)] if text else [], [(0, len(segment.text))])


def unchanged(run: Run) -> AlignedText:
    """Return a run without words, aligned with itself."""
    borders = sorted({0, *run.borders(), len(run.text)})
    spans = list(pairwise(borders))
    return AlignedText(run.text, [Word(*span, [1.0], number) for number, span in enumerate(spans)], spans)


def join_aligned(run: Run, segmented: SegmentedText, translations: Sequence[AlignedText]) -> AlignedText:
    """Join the aligned translations of a run's segments."""
    if not translations:
        return unchanged(run)
    words: list[Word] = []
    source_words: list[Span] = []
    position = 0
    texts = segmented.interleaved([one.text for one in translations])
    for number, (segment, one) in enumerate(zip(segmented.segments, translations, strict=True)):
        position += len(texts[2 * number])
        words += [
            Word(word.start + position, word.end + position, word.weights, word.first + len(source_words))
            for word in one.words
        ]
        source_words += [(start + segment.start, end + segment.start) for start, end in one.source_words]
        position += len(one.text)
    return AlignedText("".join(texts), words, source_words)
