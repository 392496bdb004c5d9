"""Where sentences end, and how a text that is too long for the model is cut into parts that are not.

A sentence ends with . ! ? and their like before a space, unless a small letter follows; with quotes and brackets closed
first; with 。 and its like at once. A single letter, a number of up to two digits and a short title (`Mr.`) end none:
two sentences left together do less harm than one cut in two.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

ENDS = ".!?…؟۔।॥։"
ENDS_AT_ONCE = "。！？"
CLOSES = "\"'”’»)]」』）"
_CLOSES = f"[{re.escape(CLOSES)}]*+"
# Each run of ends is looked at once (possessive, and never from its middle): dots take no longer than words.
_END = re.compile(rf"(?<![{ENDS}])[{ENDS}]++{_CLOSES}(?P<space>\s+)|[{ENDS_AT_ONCE}]++{_CLOSES}\s*")
_SHORT = re.compile(r"(?:^|\W)(\w{1,2})\.$")  # whatever stands before the full stop in J. or 3., Mr. or 13.
_WORD = re.compile(r"\S+\s*")


def split_sentences(text: str) -> list[str]:
    """Sentences in order, each with the space after it: joined they are the text."""
    starts = [0, *(match.end() for match in _END.finditer(text) if _is_end(text, match)), len(text)]
    return [text[start:end] for start, end in pairwise(starts) if start < end]


def _is_end(text: str, match: re.Match[str]) -> bool:
    if match["space"] is None or match.end() == len(text):
        return True
    short = match[0][1:2].isspace() and _SHORT.search(text[max(0, match.start() - 3) : match.start() + 1])
    is_title = short and not short[1][0].islower()  # not `so.`, which is a word
    return not text[match.end()].islower() and not is_title


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Parts in order, each of which fits; as few as this simple cutting gives."""
    if fits(text):
        return [text]
    for cut in (split_sentences, _WORD.findall):
        parts = [part.strip() for part in cut(text) if part.strip()]
        if len(parts) > 1:
            return [token for part in _joined(parts, fits) for token in split_text(part, fits)]
    middle = len(text) // 2
    if middle == 0:
        return [text]
    return split_text(text[:middle], fits) + split_text(text[middle:], fits)


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
