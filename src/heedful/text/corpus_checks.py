"""Checks for likely mistakes in parallel text. Each returns a warning, or None.

They inspect a sample of the first lines, or the pairs on their way to the token store; memory does not grow
with the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from heedful.formatting import plural
from heedful.text.corpus import Pair
from heedful.text.language_detection import detect, profile

SAMPLE = 2_000  # pairs from the beginning of a text
_EVERY = 10  # language detection uses every tenth pair, so that one document does not decide

FEW_PAIRS = 1_000
_EQUAL = 0.5  # fraction of pairs with the same text on both sides
_DUPLICATES = 0.1  # fraction of pairs that repeat an earlier one
_OVERLAP = 0.01  # fraction of validation pairs that are also training pairs
_EMPTY = 0.1  # fraction of empty translations
_REVERSED = 0.8  # fraction of validation lines that look like the other side
_TOGETHER = 5  # lines classified together


def sample(pairs: Iterable[Pair]) -> list[Pair]:
    return list(islice(pairs, SAMPLE))


def thinned(pairs: Sequence[Pair]) -> list[Pair]:
    """Return every tenth pair of a full sample, or all pairs of a shorter one."""
    return list(pairs[:: _EVERY if len(pairs) == SAMPLE else 1])


def same_sides(pairs: Sequence[Pair], name: str) -> str | None:
    """Warn if both sides are the same file, or mostly the same text."""
    equal = sum(pair.source.strip() == pair.target.strip() for pair in pairs)
    if equal <= _EQUAL * len(pairs):
        return None
    return (
        f"In {_share(equal, len(pairs))} of the first {len(pairs):,} {name} pairs, both sides have the same text. "
        "The model would learn to copy. Check that source and target are different files."
    )


def reversed_validation(training: Sequence[Pair], validation: Sequence[Pair]) -> str | None:
    """Warn if validation source and target seem to be swapped."""
    profiles = {
        "source": profile(pair.source for pair in training),
        "target": profile(pair.target for pair in training),
    }
    sources, targets = [pair.source for pair in validation], [pair.target for pair in validation]
    looks_reversed = (
        _likeness(sources, profiles, "target") >= _REVERSED and _likeness(targets, profiles, "source") >= _REVERSED
    )
    if not looks_reversed:
        return None
    return (
        "Validation source and target seem to be swapped: the source looks like the training target. "
        "Swap data.valid_source and data.valid_target."
    )


def _likeness(lines: list[str], profiles: dict[str, str], side: str) -> float:
    """Return the fraction of line groups that clearly look like `side` of training text."""
    texts = [" ".join(lines[begin : begin + _TOGETHER]) for begin in range(0, len(lines), _TOGETHER)]
    best = [detect(text, profiles)[0] for text in texts]
    return sum(found == side and probability > _REVERSED for found, probability in best) / max(len(texts), 1)


class PairCounter:
    """Counts the pairs that pass through, duplicates, and pairs of the validation text.

    Duplicates are counted exactly up to `most` distinct pairs. Beyond that they are estimated from the pairs whose hash
    is divisible by a power of two, so that memory stays bounded.
    """

    def __init__(self, validation: Iterable[Pair], most: int = 200_000) -> None:
        self.pairs = 0
        self._validation = {hash(_stripped(pair)) for pair in validation}
        self._seen_validation: set[int] = set()
        self._most = most
        self._counts: dict[int, int] = {}  # hash of a pair → number of occurrences

    def through(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        validation, counts = self._validation, self._counts
        mask = 0
        for pair in pairs:
            number = hash(_stripped(pair))
            if number in validation:
                self._seen_validation.add(number)
            if not number & mask:
                counts[number] = counts.get(number, 0) + 1
                if len(counts) > self._most:
                    mask = 2 * mask + 1
                    for other in [other for other in counts if other & mask]:
                        del counts[other]
            self.pairs += 1
            yield pair

    @property
    def duplicates(self) -> float:
        """Return the fraction of pairs that repeat an earlier one."""
        total = sum(self._counts.values())
        return (total - len(self._counts)) / total if total else 0.0

    def warnings(self) -> Iterator[str]:
        if self.pairs < FEW_PAIRS:
            yield (
                f"The training text has only {plural(self.pairs, 'pair')}. A translation model needs several "
                "thousand at least. Add text, or fine-tune a model with `--init`."
            )
        if self.duplicates >= _DUPLICATES:
            yield (
                f"About {self.duplicates:.0%} of the training pairs are duplicates. "
                "Remove them, or the model will memorise these pairs."
            )
        known, total = len(self._seen_validation), len(self._validation)
        if known > _OVERLAP * total:
            yield (
                f"{known:,} of {plural(total, 'validation pair')} ({_share(known, total)}) "
                f"{'is' if known == 1 else 'are'} also in the training text. "
                "Validation scores will be too high. Remove these pairs from the training text."
            )


def empty_translations(empty: int, total: int) -> str | None:
    """Warn about many empty translations; `total` counts the non-empty source lines."""
    if not total or empty < _EMPTY * total:
        return None
    return (
        f"{empty:,} of {plural(total, 'translation')} {'is' if empty == 1 else 'are'} empty. "
        "The model may be undertrained: train it for more steps, or on more text."
    )


def _stripped(pair: Pair) -> tuple[str, str]:
    return pair[0].strip(), pair[1].strip()


def _share(part: int, total: int) -> str:
    return f"{part / total:.0%}" if part >= 0.01 * total else "less than 1%"
