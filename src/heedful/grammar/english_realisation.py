"""Surface realisation in English: from abstract syntax to words."""

from __future__ import annotations

from heedful.grammar.abstract_syntax import (
    Clause,
    InterrogativePronoun,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    Sentence,
    fronted_constituent,
)
from heedful.grammar.english_morphology import (
    OBJECT_PRONOUNS,
    SUBJECT_PRONOUNS,
    indefinite_article,
    verb_group,
)
from heedful.grammar.lexical_entries import Adverb


def realise_noun_phrase(phrase: NounPhrase) -> str:
    """Return a noun phrase with its relative clause."""
    noun = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    words = [adjective.english for adjective in phrase.adjectives]
    words.append(noun)
    determiner = phrase.determiner.english
    if determiner:
        words.insert(0, indefinite_article(words[0]) if determiner == "a" else determiner)
    if phrase.relative_clause is not None:
        words.append(realise_clause(phrase.relative_clause))
    return " ".join(words)


def realise_nominal(item: Nominal, subject: bool = False, after_preposition: bool = False) -> str:
    """Return any nominal; pronouns differ between subject and object."""
    if isinstance(item, NounPhrase):
        return realise_noun_phrase(item)
    if isinstance(item, Pronoun):
        thing = item.agreement == "3s" and item.antecedent is not None and item.antecedent.noun.kind != "person"
        key = (item.agreement, "n" if thing else item.gender)
        return (SUBJECT_PRONOUNS if subject else OBJECT_PRONOUNS)[key]
    if isinstance(item, InterrogativePronoun):
        return "who" if item.person else "what"
    if item.person:
        return "who" if subject else "whom"
    return "which" if after_preposition else "that"


def realise_prepositional_phrase(phrase: PrepositionalPhrase) -> str:
    return f"{phrase.preposition.english} {realise_nominal(phrase.nominal, after_preposition=True)}"


def _realise_time(time: Adverb | PrepositionalPhrase) -> str:
    return time.english if isinstance(time, Adverb) else realise_prepositional_phrase(time)


def _realise_fronted(clause: Clause, item: Nominal | PrepositionalPhrase) -> tuple[str, str]:
    """Return the words that open the clause, and the preposition that a question strands."""
    preposition = clause.verb.english_preposition
    if isinstance(item, PrepositionalPhrase):
        preposition, item = item.preposition.english, item.nominal
    if clause.mood == "wh":
        return realise_nominal(item, subject=True), preposition
    word = realise_nominal(item, after_preposition=bool(preposition))
    return (f"{preposition} {word}" if preposition else word), ""


def _realise_complements(clause: Clause, front: Nominal | PrepositionalPhrase | None, stranded: str) -> list[str]:
    """Return the words after the verb: particle, objects, prepositional phrase, predicate."""
    verb = clause.verb
    accusative = None if clause.accusative is front else clause.accusative
    dative = None if clause.dative is front else clause.dative
    words: list[str] = []
    if verb.particle and not isinstance(accusative, Pronoun):
        words.append(verb.particle)
    if verb.english_preposition and (accusative is not None or dative is not None):
        words.append(verb.english_preposition)
    if isinstance(accusative, Pronoun) and dative is not None:
        words += [realise_nominal(accusative), "to", realise_nominal(dative)]
    else:
        words += [realise_nominal(item) for item in (dative, accusative) if item is not None]
    if verb.particle and isinstance(accusative, Pronoun):
        words.append(verb.particle)
    if stranded:
        words.append(stranded)
    if clause.prepositional_phrase is not None and clause.prepositional_phrase is not front:
        words.append(realise_prepositional_phrase(clause.prepositional_phrase))
    if clause.predicate is not None:
        degree = clause.predicate.degree
        words += [degree.english] if degree is not None else []
        words.append(clause.predicate.adjective.english)
    return words


def _negated(auxiliary: str) -> str:
    return "cannot" if auxiliary == "can" else f"{auxiliary} not"


def _has_inversion(clause: Clause, front: Nominal | PrepositionalPhrase | None) -> bool:
    """Return whether the auxiliary precedes the subject: in all questions but subject ones."""
    if clause.mood == "polar":
        return True
    return clause.mood == "wh" and (front is not None or clause.question_adverb is not None)


def realise_clause(clause: Clause) -> str:
    """Return a clause without its conjunction."""
    front = fronted_constituent(clause)
    words: list[str] = []
    stranded = ""
    if front is not None:
        opening, stranded = _realise_fronted(clause, front)
        words.append(opening)
    elif clause.question_adverb is not None:
        words.append(clause.question_adverb.english)
    elif clause.time is not None and clause.time_first:
        words.append(_realise_time(clause.time))
    if clause.subject is None:
        words.append(f"to {clause.verb.english}")
    else:
        words += _realise_subject_and_verb(clause, _has_inversion(clause, front))
    words += _realise_complements(clause, front, stranded)
    if clause.time is not None and not clause.time_first:
        words.append(_realise_time(clause.time))
    return " ".join(words)


def _realise_subject_and_verb(clause: Clause, inverted: bool) -> list[str]:
    assert clause.subject is not None
    agreement = clause.subject.agreement
    auxiliary, rest = verb_group(clause.verb, clause.tense, clause.modal, agreement, inverted or clause.negated)
    subject = realise_nominal(clause.subject, subject=True)
    if clause.negated:
        auxiliary = _negated(auxiliary)
    words = [auxiliary, subject] if inverted else [subject, auxiliary]
    if clause.adverb is not None:
        words.append(clause.adverb.english)
    words.append(rest)
    return [word for word in words if word]


def realise_sentence(sentence: Sentence) -> str:
    """Return the whole sentence, capitalised and punctuated."""
    first = realise_clause(sentence.first)
    text = first
    if sentence.second is not None:
        second = realise_clause(sentence.second)
        conjunction = sentence.conjunction.english if sentence.conjunction is not None else ""
        if sentence.conjunction_first:
            text = f"{conjunction} {first}, {second}"
        elif sentence.form == "coordinate":
            text = f"{first}, {conjunction} {second}"
        else:
            text = f"{first} {conjunction} {second}" if conjunction else f"{first} {second}"
    end = "?" if sentence.first.mood in ("polar", "wh") else "."
    return text[0].upper() + text[1:] + end
