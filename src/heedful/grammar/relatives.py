"""Choosing relative clauses."""

from __future__ import annotations

from functools import cache

from heedful.grammar import clauses, phrases, verbs
from heedful.grammar import function_words as fw
from heedful.grammar.adjectives import contrary
from heedful.grammar.choices import Choose
from heedful.grammar.structure import Clause, NounPhrase, RelativePronoun
from heedful.grammar.words import Adjective, Noun, Verb

_POSSESSED = ("pet", "mendable", "wearable", "person")
_PERSON_KINDS = ("action", "action", "action", "accusative", "dative", "prepositional", "whose", "whose", "state")

_ACTIONS = tuple(
    verb for verb in clauses.ACTIONS if verb.frame in ("intransitive", "accusative", "dative", "motion", "position")
)
_ANIMAL_ACTIONS = tuple(verb for verb in _ACTIONS if verb.subject == "animate")
_OF_PEOPLE = {
    frame: tuple(verb for verb in verbs.BY_FRAME[frame] if verb.object == "person" and verb.subject == "person")
    for frame in ("accusative", "dative", "prepositional")
}
# Verb outside -> the verbs that its object cannot have behind it: nobody bakes a cake that somebody bought.
_TOO_LATE = {"bake": ("buy", "eat")}


def can_have_relative(phrase: object) -> bool:
    """Whether a nominal is a noun phrase that a restrictive relative clause can follow."""
    return (
        isinstance(phrase, NounPhrase)
        and phrase.determiner in phrases.OPEN
        and phrase.relative is None
        and bool(_kinds(phrase.noun))
    )


@cache
def _kinds(noun: Noun) -> tuple[str, ...]:
    if noun.kind == "person":
        return _PERSON_KINDS
    if noun.kind == "animal":
        return ("animal", "thing", "state")
    if noun.kind in ("place", "room", "event"):
        return ()
    return ("thing", "thing", "state") if clauses.verbs_for_object(noun) else ("state",)


def with_relative(choose: Choose, phrase: NounPhrase, outside: Clause) -> NounPhrase:
    """The noun phrase with a relative clause that fits its noun, and repeats nothing of the clause outside."""
    kind = choose.pick(_kinds(phrase.noun))
    relative = _relative(choose, kind, phrase, outside)
    return choose.settle(phrase._replace(relative=relative))


def _relative(choose: Choose, kind: str, phrase: NounPhrase, outside: Clause) -> Clause:
    if outside.predicate is not None:  # said of the noun as well
        phrase = phrase._replace(adjectives=(*phrase.adjectives, outside.predicate.adjective))
    pronoun = RelativePronoun(phrase.column, phrase.noun.kind == "person")
    plan = clauses.Plan("dependent", "relative", pronoun, negation=False, time="none")
    if kind in ("action", "animal"):
        return clauses.clause(choose, _ACTIONS if kind == "action" else _ANIMAL_ACTIONS, plan)
    if kind == "state":
        tense = choose.pick(("present", "past"))
        said = clauses.said_of(choose, phrase, unsaid=contrary(outside.verb))
        return Clause("dependent", pronoun, verbs.BE, tense, predicate=said)
    if kind == "whose":
        return _whose(choose, phrase, plan)
    subject = phrases.other_person(choose, phrase.noun)
    pool = _gap_verbs(kind, phrase.noun, phrase.adjectives, outside.verb)
    return clauses.clause(choose, pool, plan._replace(subject=subject, object=pronoun, adjunct=False))


@cache
def _gap_verbs(kind: str, noun: Noun, adjectives: tuple[Adjective, ...], outside: Verb) -> tuple[Verb, ...]:
    pool = clauses.verbs_for_object(noun) if kind == "thing" else _OF_PEOPLE[kind]
    said = {each.english for each in adjectives}
    late = _TOO_LATE.get(outside.english, ())
    pool = tuple(verb for verb in pool if contrary(verb) not in said and verb.english not in late)
    return tuple(verb for verb in pool if verb is not outside) or pool


def _whose(choose: Choose, phrase: NounPhrase, plan: clauses.Plan) -> Clause:
    """whose dog is sleeping, whose car is broken: dessen or deren by the noun before."""
    determiner = fw.WHOSE_OF_HIM if phrase.column in ("m", "n") else fw.WHOSE_OF_HER
    tag = choose.pick(_POSSESSED)
    noun = choose.pick(phrases.nouns_for("kin" if tag == "person" else tag, phrase.noun, "any"))
    owned = NounPhrase(noun, False, determiner)
    if tag == "person":
        return clauses.clause(choose, _ACTIONS, plan._replace(subject=owned))
    tense = choose.pick(("present", "past"))
    return Clause("dependent", owned, verbs.BE, tense, predicate=clauses.said_of(choose, owned))
