"""A sentence in both languages, as a pure function of seed and index."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.grammar import english_realisation
from heedful.grammar.abstract_syntax import Sentence
from heedful.grammar.chooser import HashChooser
from heedful.grammar.german_realisation import GermanRealiser
from heedful.grammar.sentences import generate_sentence

MAX_WORDS = 25


@dataclass(frozen=True, slots=True)
class SentencePair:
    """An English sentence, its one German translation, and what the German shows."""

    english: str
    german: str
    phenomena: tuple[str, ...]  # sorted names out of PHENOMENA
    agreement_distance: int  # the most German words between two words that must agree
    combinations: tuple[str, ...]  # sorted "noun+construction"; the unseen split is defined by them


def realise(structure: Sentence) -> SentencePair:
    """Both languages of one abstract structure."""
    realiser = GermanRealiser()
    text = realiser.realise_sentence(structure)
    return SentencePair(
        english=english_realisation.realise_sentence(structure),
        german=text,
        phenomena=tuple(sorted(realiser.phenomena)),
        agreement_distance=realiser.agreement_distance,
        combinations=tuple(sorted(realiser.combinations)),
    )


def is_too_long(pair: SentencePair) -> bool:
    """Whether the pair is longer than the grammar gives out; one in a thousand is drawn again for that."""
    return max(pair.english.count(" "), pair.german.count(" ")) >= MAX_WORDS


def make_pair(seed: int, index: int) -> SentencePair:
    """The pair with this number in the endless list that belongs to the seed."""
    chooser = HashChooser(seed, index)
    while True:
        pair = realise(generate_sentence(chooser))
        if not is_too_long(pair):
            return pair
