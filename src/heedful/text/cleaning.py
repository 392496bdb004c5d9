"""Cleaning rules for parallel text: find pairs that are probably not translations.

The rules are mild: where a rule is not sure, it keeps the pair. They look at one pair, except for duplicates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice

from heedful.text.corpus import Pair
from heedful.text.held_out import normalized
from heedful.text.languages import disagrees, sure_language

# Rule → which pairs it drops. Order matters: a pair counts for the first rule that drops it. `empty`, `too_long` and
# `uneven` are in data/store.py, and the last two count tokens.
RULES = {
    "empty": "a side has no text",
    "copied": "both sides are the same text of at least three words",
    "urls": "the sides differ in their number of URLs and e-mail addresses",
    "numbers": "both sides have numbers of two or more digits, but none in common",
    "overlap": "a side occurs in the validation text or in an excluded file",
    "duplicate": "an earlier pair has the same text",
    "near_duplicate": "an earlier pair differs only in case, punctuation and spaces",
    "language": "a side of at least five words is clearly in another language",
    "too_long": "a side has more than data.max_length tokens",
    "uneven": "a side has more than data.max_ratio times as many tokens as the other",
}
REQUIRED = ("empty", "too_long", "uneven")  # training needs these rules, so they cannot be skipped

_COPIED_WORDS, _LANGUAGE_WORDS = 3, 5
_URL = re.compile(r"(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+\.[\w.-]+")
_NUMBER = re.compile(r"\d+(?:[.,'’\u00a0\u202f ]\d{3}(?!\d))*")
_NOT_DIGITS, _NOT_LETTERS, _NOT_WORDS = re.compile(r"\D"), re.compile(r"[\W\d_]+"), re.compile(r"[\W_]+")

_SAMPLE, _COMMON = 20_000, 300  # lines from the beginning of the text, and most frequent words of each side
_SHARE_OF_COMMON_WORDS = 0.2

NumberedPair = tuple[int, Pair]
Dropped = Callable[[str, int, Pair], None]  # the rule, the line number, and the pair


def digest(*texts: str) -> int:
    """Return 64 bits that depend on the texts alone, the same in every process."""
    return int.from_bytes(blake2b("\n".join(texts).encode(), digest_size=8).digest())


def letters(text: str) -> str:
    """Return a text's letters in lower case, with one space for everything between words."""
    return _NOT_LETTERS.sub(" ", text.casefold()).strip()


def near_digest(pair: Pair) -> int:
    """Return the same number for pairs that differ only in case, punctuation and spaces."""
    sides = [_NOT_WORDS.sub(" ", side.casefold()).strip() for side in pair]
    return digest(*(sides if all(sides) else (side.strip() for side in pair)))


@dataclass(frozen=True)
class CommonWords:
    """Words frequent on one side and not on the other, to recognise most lines quickly."""

    source: frozenset[str] = frozenset()
    target: frozenset[str] = frozenset()

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> CommonWords:
        counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for pair in islice(pairs, _SAMPLE):
            for count, side in zip(counts, pair, strict=True):
                count.update(letters(side).split())
        source, target = (
            {word for word, _ in sorted(count.items(), key=lambda item: (-item[1], item[0]))[:_COMMON]}
            for count in counts
        )
        return cls(frozenset(source - target), frozenset(target - source))


@dataclass(frozen=True)
class Cleaning:
    """What the rules need to know about a corpus."""

    skipped: frozenset[str] = frozenset()  # rules
    languages: tuple[str, str] = ("", "")  # of source and target; empty: unknown, and the rule is not applied
    common: CommonWords = field(default_factory=CommonWords)
    excluded: frozenset[int] = frozenset()  # digests of normalized sides

    def broken_rule(self, pair: Pair) -> str:
        """Return the first rule that drops this pair for its own text, or an empty string."""
        return next((rule for rule, drops in self._simple() if drops(pair)), "")

    def _simple(self) -> Iterator[tuple[str, Callable[[Pair], bool]]]:
        rules = {"empty": is_empty, "copied": is_copied, "urls": differ_in_urls, "numbers": differ_in_numbers}
        yield from ((rule, drops) for rule, drops in rules.items() if rule not in self.skipped)
        if self.excluded and "overlap" not in self.skipped:
            yield "overlap", self._overlaps

    def _overlaps(self, pair: Pair) -> bool:
        return any(digest(normalized(side)) in self.excluded for side in pair)

    def is_other_language(self, pair: Pair) -> bool:
        """Return whether a side is clearly not in its language."""
        if "language" in self.skipped:
            return False
        sides = zip(pair, self.languages, (self.common.source, self.common.target), strict=True)
        return any(bool(code) and _is_other_language(text, code, common) for text, code, common in sides)

    def through(self, numbered: Iterable[NumberedPair], dropped: Dropped) -> Iterator[NumberedPair]:
        """Yield the clean pairs; all near-duplicates must be in `numbered`, as in one shard."""
        repeats = _Repeats(self.skipped)
        for line, pair in numbered:
            rule = self.broken_rule(pair) or repeats.rule(pair)
            if not rule and self.is_other_language(pair):
                rule = "language"
            if rule:
                dropped(rule, line, pair)
            else:
                yield line, pair


class _Repeats:
    """Remembers digests of the pairs so far."""

    def __init__(self, skipped: Collection[str]) -> None:
        self._skipped = skipped
        self._exact: set[int] = set()
        self._near: set[int] = set()

    def rule(self, pair: Pair) -> str:
        """Return "duplicate" or "near_duplicate" if an earlier pair was the same, otherwise ""."""
        exact, near = digest(pair.source.strip(), pair.target.strip()), near_digest(pair)
        found = "duplicate" if exact in self._exact else "near_duplicate" if near in self._near else ""
        self._exact.add(exact)
        self._near.add(near)
        return "" if found in self._skipped else found


def is_empty(pair: Pair) -> bool:
    return not (pair.source.strip() and pair.target.strip())


def is_copied(pair: Pair) -> bool:
    source, target = map(letters, pair)
    return source == target and len(source.split()) >= _COPIED_WORDS


def differ_in_urls(pair: Pair) -> bool:
    source, target = (len(_URL.findall(side)) for side in pair)
    return source != target


def differ_in_numbers(pair: Pair) -> bool:
    source, target = map(_numbers, pair)
    return bool(source and target) and not source & target


def _numbers(text: str) -> set[str]:
    """Return the numbers of two or more digits, without separators of thousands."""
    found = (_NOT_DIGITS.sub("", number) for number in _NUMBER.findall(text))
    return {number for number in found if len(number) > 1}


def _is_other_language(text: str, code: str, common: Collection[str]) -> bool:
    words = letters(text).split()
    if len(words) < _LANGUAGE_WORDS:
        return False
    if sum(word in common for word in words) >= max(2, _SHARE_OF_COMMON_WORDS * len(words)):
        return False
    return disagrees(code, sure_language(text))
