"""The abstract syntax of a sentence, shared by both languages.

A sentence consists of clauses, a clause of a verb and its arguments. Word order and inflection belong to
german_realisation.py and english_realisation.py, which both realise the same tree.
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
    """A noun with its determiner, adjectives and optional relative clause."""

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
        """The key into the German paradigms: the gender, or "p" for the plural."""
        return "p" if self.plural else self.noun.gender


class Pronoun(NamedTuple):
    """A personal pronoun; `antecedent` is the noun phrase it refers to, if any."""

    agreement: Agreement
    gender: str  # natural gender, or the German gender of the antecedent; "" in the plural and for I, you, we
    antecedent: NounPhrase | None = None


class RelativePronoun(NamedTuple):
    """The pronoun that introduces a relative clause and fills its gap."""

    gender_number: str
    person: bool  # who(m), not that or which

    @property
    def agreement(self) -> Agreement:
        return "3p" if self.gender_number == "p" else "3s"


class InterrogativePronoun(NamedTuple):
    """The interrogative who (`person`) or what."""

    person: bool

    @property
    def agreement(self) -> Agreement:
        return "3s"


Nominal = NounPhrase | Pronoun | RelativePronoun | InterrogativePronoun


class PrepositionalPhrase(NamedTuple):
    """A preposition and the nominal it governs."""

    preposition: Preposition
    nominal: Nominal


class Predicate(NamedTuple):
    """A predicative adjective with an optional degree adverb."""

    adjective: Adjective
    degree: Adverb | None


class Clause(NamedTuple):
    """A verb with its arguments and adjuncts.

    `mood` is statement, polar, wh, dependent, infinitive or inverted (a main clause that follows its subordinate
    clause). `tense` is present, progressive, past, perfect or future; with a modal, present or past.
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
    """One or two clauses, in the order of the text.

    `form` is simple, subordinate, content, purpose, infinitive or coordinate. `conjunction` introduces the second
    clause, or the sentence if `conjunction_first`.
    """

    form: str
    first: Clause
    second: Clause | None = None
    conjunction: Conjunction | None = None
    conjunction_first: bool = False


_FRONTED_TYPES = (RelativePronoun, InterrogativePronoun)


def fronted_constituent(clause: Clause) -> Nominal | PrepositionalPhrase | None:
    """Return the interrogative, which-phrase or relative pronoun that opens the clause."""
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
