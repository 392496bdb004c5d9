"""From the abstract structure to English words."""

from __future__ import annotations

from heedful.grammar.english_forms import (
    OBJECT_PRONOUNS,
    SUBJECT_PRONOUNS,
    indefinite_article,
    verb_group,
)
from heedful.grammar.structure import (
    Clause,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    Question,
    Sentence,
    fronted,
)
from heedful.grammar.words import Adverb


def noun_phrase(phrase: NounPhrase) -> str:
    """A noun phrase with its relative clause; English nouns have no case."""
    noun = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    words = [adjective.english for adjective in phrase.adjectives]
    words.append(noun)
    determiner = phrase.determiner.english
    if determiner:
        words.insert(0, indefinite_article(words[0]) if determiner == "a" else determiner)
    if phrase.relative is not None:
        words.append(clause(phrase.relative))
    return " ".join(words)


def nominal(item: Nominal, subject: bool = False, after_preposition: bool = False) -> str:
    """Any nominal; pronouns show whether they are the subject."""
    if isinstance(item, NounPhrase):
        return noun_phrase(item)
    if isinstance(item, Pronoun):
        thing = item.agreement == "3s" and item.antecedent is not None and item.antecedent.noun.kind != "person"
        key = (item.agreement, "n" if thing else item.gender)
        return (SUBJECT_PRONOUNS if subject else OBJECT_PRONOUNS)[key]
    if isinstance(item, Question):
        return "who" if item.person else "what"
    if item.person:
        return "who" if subject else "whom"
    return "which" if after_preposition else "that"


def prepositional_phrase(phrase: PrepositionalPhrase) -> str:
    return f"{phrase.preposition.english} {nominal(phrase.nominal, after_preposition=True)}"


def _time(time: Adverb | PrepositionalPhrase) -> str:
    return time.english if isinstance(time, Adverb) else prepositional_phrase(time)


def _front(clause: Clause, item: Nominal | PrepositionalPhrase) -> tuple[str, str]:
    """What opens the clause, and the preposition that a question leaves behind at the end of the verb group."""
    preposition = clause.verb.english_preposition
    if isinstance(item, PrepositionalPhrase):
        preposition, item = item.preposition.english, item.nominal
    if clause.mood == "wh":
        return nominal(item, subject=True), preposition
    word = nominal(item, after_preposition=bool(preposition))
    return (f"{preposition} {word}" if preposition else word), ""


def _objects(clause: Clause, front: Nominal | PrepositionalPhrase | None, stranded: str) -> list[str]:
    """All that follows the verb: particle, objects, prepositional phrase and predicate."""
    verb = clause.verb
    accusative = None if clause.accusative is front else clause.accusative
    dative = None if clause.dative is front else clause.dative
    words: list[str] = []
    if verb.particle and not isinstance(accusative, Pronoun):
        words.append(verb.particle)
    if verb.english_preposition and (accusative is not None or dative is not None):
        words.append(verb.english_preposition)
    if isinstance(accusative, Pronoun) and dative is not None:
        words += [nominal(accusative), "to", nominal(dative)]
    else:
        words += [nominal(item) for item in (dative, accusative) if item is not None]
    if verb.particle and isinstance(accusative, Pronoun):
        words.append(verb.particle)
    if stranded:
        words.append(stranded)
    if clause.phrase is not None and clause.phrase is not front:
        words.append(prepositional_phrase(clause.phrase))
    if clause.predicate is not None:
        degree = clause.predicate.degree
        words += [degree.english] if degree is not None else []
        words.append(clause.predicate.adjective.english)
    return words


def _negate(auxiliary: str) -> str:
    return "cannot" if auxiliary == "can" else f"{auxiliary} not"


def _inverted(clause: Clause, front: Nominal | PrepositionalPhrase | None) -> bool:
    """Questions put the auxiliary first, unless they ask for the subject."""
    if clause.mood == "polar":
        return True
    return clause.mood == "wh" and (front is not None or clause.question_adverb is not None)


def clause(clause: Clause) -> str:
    """A clause in its own word order, without its conjunction."""
    front = fronted(clause)
    words: list[str] = []
    stranded = ""
    if front is not None:
        opening, stranded = _front(clause, front)
        words.append(opening)
    elif clause.question_adverb is not None:
        words.append(clause.question_adverb.english)
    elif clause.time is not None and clause.time_first:
        words.append(_time(clause.time))
    if clause.subject is None:
        words.append(f"to {clause.verb.english}")
    else:
        words += _subject_and_verb(clause, _inverted(clause, front))
    words += _objects(clause, front, stranded)
    if clause.time is not None and not clause.time_first:
        words.append(_time(clause.time))
    return " ".join(words)


def _subject_and_verb(clause: Clause, inverted: bool) -> list[str]:
    assert clause.subject is not None
    who = clause.subject.agreement
    auxiliary, rest = verb_group(clause.verb, clause.tense, clause.modal, who, inverted or clause.negated)
    subject = nominal(clause.subject, subject=True)
    if clause.negated:
        auxiliary = _negate(auxiliary)
    words = [auxiliary, subject] if inverted else [subject, auxiliary]
    if clause.adverb is not None:
        words.append(clause.adverb.english)
    words.append(rest)
    return [word for word in words if word]


def sentence(sentence: Sentence) -> str:
    """The whole sentence, capitalised and with its punctuation."""
    first = clause(sentence.first)
    text = first
    if sentence.second is not None:
        second = clause(sentence.second)
        joint = sentence.conjunction.english if sentence.conjunction is not None else ""
        if sentence.conjunction_first:
            text = f"{joint} {first}, {second}"
        elif sentence.form == "coordinate":
            text = f"{first}, {joint} {second}"
        else:
            text = f"{first} {joint} {second}" if joint else f"{first} {second}"
    end = "?" if sentence.first.mood in ("polar", "wh") else "."
    return text[0].upper() + text[1:] + end
