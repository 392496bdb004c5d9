"""File formats: split text, HTML and SubRip subtitles into translatable and other parts."""

from __future__ import annotations

import html
import re
import textwrap
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from heedful.serving.html_chunking import split_html
from heedful.serving.requests import RequestError
from heedful.text.sentence_splitting import split_sentences

EXTENSIONS = (".txt", ".html", ".srt")
_MOST_TAGS = 100_000  # in a file; each costs as much as a line of text
_LINE = re.compile(r"[^\r\n]+|[\r\n]+")
_WHOLE_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
_LINE_END = re.compile(r"\r\n?|\n")
_TIME = r"(?:\d+:)?\d{1,2}:\d\d(?:[,.]\d+)?"  # hours and milliseconds may be missing
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}")
_NUMBER = re.compile(r"\s*\d+\s*")
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
            parts[place] = _like(parts[place], html.unescape(text)) if self.is_srt else text
        return "".join(parts)


def read_document(text: str, extension: str, most: int) -> Document:
    """Split a file into parts.

    Plain-text lines over `most` characters are cut between sentences.
    """
    if extension == ".srt":
        return _srt(text)
    return _html(text) if extension == ".html" else _plain(text, most)


def _plain(text: str, most: int) -> Document:
    document = Document([], [])
    for match in _LINE.finditer(text):  # findall would hold the GIL for a whole megabyte
        line = match[0]
        for part in split_sentences(line) if len(line) > most else [line]:
            _add(document, part)
    return document


def _html(text: str) -> Document:
    if (tags := text.count("<")) > _MOST_TAGS:
        raise RequestError(
            f"Invalid request: the file has {tags:,} tags; the limit is {_MOST_TAGS:,}. Send it in parts."
        )
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
    """Split subtitles.

    Numbers, timings and blank lines are kept; each speaker's lines in a cue form one text.
    """
    document = Document([], [], is_html=True, is_srt=True)
    lines = [match[0] for match in _WHOLE_LINE.finditer(text)]  # findall would hold the GIL for a whole megabyte
    timings = [place for place, line in enumerate(lines) if _TIMING.match(line)]
    if not timings:
        raise RequestError(
            "Invalid request: the file has no subtitles. Each needs a timing such as 00:00:01,000 --> 00:00:02,000."
        )
    # A line of digits directly before a timing is its number. A cue runs until the next number, or timing without one.
    starts = [place - 1 if place and _NUMBER.fullmatch(lines[place - 1]) else place for place in timings]
    document.parts.extend(lines[: starts[0]])
    for start, timing, end in zip(starts, timings, [*starts[1:], len(lines)], strict=True):
        document.parts.extend(lines[start : timing + 1])
        for utterance in _utterances(lines[timing + 1 : end]):
            prefix = _SRT_PREFIX.match(utterance)
            length = prefix.end() if prefix else 0
            document.parts.append(utterance[:length])
            _add(document, utterance[length:])
    return document


def _utterances(lines: list[str]) -> list[str]:
    """Return the joined lines of each speaker and paragraph.

    Takes linear time, because a file may be long.
    """
    found: list[list[str]] = []
    for before, line in zip(["", *lines], lines, strict=False):
        is_new = _SPEAKER.match(line) or bool(before.strip()) != bool(line.strip())
        if found and not is_new:
            found[-1].append(line)
        else:
            found.append([line])
    return ["".join(utterance) for utterance in found]


def _srt_to_html(text: str) -> str:
    """Escape everything except subtitle tags."""
    parts = _SRT_TAG.split(text)  # tags are at odd indices
    return "".join(part if place % 2 else html.escape(part, quote=False) for place, part in enumerate(parts))


def _like(original: str, text: str) -> str:
    """Break a text into the lines of the original, with its line ends."""
    ends = _LINE_END.findall(original)
    return _wrapped(text, len(ends) + 1).replace("\n", ends[0] if ends else "\n")


def _wrapped(text: str, lines: int) -> str:
    """Wrap a text to at most `lines` lines of minimal width, found by bisection."""

    def wrap(width: int) -> list[str]:
        return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)

    widths = range(max(1, -(-len(text) // lines)), len(text) + 1)
    narrowest = bisect_left(widths, True, key=lambda width: len(wrap(width)) <= lines)
    return "\n".join(wrap(widths[narrowest] if narrowest < len(widths) else max(1, len(text))))
