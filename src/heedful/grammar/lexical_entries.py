"""The lexical entries: one class per part of speech, with the forms of both languages.

Every entry has `cue_words`: a sentence that uses the entry contains at least one of them. Only the search in
recognizer.py needs them, to skip entries that cannot occur in the sentence.

Entries compare by identity, because each exists once in its table; comparison and hashing are then fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Gender = str  # "m", "f", "n"
Case = str  # "nom", "acc", "dat"
Agreement = str  # person and number: "1s", "2s", "3s", "1p", "3p"


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun; `kind` selects its adjectives, `tags` its verbs and prepositions."""

    english: str
    english_plural: str
    german: str
    gender: Gender
    german_plural: str
    kind: str
    tags: frozenset[str]
    weak_form: str  # oblique singular of a weak masculine (den Jungen), or ""
    cue_words: frozenset[str]

    @property
    def mass(self) -> bool:
        """Whether the noun occurs without an article and has no plural (cold milk)."""
        return "mass" in self.tags


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective; the inflected `stem` can differ from the predicative form (teuer, teur-)."""

    english: str
    german: str
    stem: str
    kinds: frozenset[str]
    cue_words: frozenset[str]


@dataclass(frozen=True, eq=False, slots=True)
class Preposition:
    """A preposition in one reading, with one case (into the house: in + accusative)."""

    english: str
    german: str
    case: Case
    cue_words: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cue_words", frozenset(self.english.split()[:1]))


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """A verb with its subcategorization frame and selectional restrictions.

    `frame` is intransitive, accusative, dative, ditransitive, prepositional, motion, position, placement, be, have,
    that, whether or infinitive. `subject` and `object` are the noun tags that the verb selects.
    """

    english: str
    third_person: str
    past: str
    participle: str
    ing_form: str
    particle: str  # follows a pronoun object: turns on the lamp, turns it on
    english_preposition: str  # always follows the verb: waits for it
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
        """Whether the verb has no progressive in English."""
        return "stative" in self.features


@dataclass(frozen=True, eq=False, slots=True)
class Modal:
    """A modal: in English an auxiliary (can), a verb with to (want to) or be allowed to."""

    english: dict[str, str]  # tense -> auxiliary; empty if the modal is not an auxiliary
    english_verb: tuple[str, str, str] | None  # base, third person, past: want, wants, wanted
    german_present: tuple[str, str, str]  # ich/er, du, wir
    german_past: str  # preterite stem: konnte
    cue_words: frozenset[str]


@dataclass(frozen=True, eq=False, slots=True)
class Determiner:
    """A determiner and the adjective declension that it selects."""

    english: str
    german: str  # the stem before the endings, or the whole word if `indeclinable`
    declension: str  # of the adjectives: weak, mixed or strong
    definite: bool
    indeclinable: bool = False  # numerals, dessen, deren and the zero article
    cue_words: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class Adverb:
    """A fixed adverbial; `position` in the German middle field is early or late."""

    english: str
    german: str
    position: str
    cue_words: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cue_words", frozenset(self.english.lower().split()[-1:]))


@dataclass(frozen=True, eq=False, slots=True)
class Conjunction:
    """A coordinating or subordinating conjunction."""

    english: str
    german: str
    cue_words: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cue_words", frozenset(self.english.split()[:1]))


@dataclass(frozen=True, eq=False, slots=True)
class Marker:
    """English words that mark a tense or negation, without a German entry."""

    cue_words: frozenset[str]
