"""Sentence pairs as a pure function of seed and index."""

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
    """An English sentence, its German translation and the phenomena of the German side."""

    english: str
    german: str
    phenomena: tuple[str, ...]  # sorted names from PHENOMENA
    agreement_distance: int  # most words between two German words that agree
    combinations: tuple[str, ...]  # sorted "noun+construction"; they define the unseen split


def realise(structure: Sentence) -> SentencePair:
    """Return the realisation of one abstract syntax tree in both languages."""
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
    """Return whether a sentence exceeds MAX_WORDS, as about one in a thousand does."""
    return max(pair.english.count(" "), pair.german.count(" ")) >= MAX_WORDS


def make_pair(seed: int, index: int) -> SentencePair:
    """Return pair number `index` of the infinite sequence of a seed."""
    chooser = HashChooser(seed, index)
    while True:
        pair = realise(generate_sentence(chooser))
        if not is_too_long(pair):
            return pair
