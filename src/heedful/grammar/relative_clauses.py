"""Generation of restrictive relative clauses."""

from __future__ import annotations

from functools import cache

from heedful.grammar import clauses, phrases, verbs
from heedful.grammar import function_words as fw
from heedful.grammar.abstract_syntax import Clause, NounPhrase, RelativePronoun
from heedful.grammar.adjectives import contradicting_adjective
from heedful.grammar.chooser import Chooser
from heedful.grammar.lexical_entries import Adjective, Noun, Verb

_POSSESSED_TAGS = ("pet", "repairable", "wearable", "person")
_PERSON_RELATIVE_TYPES = (
    "action",
    "action",
    "action",
    "accusative",
    "dative",
    "prepositional",
    "whose",
    "whose",
    "state",
)

_ACTION_VERBS = tuple(
    verb
    for verb in clauses.ACTION_VERBS
    if verb.frame in ("intransitive", "accusative", "dative", "motion", "position")
)
_ANIMAL_ACTION_VERBS = tuple(verb for verb in _ACTION_VERBS if verb.subject == "animate")
_PERSON_OBJECT_VERBS = {
    frame: tuple(verb for verb in verbs.BY_FRAME[frame] if verb.object == "person" and verb.subject == "person")
    for frame in ("accusative", "dative", "prepositional")
}
# Matrix verb -> verbs that its object's relative clause cannot have: nobody bakes a cake that somebody bought.
_IMPLAUSIBLE_VERBS = {"bake": ("buy", "eat")}


def allows_relative_clause(phrase: object) -> bool:
    """Return whether a nominal is a noun phrase that allows a restrictive relative clause."""
    return (
        isinstance(phrase, NounPhrase)
        and phrase.determiner in phrases.RELATIVE_CLAUSE_DETERMINERS
        and phrase.relative_clause is None
        and bool(_relative_types(phrase.noun))
    )


@cache
def _relative_types(noun: Noun) -> tuple[str, ...]:
    if noun.kind == "person":
        return _PERSON_RELATIVE_TYPES
    if noun.kind == "animal":
        return ("animal", "thing", "state")
    if noun.kind in ("place", "room", "event"):
        return ()
    return ("thing", "thing", "state") if clauses.verbs_for_object(noun) else ("state",)


def add_relative_clause(chooser: Chooser, phrase: NounPhrase, matrix: Clause) -> NounPhrase:
    """Add a relative clause that fits the noun and does not repeat the matrix clause."""
    relative_type = chooser.pick(_relative_types(phrase.noun))
    relative_clause = _generate_relative_clause(chooser, relative_type, phrase, matrix)
    return chooser.check_complete(phrase._replace(relative_clause=relative_clause))


def _generate_relative_clause(chooser: Chooser, relative_type: str, phrase: NounPhrase, matrix: Clause) -> Clause:
    if matrix.predicate is not None:  # the relative clause must not contradict it
        phrase = phrase._replace(adjectives=(*phrase.adjectives, matrix.predicate.adjective))
    pronoun = RelativePronoun(phrase.gender_number, phrase.noun.kind == "person")
    spec = clauses.ClauseSpec("dependent", "relative", pronoun, allow_negation=False, time="none")
    if relative_type in ("action", "animal"):
        return clauses.generate_clause(
            chooser, _ACTION_VERBS if relative_type == "action" else _ANIMAL_ACTION_VERBS, spec
        )
    if relative_type == "state":
        tense = chooser.pick(("present", "past"))
        predicate = clauses.generate_predicate_for(
            chooser, phrase, excluded_adjective=contradicting_adjective(matrix.verb)
        )
        return Clause("dependent", pronoun, verbs.BE, tense, predicate=predicate)
    if relative_type == "whose":
        return _generate_genitive_relative(chooser, phrase, spec)
    subject = phrases.generate_other_person(chooser, phrase.noun)
    candidates = _object_gap_verbs(relative_type, phrase.noun, phrase.adjectives, matrix.verb)
    return clauses.generate_clause(
        chooser, candidates, spec._replace(subject=subject, object=pronoun, allow_adjunct=False)
    )


@cache
def _object_gap_verbs(
    relative_type: str, noun: Noun, adjectives: tuple[Adjective, ...], matrix: Verb
) -> tuple[Verb, ...]:
    candidates = clauses.verbs_for_object(noun) if relative_type == "thing" else _PERSON_OBJECT_VERBS[relative_type]
    attributes = {each.english for each in adjectives}
    implausible = _IMPLAUSIBLE_VERBS.get(matrix.english, ())
    candidates = tuple(
        verb
        for verb in candidates
        if contradicting_adjective(verb) not in attributes and verb.english not in implausible
    )
    return tuple(verb for verb in candidates if verb is not matrix) or candidates


def _generate_genitive_relative(chooser: Chooser, phrase: NounPhrase, spec: clauses.ClauseSpec) -> Clause:
    """Generate a genitive relative clause: whose dog is sleeping, whose car is broken."""
    determiner = fw.WHOSE_DESSEN if phrase.gender_number in ("m", "n") else fw.WHOSE_DEREN
    tag = chooser.pick(_POSSESSED_TAGS)
    noun = chooser.pick(phrases.candidate_nouns("kin" if tag == "person" else tag, phrase.noun, "any"))
    possessed = NounPhrase(noun, False, determiner)
    if tag == "person":
        return clauses.generate_clause(chooser, _ACTION_VERBS, spec._replace(subject=possessed))
    tense = chooser.pick(("present", "past"))
    return Clause("dependent", possessed, verbs.BE, tense, predicate=clauses.generate_predicate_for(chooser, possessed))
