"""Rule-based sentence splitting, and cutting of text that exceeds the maximum length.

A sentence ends with . ! ? or a similar mark before a space, unless a lowercase letter follows; closing quotes and
brackets belong to it. It ends with 。 or a similar mark even without a space, and with . ! ? between a word and a
capitalised one, where a space was forgotten. `abbreviations.py` decides which full stops do not end a sentence. In a
text without capitals, lowercase letters say nothing: it is split as if every word were capitalised.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from heedful.text.abbreviations import OPENERS, OPENING, is_abbreviation

ENDS = ".!?…؟۔।॥։"
ENDS_AT_ONCE = "。！？"
CLOSES = "\"'”’»)]」』）"
_CLOSES = rf"(?:[{re.escape(CLOSES)}*_]|\[\d{{1,3}}\])*+"  # also Markdown, and the number of a footnote: [1]
_SPACE = r"[\s\0\ufffd]"  # NUL and its replacement character separate words like a space
# Possessive, and never matched from the middle of a run: linear time for a million dots.
_END = re.compile(
    rf"(?<![{ENDS}])[{ENDS}]++{_CLOSES}(?P<space>{_SPACE}+)|[{ENDS_AT_ONCE}]++{_CLOSES}\s*"
    r"|(?<=[^\W\d_])(?P<joined>[.!?]++)(?=[^\W\d_])"
)
# A missing space between sentences, not a host, file or attribute: a plain word before, a capitalised one after.
_PLAIN_WORD = re.compile(rf"(?P<start>[\s!?]|^)[{re.escape(OPENING)}]*+(?P<word>[^\W\d_]+(?:['’-][^\W\d_]+)*)$")
_NEXT_WORD = re.compile(r"([^\W\d_]+)(?=(?P<space>\s)|[,;:!?…'’]|\.(?:\s|$)|$)")
_FILE_ENDINGS = re.compile(
    "com|org|net|edu|io|csv|docx?|exe|gif|gz|html?|ini|jpe?g|js|json|md|mp|odt|pdf|php|png|ppt|py|sh|sql|svg|"
    "tar|tex|toml|tsv?|txt|xlsx?|xml|ya?ml|zip",
    re.IGNORECASE,
)
_LONGEST_WORD = 40  # characters
_FIRST_LETTER = re.compile(r"(?<!\w)[^\W\d_]")
_WORD = re.compile(r"\s*\S+\s*")


def split_sentences(text: str, language: str = "") -> list[str]:
    """Return the sentences in order with trailing spaces; joined, they give the text.

    `language` is a code such as "de", if it is known: some abbreviations belong to one language.
    """
    cased = text if any(map(str.isupper, text)) else _with_capitals(text)
    starts = [0, *(match.end() for match in _END.finditer(text) if _is_end(text, cased, match, language)), len(text)]
    return [text[start:end] for start, end in pairwise(starts) if start < end]


def _with_capitals(text: str) -> str:
    """Return text of the same length in which every word begins with a capital."""
    return _FIRST_LETTER.sub(lambda match: match[0].upper() if len(match[0].upper()) == 1 else match[0], text)


def _is_end(text: str, cased: str, match: re.Match[str], language: str) -> bool:
    mark = match[0].removesuffix(match["space"] or "")
    if match["joined"] is not None:
        if not _lacks_a_space(text, match):
            return False
    elif match["space"] is None or match.end() == len(text):
        return True
    elif cased[match.end()].islower():
        return False
    return mark != "." or not any(is_abbreviation(one, *match.span(), language) for one in {text, cased})


def _lacks_a_space(text: str, match: re.Match[str]) -> bool:
    before = _PLAIN_WORD.search(text[max(0, match.start() - _LONGEST_WORD) : match.start()])
    after = _NEXT_WORD.match(text[match.end() : match.end() + _LONGEST_WORD])
    if before is None or after is None or len(before["word"]) < 2 or not before["word"][-1].islower():
        return False
    if after[1] in OPENERS or (len(after[1]) == 1 and after[1].isupper() and after["space"]):
        return True
    is_capitalised = after[1][0].isupper() and after[1][1:].islower()
    is_file = match[0] == "." and _FILE_ENDINGS.fullmatch(after[1])
    return is_capitalised and not is_file and bool(before["start"] and after["space"])


def split_text(text: str, fits: Callable[[str], bool], language: str = "") -> list[str]:
    """Return parts that each fit, cut between sentences, then between words, then anywhere.

    Joined, they give the text. Neighbouring parts stay together while they fit.
    """
    if fits(text.strip()):
        return [text]
    for parts in (split_sentences(text, language), _WORD.findall(text)):
        if len(parts) > 1:
            return [part for group in _grouped(parts, fits) for part in split_text(group, fits, language)]
    middle = len(text) // 2
    if middle == 0:
        return [text]
    return split_text(text[:middle], fits, language) + split_text(text[middle:], fits, language)


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
