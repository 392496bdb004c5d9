"""The kinds of word that the lexicon holds.

Every kind carries `mentions`: the English words of which at least one must stand in a sentence that uses it.
Generation does not need it; finding the derivation of a given sentence (derive.py) does, to leave out at once
the thousands of words that cannot take part.

All kinds compare by identity: each word exists once, in its table, so that comparing and hashing cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Gender = str  # "m", "f", "n"
Case = str  # "nom", "acc", "dat"
Agreement = str  # person and number of a subject: "1s", "2s", "3s", "1p", "3p"


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun in both languages; `kind` says which adjectives fit, `tags` which verbs and prepositions."""

    english: str
    english_plural: str
    german: str
    gender: Gender
    german_plural: str
    kind: str
    tags: frozenset[str]
    weak_form: str  # the form of all other singular cases of a weak masculine (den Jungen), else ""
    cue_words: frozenset[str]

    @property
    def mass(self) -> bool:
        """Mass nouns stand without an article and have no plural here (cold milk, kalte Milch)."""
        return "mass" in self.tags


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective; `stem` takes the endings and may differ from the predicative form (teuer, teur-)."""

    english: str
    german: str
    stem: str
    kinds: frozenset[str]
    cue_words: frozenset[str]


@dataclass(frozen=True, eq=False, slots=True)
class Preposition:
    """A preposition in one fixed reading, hence with one case (into the house: in + accusative)."""

    english: str
    german: str
    case: Case
    cue_words: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cue_words", frozenset(self.english.split()[:1]))


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """A verb in both languages with what it asks of its subject and objects.

    `frame` is one of: intransitive, accusative, dative, ditransitive, prepositional, motion, position, placing,
    be, have, that, whether, to. `subject` and `object` are noun tags.
    """

    english: str
    third_person: str
    past: str
    participle: str
    ing_form: str
    particle: str  # moves behind a pronoun object: turns on the lamp, turns it on
    english_preposition: str  # never moves: waits for it
    german: str  # the infinitive without its separable prefix
    prefix: str
    du_form: str
    er_form: str
    german_participle: str
    auxiliary: str  # haben or sein
    frame: str
    subject: str
    object: str
    preposition: Preposition | None
    features: frozenset[str]
    cue_words: frozenset[str]

    @property
    def stative(self) -> bool:
        """Stative verbs have no progressive in English."""
        return "stative" in self.features


@dataclass(frozen=True, eq=False, slots=True)
class Modal:
    """A modal verb; in English it may be an auxiliary (can), a verb with to (want to) or be allowed to."""

    english: dict[str, str]  # tense -> auxiliary; empty for the other two kinds
    english_verb: tuple[str, str, str] | None  # base, third person, past: want, wants, wanted
    german_present: tuple[str, str, str]  # ich/er, du, wir
    german_past: str  # the stem of the preterite: konnte
    cue_words: frozenset[str]


@dataclass(frozen=True, eq=False, slots=True)
class Determiner:
    """A determiner: what stands before the adjectives, and which set of adjective endings it calls for."""

    english: str
    german: str  # the stem that takes the article's endings; or the whole word when `bare`
    declension: str  # weak, mixed or strong endings of the adjective
    definite: bool
    indeclinable: bool = False  # no endings: numerals, dessen, and no article at all
    cue_words: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class Adverb:
    """An adverbial of fixed words. `place` says where it stands in the German middle field: early or late."""

    english: str
    german: str
    position: str
    cue_words: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cue_words", frozenset(self.english.lower().split()[-1:]))


@dataclass(frozen=True, eq=False, slots=True)
class Conjunction:
    """A subordinating conjunction."""

    english: str
    german: str
    cue_words: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cue_words", frozenset(self.english.split()[:1]))


@dataclass(frozen=True, eq=False, slots=True)
class Marker:
    """The English words by which a tense or a negation shows; they have no word of their own in German."""

    cue_words: frozenset[str]
