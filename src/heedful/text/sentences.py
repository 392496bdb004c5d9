"""Cuts a text that is too long for the model into parts that are not: at sentences, else at words, else anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"'”’»)\]]*\s+|(?<=[。！？])")
_SPACE = re.compile(r"\s+")


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Parts in order, each of which fits; as few as this simple cutting gives."""
    if fits(text):
        return [text]
    for border in (_SENTENCE_END, _SPACE):
        parts = _cut_after(text, border)
        if len(parts) > 1:
            return [piece for part in _joined(parts, fits) for piece in split_text(part, fits)]
    middle = len(text) // 2
    if middle == 0:
        return [text]
    return split_text(text[:middle], fits) + split_text(text[middle:], fits)


def _cut_after(text: str, border: re.Pattern[str]) -> list[str]:
    ends = [match.end() for match in border.finditer(text) if match.end() < len(text)]
    starts = [0, *ends]
    parts = [text[start:end].strip() for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [part for part in parts if part]


def _joined(parts: list[str], fits: Callable[[str], bool]) -> list[str]:
    """Neighbours put together again while they fit."""
    joined = [parts[0]]
    for part in parts[1:]:
        together = f"{joined[-1]} {part}"
        if fits(together):
            joined[-1] = together
        else:
            joined.append(part)
    return joined
