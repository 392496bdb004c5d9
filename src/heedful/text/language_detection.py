"""Which language a text is in, of those that are known: by its short runs of characters.

A profile is the commonest runs of one to three characters of a language's text, in the order of how common they are;
spaces count, so that beginnings and ends of words do. The model that was trained on the text carries it: any language
can be told from another, also one that no list of languages has.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

SIZE = 400  # runs of a profile
LINES = 1_000  # of text are enough to know them
_MOST = 2_000  # characters of a text that are looked at
_SEPARATOR = "\n"
_EACH = 1 / 3  # what a run counts: every character is in several
_NO_LETTERS = re.compile(r"[\W\d_]+")


def profile(lines: Iterable[str]) -> str:
    """Of lines of one language."""
    counts = Counter(run for line in lines for run in _runs(line))
    commonest = sorted(counts, key=lambda run: (-counts[run], run))[:SIZE]
    return _SEPARATOR.join(commonest)


def detect(text: str, profiles: Mapping[str, str]) -> list[tuple[str, float]]:
    """Every language with its probability, the likeliest first; equal shares where the text tells nothing."""
    runs = Counter(_runs(text[:_MOST]))
    scores = {language: _score(runs, known) for language, known in profiles.items()}
    best = max(scores.values(), default=0.0)
    weights = {language: math.exp(score - best) for language, score in scores.items()}
    total = sum(weights.values())
    return sorted(((language, weight / total) for language, weight in weights.items()), key=lambda pair: -pair[1])


def _runs(line: str) -> Iterator[str]:
    """Letters alone, small ones; whatever else stands between words is a space."""
    text = f" {_NO_LETTERS.sub(' ', line.lower()).strip()} "
    if text.isspace():
        return
    for length in (1, 2, 3):
        yield from (text[start : start + length] for start in range(len(text) - length + 1))


def _score(runs: Counter[str], known: str) -> float:
    """Log-likelihood, by Zipf's law: the n-th of a profile is as likely as 1/n, whatever is not in it as its last."""
    ranks = {run: rank for rank, run in enumerate(known.split(_SEPARATOR), start=1)}
    return -_EACH * sum(count * math.log(ranks.get(run, 2 * SIZE)) for run, count in runs.items())
