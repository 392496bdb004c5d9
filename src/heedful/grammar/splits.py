"""Training, validation and test sentences, and a split of combinations never met in the other three.

A sentence belongs to "unseen" if it holds one of certain combinations of a noun and a construction (dog with
relative, say). Which ones is decided by a hash of the combination, so it depends neither on the seed nor on what
has been generated. All other sentences are divided by a hash of their English words.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from itertools import count as count_up

from heedful.grammar.sentence_pair import SentencePair, make_pair

SPLITS = ("train", "valid", "test", "unseen")

_UNSEEN_SHARE = 0.03  # of the combinations
_HELD_OUT_SHARE = 0.05  # of the remaining sentences, for validation and as much again for test


def _fraction(text: str) -> float:
    """An even hash into [0, 1), the same in every process and on every platform."""
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "big") / (1 << 48)


@cache
def is_unseen(combination: str) -> bool:
    """Whether a "noun+construction" is kept out of training, validation and test."""
    return _fraction("combination " + combination) < _UNSEEN_SHARE


def assign_split(pair: SentencePair) -> str:
    """The one split to which a pair belongs."""
    if any(is_unseen(combination) for combination in pair.combinations):
        return "unseen"
    fraction = _fraction("sentence " + pair.english)
    if fraction < _HELD_OUT_SHARE:
        return "test"
    return "valid" if fraction < 2 * _HELD_OUT_SHARE else "train"


def pairs(split: str, count: int, seed: int = 0) -> Iterator[SentencePair]:
    """The first `count` different sentences of a split, in the order of their index under the seed."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
    seen: set[bytes] = set()
    for index in count_up():
        if len(seen) >= count:
            return
        pair = make_pair(seed, index)
        if assign_split(pair) != split:
            continue
        sentence_digest = blake2b(pair.english.encode(), digest_size=12).digest()  # less memory than the sentence
        if sentence_digest not in seen:
            seen.add(sentence_digest)
            yield pair
