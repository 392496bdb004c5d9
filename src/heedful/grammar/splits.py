"""The training, validation and test splits, and a split of unseen combinations.

A sentence belongs to "unseen" if it contains a held-out combination of a noun and a construction, such as dog with a
relative clause. A hash of the combination decides whether it is held out, independently of the seed. A hash of the
English sentence assigns all other sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from itertools import count as count_up

from heedful.grammar.sentence_pair import SentencePair, make_pair

SPLITS = ("train", "valid", "test", "unseen")

_UNSEEN_SHARE = 0.03  # of the combinations
_HELD_OUT_SHARE = 0.05  # of the remaining sentences, each for validation and test


def _fraction(text: str) -> float:
    """Return a uniform hash in [0, 1), identical in every process and on every platform."""
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "big") / (1 << 48)


@cache
def is_unseen(combination: str) -> bool:
    """Return whether a "noun+construction" occurs in the unseen split only."""
    return _fraction("combination " + combination) < _UNSEEN_SHARE


def assign_split(pair: SentencePair) -> str:
    """Return the split of a pair."""
    if any(is_unseen(combination) for combination in pair.combinations):
        return "unseen"
    fraction = _fraction("sentence " + pair.english)
    if fraction < _HELD_OUT_SHARE:
        return "test"
    return "valid" if fraction < 2 * _HELD_OUT_SHARE else "train"


def pairs(split: str, count: int, seed: int = 0) -> Iterator[SentencePair]:
    """Yield the first `count` distinct pairs of a split, in the order of their index."""
    if split not in SPLITS:
        raise ValueError(f"Unknown split {split!r}. Choose one of {', '.join(SPLITS)}.")
    seen: set[bytes] = set()
    for index in count_up():
        if len(seen) >= count:
            return
        pair = make_pair(seed, index)
        if assign_split(pair) != split:
            continue
        sentence_digest = blake2b(pair.english.encode(), digest_size=12).digest()  # takes less memory than the sentence
        if sentence_digest not in seen:
            seen.add(sentence_digest)
            yield pair
