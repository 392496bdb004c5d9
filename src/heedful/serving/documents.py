"""Text and HTML documents: extract the segments, and insert their translations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from heedful.decoding.translator import Translator
from heedful.serving.html_parser import parse_html
from heedful.serving.inline_markup import AlignedText, Run, restore
from heedful.serving.word_alignment import join_aligned, needs_alignment, whole
from heedful.text.text_segments import Segment, SegmentedText


class Document(Protocol):
    segments: list[Segment]
    to_align: list[int]  # indices of the segments that need word alignment

    def fill(self, translations: list[list[int]], aligned: Mapping[int, AlignedText]) -> str:
        """Return the document with its segments replaced by translations (token ids with EOS)."""


class TextDocument:
    def __init__(self, text: str, translator: Translator) -> None:
        self.translator, self.segmented = translator, translator.segment(text)
        self.segments = self.segmented.segments
        self.to_align: list[int] = []

    def fill(self, translations: list[list[int]], aligned: Mapping[int, AlignedText]) -> str:
        return self.segmented.join([self.translator.text(ids) for ids in translations])


class HtmlDocument:
    def __init__(self, text: str, translator: Translator) -> None:
        self.translator = translator
        self.parts: list[str | tuple[Run, SegmentedText]] = []
        self.segments: list[Segment] = []
        self.to_align: list[int] = []
        for part in parse_html(text):
            self.parts.append(part if isinstance(part, str) else self._segmented(part))

    def _segmented(self, run: Run) -> tuple[Run, SegmentedText]:
        segmented, borders = self.translator.segment(run.text), run.borders()
        for segment in segmented.segments:
            if needs_alignment(borders, segment):
                self.to_align.append(len(self.segments))
            self.segments.append(segment)
        return run, segmented

    def fill(self, translations: list[list[int]], aligned: Mapping[int, AlignedText]) -> str:
        texts: list[str] = []
        number = 0
        for part in self.parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            run, segmented = part
            own = []
            for segment in segmented.segments:
                own.append(aligned.get(number) or whole(segment, self.translator.text(translations[number])))
                number += 1
            texts.append(restore(run, join_aligned(run, segmented, own)))
        return "".join(texts)
