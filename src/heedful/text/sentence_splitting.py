"""Rule-based sentence splitting, and cutting text that exceeds the model's maximum length.

A sentence ends with . ! ? or a similar mark before a space, unless a lowercase letter follows; closing quotes and
brackets belong to it. It ends with 。 or a similar mark even without a space. A full stop after a single letter, a
number of up to two digits or a short title (`Mr.`) does not end a sentence: a missed split does less harm than a
wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

ENDS = ".!?…؟۔।॥։"
ENDS_AT_ONCE = "。！？"
CLOSES = "\"'”’»)]」』）"
_CLOSES = f"[{re.escape(CLOSES)}]*+"
_SPACE = r"[\s\0\ufffd]"  # NUL, and what takes its place, stand between words like a space
# Possessive, and never matched from the middle of a run: linear time for a million dots.
_END = re.compile(rf"(?<![{ENDS}])[{ENDS}]++{_CLOSES}(?P<space>{_SPACE}+)|[{ENDS_AT_ONCE}]++{_CLOSES}\s*")
_SHORT = re.compile(r"(?:^|\W)(\w{1,2})\.$")  # before the full stop in J. or 3., Mr. or 13.
_WORD = re.compile(r"\s*\S+\s*")


def split_sentences(text: str) -> list[str]:
    """Return the sentences in order, each with its trailing space; joined, they give the text."""
    starts = [0, *(match.end() for match in _END.finditer(text) if _is_end(text, match)), len(text)]
    return [text[start:end] for start, end in pairwise(starts) if start < end]


def _is_end(text: str, match: re.Match[str]) -> bool:
    if match["space"] is None or match.end() == len(text):
        return True
    short = match[0][1:2].isspace() and _SHORT.search(text[max(0, match.start() - 3) : match.start() + 1])
    is_title = short and not short[1][0].islower()  # `so.` is a word, not a title
    return not text[match.end()].islower() and not is_title


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Return parts that each fit, cut between sentences, then between words, then anywhere.

    Joined, they give the text. Neighbouring parts stay together while they fit.
    """
    if fits(text.strip()):
        return [text]
    for cut in (split_sentences, _WORD.findall):
        parts = cut(text)
        if len(parts) > 1:
            return [part for group in _grouped(parts, fits) for part in split_text(group, fits)]
    middle = len(text) // 2
    if middle == 0:
        return [text]
    return split_text(text[:middle], fits) + split_text(text[middle:], fits)


def _grouped(parts: list[str], fits: Callable[[str], bool]) -> list[str]:
    """Join neighbours while they fit."""
    groups = [parts[0]]
    for part in parts[1:]:
        together = groups[-1] + part
        if fits(together.strip()):
            groups[-1] = together
        else:
            groups.append(part)
    return groups
