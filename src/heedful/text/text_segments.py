"""Segmentation of a text into the segments to translate, and the spacing between them.

Python, the command line, the server and the attention views all use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from heedful.text.sentence_splitting import CLOSES, ENDS_AT_ONCE, split_sentences, split_text

T = TypeVar("T")
# A tab separates the cells of a table. The others end a line, for example in text copied from slides.
_BREAKS = r"\r\n\t\v\f\x85\u2028\u2029"
_CELL = re.compile(rf"[^{_BREAKS}]+|[{_BREAKS}]+")
_NO_SPACE_AFTER = tuple(ENDS_AT_ONCE + CLOSES)
Encode = Callable[[str], list[int]]  # text → token ids with EOS


class Segment(NamedTuple):
    """One input of the model: a sentence, a line, or part of one that is too long."""

    text: str
    start: int  # offset in the whole text
    ids: list[int]  # token ids with EOS


class SegmentedText(NamedTuple):
    """Segments in order, and the separators around them: one more than segments.

    A separator is white space, or None if two segments touch.
    """

    segments: list[Segment]
    separators: list[str | None]
    parts: int  # segments that are parts of a too long sentence

    def join(self, translations: Sequence[str]) -> str:
        """Return the text with each segment replaced by its translation; the spacing is kept."""
        return "".join(self.interleaved(translations))

    def interleaved(self, translations: Sequence[str]) -> list[str]:
        """Return separator, translation, separator, …, separator."""
        texts = [self.separators[0] or ""]
        for translation, separator in zip(translations, self.separators[1:], strict=True):
            texts.append(translation)
            # 。 needs no space after it, but the end of its translation may.
            texts.append(separator if separator is not None else "" if translation.endswith(_NO_SPACE_AFTER) else " ")
        return texts


def segment_text(text: str, encode: Encode, longest: int, sentence_per_line: bool, language: str = "") -> SegmentedText:
    """Split a text into lines, tab-separated cells and, for models that need it, sentences.

    A segment is cut at `longest` tokens. `language` is that of the text, if it is known.
    """
    segments: list[Segment] = []
    separators: list[str | None] = []
    separator, parts, offset = "", 0, 0
    for unit, ids, is_part in _units(text, encode, longest, sentence_per_line, language):
        body = unit.strip()
        before, _, after = unit.partition(body) if body else (unit, "", "")
        separator += before
        if body:
            separators.append(separator if separator or not segments else None)
            segments.append(Segment(body, offset + len(before), ids))
            separator, parts = after, parts + is_part
        offset += len(unit)
    return SegmentedText(segments, [*separators, separator], parts)


def _units(
    text: str, encode: Encode, longest: int, sentence_per_line: bool, language: str
) -> Iterator[tuple[str, list[int], bool]]:
    """Yield each unit with spacing, its token ids, and whether it is part of a cut sentence."""
    for line in _CELL.findall(text):
        for sentence in split_sentences(line, language) if sentence_per_line else [line]:
            ids = encode(sentence)
            if len(ids) <= longest:
                yield sentence, ids, False
                continue
            for part in split_text(sentence, lambda one: len(encode(one)) <= longest, language):
                yield part, encode(part), True


def by_rank(found: Sequence[Sequence[T]]) -> list[list[T]]:
    """Return the best translation of every segment, then the next best, repeating the last."""
    ranks = max(map(len, found), default=0)
    return [[one[min(rank, len(one) - 1)] for one in found] for rank in range(ranks)]
