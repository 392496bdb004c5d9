"""A sentence in both languages, as a pure function of seed and index."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.grammar import english
from heedful.grammar.choices import Draw
from heedful.grammar.german import German
from heedful.grammar.sentences import sentence
from heedful.grammar.structure import Sentence

MOST_WORDS = 25


@dataclass(frozen=True, slots=True)
class Pair:
    """An English sentence, its one German translation, and what the German shows."""

    english: str
    german: str
    phenomena: tuple[str, ...]  # sorted names out of PHENOMENA
    agreement_distance: int  # the most German words between two words that must agree
    combinations: tuple[str, ...]  # sorted "noun+construction"; the unseen split is defined by them


def realise(structure: Sentence) -> Pair:
    """Both languages of one abstract structure."""
    german = German()
    text = german.sentence(structure)
    return Pair(
        english=english.sentence(structure),
        german=text,
        phenomena=tuple(sorted(german.phenomena)),
        agreement_distance=german.distance,
        combinations=tuple(sorted(german.combinations)),
    )


def too_long(pair: Pair) -> bool:
    """Whether the pair is longer than the grammar gives out; one in a thousand is drawn again for that."""
    return max(pair.english.count(" "), pair.german.count(" ")) >= MOST_WORDS


def make_pair(seed: int, index: int) -> Pair:
    """The pair with this number in the endless list that belongs to the seed."""
    draw = Draw(seed, index)
    while True:
        pair = realise(sentence(draw))
        if not too_long(pair):
            return pair
