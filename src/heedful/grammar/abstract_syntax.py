"""The abstract structure of a sentence, from which both languages are built.

A sentence is made of clauses, a clause of a verb and its nominals. Nothing here knows word order or endings:
german.py and english.py each turn the same structure into words.
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.grammar.lexical_entries import (
    Adjective,
    Adverb,
    Agreement,
    Conjunction,
    Determiner,
    Modal,
    Noun,
    Preposition,
    Verb,
)


class NounPhrase(NamedTuple):
    """A noun with its determiner, adjectives and perhaps a relative clause."""

    noun: Noun
    plural: bool
    determiner: Determiner
    adjectives: tuple[Adjective, ...] = ()
    relative_clause: Clause | None = None

    @property
    def agreement(self) -> Agreement:
        return "3p" if self.plural else "3s"

    @property
    def gender_number(self) -> str:
        """The key of the German paradigms: gender, or "p" for the plural."""
        return "p" if self.plural else self.noun.gender


class Pronoun(NamedTuple):
    """A personal pronoun; `antecedent` is the noun phrase of the same sentence that it stands for, if any."""

    agreement: Agreement
    gender: str  # of the person, or the German gender of the antecedent; "" in the plural and for I, you, we
    antecedent: NounPhrase | None = None


class RelativePronoun(NamedTuple):
    """The pronoun that opens a relative clause and fills its gap."""

    gender_number: str
    person: bool  # who or that, whom or which

    @property
    def agreement(self) -> Agreement:
        return "3p" if self.gender_number == "p" else "3s"


class InterrogativePronoun(NamedTuple):
    """who (person) or what, in the place of a nominal."""

    person: bool

    @property
    def agreement(self) -> Agreement:
        return "3s"


Nominal = NounPhrase | Pronoun | RelativePronoun | InterrogativePronoun


class PrepositionalPhrase(NamedTuple):
    """A preposition with what it governs."""

    preposition: Preposition
    nominal: Nominal


class Predicate(NamedTuple):
    """A predicative adjective, perhaps with very or too."""

    adjective: Adjective
    degree: Adverb | None


class Clause(NamedTuple):
    """A verb with all that belongs to it.

    `mood` is statement, polar, wh, dependent, infinitive, or inverted (a main clause behind its subordinate
    clause); `tense` is present, progressive, past, perfect or future. A modal stands in the present or past.
    """

    mood: str
    subject: Nominal | None  # None in an infinitive clause
    verb: Verb
    tense: str = "present"
    modal: Modal | None = None
    negated: bool = False
    accusative: Nominal | None = None
    dative: Nominal | None = None
    prepositional_phrase: PrepositionalPhrase | None = None
    predicate: Predicate | None = None
    time: Adverb | PrepositionalPhrase | None = None
    time_first: bool = False
    adverb: Adverb | None = None  # before the English verb: always, already
    question_adverb: Adverb | None = None  # where, when, why


class Sentence(NamedTuple):
    """One or two clauses. `form` is simple, subordinate, content, purpose, trying or coordinate.

    The second clause of the text is `second`; `conjunction` joins it, or opens the sentence if
    `conjunction_first`.
    """

    form: str
    first: Clause
    second: Clause | None = None
    conjunction: Conjunction | None = None
    conjunction_first: bool = False


_FRONTED_TYPES = (RelativePronoun, InterrogativePronoun)


def fronted_constituent(clause: Clause) -> Nominal | PrepositionalPhrase | None:
    """The constituent that must open the clause: a question word, which + noun, or a relative pronoun."""
    for nominal in (clause.accusative, clause.dative):
        if nominal is None:
            continue
        if isinstance(nominal, _FRONTED_TYPES):
            return nominal
        if isinstance(nominal, NounPhrase) and nominal.determiner.english == "which":
            return nominal
    if clause.prepositional_phrase is not None and isinstance(clause.prepositional_phrase.nominal, _FRONTED_TYPES):
        return clause.prepositional_phrase
    return None
