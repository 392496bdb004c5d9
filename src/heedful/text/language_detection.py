"""Language detection by character n-grams, among the languages of the served models.

A profile lists the most frequent character n-grams (n = 1 to 3) of a language, most frequent first; spaces count, so
prefixes and suffixes are distinguished. It is stored in the model trained on the text, so any language works.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

SIZE = 400  # n-grams per profile
LINES = 1_000  # lines of text from which a profile is computed
_MOST = 2_000  # characters of a text that are used
_SEPARATOR = "\n"
_EACH = 1 / 3  # weight of an n-gram, because each character occurs in several
_NO_LETTERS = re.compile(r"[\W\d_]+")


def profile(lines: Iterable[str]) -> str:
    """Return the profile of lines in one language."""
    counts = Counter(run for line in lines for run in _runs(line))
    commonest = sorted(counts, key=lambda run: (-counts[run], run))[:SIZE]
    return _SEPARATOR.join(commonest)


def detect(text: str, profiles: Mapping[str, str]) -> list[tuple[str, float]]:
    """Return the languages with their probabilities, likeliest first; equal without evidence."""
    runs = Counter(_runs(text[:_MOST]))
    scores = {language: _score(runs, known) for language, known in profiles.items()}
    best = max(scores.values(), default=0.0)
    weights = {language: math.exp(score - best) for language, score in scores.items()}
    total = sum(weights.values())
    return sorted(((language, weight / total) for language, weight in weights.items()), key=lambda pair: -pair[1])


def _runs(line: str) -> Iterator[str]:
    """Yield the n-grams of a line's lowercased letters; everything else counts as a space."""
    text = f" {_NO_LETTERS.sub(' ', line.lower()).strip()} "
    if text.isspace():
        return
    for length in (1, 2, 3):
        yield from (text[start : start + length] for start in range(len(text) - length + 1))


def _score(runs: Counter[str], known: str) -> float:
    """Return the log-likelihood by Zipf's law; unknown n-grams have rank 2 · SIZE."""
    ranks = {run: rank for rank, run in enumerate(known.split(_SEPARATOR), start=1)}
    return -_EACH * sum(count * math.log(ranks.get(run, 2 * SIZE)) for run, count in runs.items())
