"""File formats: split plain text, HTML and SubRip subtitles into translatable and other parts."""

from __future__ import annotations

import html
import re
import textwrap
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from heedful.serving.html_splitter import split_html
from heedful.text.sentence_splitting import split_sentences

EXTENSIONS = (".txt", ".html", ".srt")
_LINE = re.compile(r"[^\r\n]+|[\r\n]+")
_TIMING = re.compile(r"\s*\d+:\d\d:\d\d[,.]\d+\s*-->\s*\d+:\d\d:\d\d[,.]\d+")
_SRT_TAG = re.compile(r"(</?(?:[ibu]|font)(?:\s[^<>]*)?>)", re.IGNORECASE)
_SRT_PREFIX = re.compile(r"(?:\{\\[^{}]*\})*(?:[-–—]\s*)?")  # a position such as {\an8}; a speaker's dash
_SPEAKER = re.compile(r"\s*[-–—]\s*\S")


class Document(NamedTuple):
    """A file in parts; joined, they give the original file."""

    parts: list[str]
    translated: list[int]  # indices of the parts to translate
    is_html: bool = False
    is_srt: bool = False

    def texts(self) -> list[str]:
        """Return the texts to translate."""
        found = [self.parts[place] for place in self.translated]
        return [_srt_to_html(" ".join(text.split())) for text in found] if self.is_srt else found

    def filled(self, translations: Sequence[str]) -> str:
        """Return the file with the translations in place of the texts."""
        parts = list(self.parts)
        for place, text in zip(self.translated, translations, strict=True):
            parts[place] = _wrapped(html.unescape(text), len(parts[place].splitlines())) if self.is_srt else text
        return "".join(parts)


def read_document(text: str, extension: str, most: int) -> Document:
    """Split a file into parts. Plain-text lines over `most` characters are cut between sentences."""
    if extension == ".srt":
        return _srt(text)
    return _html(text) if extension == ".html" else _plain(text, most)


def _plain(text: str, most: int) -> Document:
    document = Document([], [])
    for line in _LINE.findall(text):
        for part in split_sentences(line) if len(line) > most else [line]:
            _add(document, part)
    return document


def _html(text: str) -> Document:
    document = Document([], [], is_html=True)
    for run, is_text in split_html(text):
        if is_text:
            _add(document, run)
        else:
            document.parts.append(run)
    return document


def _add(document: Document, part: str) -> None:
    """Add a text; leading and trailing space is not translated."""
    body = part.strip()
    before, _, after = part.partition(body) if body else (part, "", "")
    document.parts.append(before)
    if body:
        document.translated.append(len(document.parts))
        document.parts.append(body)
    document.parts.append(after)


def _srt(text: str) -> Document:
    """Split subtitles. Numbers, timings and blank lines are kept; each speaker's lines in a cue form one text."""
    document = Document([], [], is_html=True, is_srt=True)
    for lines in _srt_blocks(text.splitlines(keepends=True)):
        if not _TIMING.match(lines[0]):
            document.parts.extend(lines)
            continue
        document.parts.append(lines[0])
        for utterance in _utterances(lines[1:]):
            prefix = _SRT_PREFIX.match(utterance)
            start = prefix.end() if prefix else 0
            document.parts.append(utterance[:start])
            _add(document, utterance[start:])
    return document


def _srt_blocks(lines: list[str]) -> Iterator[list[str]]:
    """Yield each timing with the text below it, and every other line by itself."""
    place = 0
    while place < len(lines):
        end = place + 1
        if _TIMING.match(lines[place]):
            while end < len(lines) and lines[end].strip() and not _TIMING.match(lines[end]):
                end += 1
        yield lines[place:end]
        place = end


def _utterances(lines: list[str]) -> list[str]:
    """Return the joined lines of each speaker, in linear time."""
    found: list[list[str]] = []
    for line in lines:
        if found and not _SPEAKER.match(line):
            found[-1].append(line)
        else:
            found.append([line])
    return ["".join(utterance) for utterance in found]


def _srt_to_html(text: str) -> str:
    """Escape everything except subtitle tags."""
    parts = _SRT_TAG.split(text)  # tags are at odd indices
    return "".join(part if place % 2 else html.escape(part, quote=False) for place, part in enumerate(parts))


def _wrapped(text: str, lines: int) -> str:
    """Wrap a text to at most `lines` lines of minimal width, found by bisection."""

    def wrap(width: int) -> list[str]:
        return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)

    widths = range(max(1, -(-len(text) // lines)), len(text) + 1)
    narrowest = bisect_left(widths, True, key=lambda width: len(wrap(width)) <= lines)
    return "\n".join(wrap(widths[narrowest] if narrowest < len(widths) else max(1, len(text))))
