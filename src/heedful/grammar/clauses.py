"""Generation of clauses: a verb, its tense, its complements and adjuncts."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from heedful.grammar import function_words as fw
from heedful.grammar import nouns, phrases, verbs
from heedful.grammar.abstract_syntax import (
    Clause,
    Nominal,
    NounPhrase,
    Predicate,
    PrepositionalPhrase,
    Pronoun,
)
from heedful.grammar.adjectives import BY_KIND, conflicts, contradicting_adjective
from heedful.grammar.chooser import Chooser
from heedful.grammar.lexical_entries import Adjective, Adverb, Marker, Modal, Noun, Verb

TenseOption = tuple[str, Modal | Marker | None]  # the tense, and the modal or marker that expresses it

_PRESENT_MODALS: tuple[TenseOption, ...] = tuple(("present", modal) for modal in fw.MODALS)
_PAST_MODALS: tuple[TenseOption, ...] = tuple(("past", modal) for modal in (fw.CAN, fw.HAVE_TO, fw.WANT, fw.ALLOWED))
_PAST: TenseOption = ("past", None)
_PRESENT: TenseOption = ("present", None)
_PROGRESSIVE: TenseOption = ("progressive", fw.BE_AUXILIARY)
_FUTURE: TenseOption = ("future", fw.WILL)
_PERFECT: TenseOption = ("perfect", fw.HAVE_AUXILIARY)
# Tense policy -> weighted options for action verbs. Their simple present is habitual and needs a frequency adverb.
_ACTION_TENSES: dict[str, tuple[TenseOption, ...]] = {
    "free": (_PROGRESSIVE,) * 6 + (_PAST,) * 8 + (_FUTURE,) * 4 + (_PRESENT,) * 5 + (_PERFECT,) * 2
    + _PRESENT_MODALS + _PAST_MODALS,
    "non-habitual": (_PROGRESSIVE,) * 5 + (_PAST,) * 7 + (_FUTURE,) * 4 + _PRESENT_MODALS + _PAST_MODALS,
    "event": (_PROGRESSIVE,) * 3 + (_PAST,) * 5 + (_FUTURE,) * 3,
    "relative": (_PROGRESSIVE,) * 4 + (_PAST,) * 6 + (("present", fw.WANT),),
    "past": (_PAST,) * 4 + (("past", fw.WANT), ("past", fw.HAVE_TO)),
    "simple past": (_PAST,),
    "present": (_PROGRESSIVE,) * 3 + (("present", fw.WANT), ("present", fw.HAVE_TO)),
    "progressive": (_PROGRESSIVE,),
    "condition": (_PRESENT,),
    "future": (_FUTURE,) * 3 + (("present", fw.CAN), ("present", fw.HAVE_TO), ("present", fw.WANT)),
    "past modal": (("past", fw.WANT), ("past", fw.HAVE_TO)),
    "present modal": (("present", fw.WANT), ("present", fw.HAVE_TO), ("present", fw.MUST)),
}  # fmt: skip
_STATIVE_TENSES = (_PRESENT, _PAST)
_PAST_POLICIES = frozenset({"past", "simple past", "past modal"})

# Verbs with an agent, weighted towards frames with more arguments.
ACTION_VERBS: tuple[Verb, ...] = tuple(
    verb
    for frame, times in (
        ("intransitive", 1), ("accusative", 1), ("dative", 1), ("ditransitive", 2), ("prepositional", 1),
        ("motion", 2), ("position", 1), ("placement", 3),
    )
    for verb in verbs.BY_FRAME[frame] * times
    if verb.subject in ("person", "animate") and not verb.stative
    and "non-volitional" not in verb.features
)  # fmt: skip
SIMPLE_CLAUSE_VERBS: tuple[Verb, ...] = ACTION_VERBS + tuple(
    verb
    for verb in verbs.VERBS
    if verb not in ACTION_VERBS and verb.frame not in ("that", "whether", "infinitive")
) + (verbs.BE,) * 5 + (verbs.HAVE,) * 5  # fmt: skip
_NEGATION = (None, None, None, fw.NOT)
_NON_GRADABLE = frozenset({"broken", "delicious"})


class ClauseSpec(NamedTuple):
    """What the sentence requires of a clause."""

    mood: str
    tense_policy: str = "free"
    subject: Nominal | None = None  # None: generated
    subject_policy: str = "any"
    excluded_noun: Noun | None = None  # a noun of the sentence that must not be the subject as well
    allow_negation: bool = True
    object: Nominal | None = None  # None: generated
    object_policy: str = ""  # determiners of the direct object; empty: the clause decides
    time: str = "any"  # position of a time adverbial: any, first or none
    allow_adjunct: bool = True  # an optional prepositional phrase
    allow_events: bool = True  # events as time adverbials: after the concert
    question_adverb: Adverb | None = None


def choose_tense(chooser: Chooser, verb: Verb, policy: str) -> TenseOption:
    """Choose a tense that both the policy and the verb allow."""
    if verb.stative:
        if policy in _PAST_POLICIES:
            return _PAST
        return chooser.pick(_STATIVE_TENSES) if policy in ("free", "non-habitual", "event", "relative") else _PRESENT
    if "non-volitional" in verb.features:
        return _PAST if policy == "relative" else chooser.pick((_PAST, _PAST, _FUTURE))
    if verb.subject not in ("person", "animate"):  # inanimate subjects have no modals
        policy = "event" if policy in ("free", "non-habitual", "relative") else policy
    elif policy == "free" and (verb.frame in ("ditransitive", "placement") or verb.object == "event"):
        policy = "non-habitual"  # these actions are rarely habitual
    # "They read" is ambiguous: where present and past are spelt alike, the progressive replaces the present.
    options = _ACTION_TENSES[policy]
    if verb.past == verb.english:
        options = tuple(_PROGRESSIVE if each == _PRESENT else each for each in options)
    return chooser.pick(options)


def _generate_subject(chooser: Chooser, verb: Verb, spec: ClauseSpec, negated: bool) -> Nominal:
    policy = "definite" if negated or verb is verbs.BE else spec.subject_policy
    pronoun_possible = verb.subject in ("person", "animate", "anything") and policy not in (
        "antecedent",
        "restrictable",
    )
    if pronoun_possible and chooser.pick((False, False, False, True)):
        is_question = spec.mood in ("polar", "wh")
        return chooser.check_complete(
            chooser.pick(phrases.PRONOUNS_IN_QUESTIONS if is_question else phrases.PERSONAL_PRONOUNS)
        )
    return phrases.generate_noun_phrase(
        chooser, verb.subject, policy, spec.excluded_noun, without_adjectives=verb is verbs.BE
    )


def generate_clause(chooser: Chooser, candidates: tuple[Verb, ...], spec: ClauseSpec) -> Clause:
    """Generate a clause with one of the candidate verbs, which must fit a given subject."""
    return chooser.check_complete(draft_clause(chooser, candidates, spec))


def draft_clause(chooser: Chooser, candidates: tuple[Verb, ...], spec: ClauseSpec) -> Clause:
    """Generate a clause that the caller extends before it is checked as complete."""
    verb = chooser.pick(candidates)
    tense, marker = choose_tense(chooser, verb, spec.tense_policy)
    modal = marker if isinstance(marker, Modal) else None
    habitual = tense == "present" and modal is None and not verb.stative and spec.tense_policy == "free"
    can_negate = spec.allow_negation and not habitual and tense != "perfect" and modal is not fw.MUST
    negated = can_negate and chooser.pick(_NEGATION) is not None
    subject = spec.subject if spec.subject is not None else _generate_subject(chooser, verb, spec, negated)
    clause = Clause(spec.mood, subject, verb, tense, modal, negated, question_adverb=spec.question_adverb)
    if spec.object is None and not spec.object_policy:  # otherwise the object may open the clause
        chooser.check_partial(clause)
    if verb.frame == "be":
        clause = clause._replace(
            predicate=generate_predicate(chooser, subject, spec.tense_policy in ("past", "present"))
        )
    elif verb.frame not in ("that", "whether", "infinitive"):
        clause = add_complements(chooser, clause, spec)
    if habitual or tense == "perfect":
        clause = _add_obligatory_adverbial(chooser, clause, spec)
    elif spec.time != "none" and not verb.stative:
        clause = _add_time_adverbial(chooser, clause, spec)
    return clause


def generate_predicate(chooser: Chooser, subject: Nominal, as_reason: bool) -> Predicate:
    """Generate a predicate of the subject; as a reason, a temporary state of a person."""
    referent = subject.antecedent if isinstance(subject, Pronoun) else subject
    if not isinstance(referent, NounPhrase):
        return _choose_predicate(chooser, _predicate_adjectives(None, "temporary" if as_reason else "person", ()))
    kind = "temporary" if as_reason and referent.noun.kind == "person" else referent.noun.kind
    return _choose_predicate(chooser, _predicate_adjectives(referent.noun, kind, referent.adjectives))


def generate_predicate_for(
    chooser: Chooser, phrase: NounPhrase, positive: bool | None = None, excluded_adjective: str = ""
) -> Predicate:
    """Generate a predicate compatible with a noun phrase; `positive` selects its polarity."""
    return _choose_predicate(
        chooser, _predicate_adjectives(phrase.noun, phrase.noun.kind, phrase.adjectives, positive, excluded_adjective)
    )


def _choose_predicate(chooser: Chooser, options: tuple[Adjective, ...]) -> Predicate:
    adjective = chooser.pick(options)
    if adjective.english in _NON_GRADABLE:
        return Predicate(adjective, None)
    return Predicate(adjective, chooser.pick((None, None, fw.VERY)))


@cache
def _predicate_adjectives(
    noun: Noun | None,
    kind: str,
    attributes: tuple[Adjective, ...],
    positive: bool | None = None,
    excluded_adjective: str = "",
) -> tuple[Adjective, ...]:
    options = tuple(each for each in BY_KIND[kind] if noun is None or not phrases.is_odd(each, noun))
    if positive is not None:
        options = tuple(each for each in options if ("positive" in each.kinds) == positive)
    return tuple(each for each in options if not conflicts(each, attributes) and each.english != excluded_adjective)


# Complements


def add_complements(chooser: Chooser, clause: Clause, spec: ClauseSpec) -> Clause:
    """Add the complements that the verb requires and an optional adjunct."""
    verb, subject = clause.verb, clause.subject
    definite = "definite" if clause.negated else "any"
    if verb.frame in ("accusative", "have"):
        clause = clause._replace(accusative=spec.object or _generate_accusative(chooser, clause, spec))
    elif verb.frame == "dative":
        policy = "definite" if clause.negated else spec.object_policy or "definite"
        dative = spec.object or phrases.generate_person(chooser, subject, policy, verb.object)
        clause = clause._replace(dative=dative)
    elif verb.frame == "ditransitive":
        clause = clause._replace(dative=phrases.generate_person(chooser, subject, "definite"))
        clause = clause._replace(accusative=spec.object or _generate_accusative(chooser, clause, spec))
    elif verb.frame == "placement":
        clause = clause._replace(accusative=spec.object or _generate_accusative(chooser, clause, spec))
        return clause._replace(
            prepositional_phrase=_generate_position_phrase(chooser, clause, phrases.head_noun(clause.accusative))
        )
    elif verb.frame != "intransitive":
        return clause._replace(prepositional_phrase=_generate_complement_phrase(chooser, clause, spec, definite))
    return (
        clause._replace(prepositional_phrase=_generate_adjunct(chooser, clause, definite))
        if spec.allow_adjunct
        else clause
    )


def _generate_complement_phrase(
    chooser: Chooser, clause: Clause, spec: ClauseSpec, policy: str
) -> PrepositionalPhrase | None:
    """Generate the prepositional phrase that the verb requires."""
    verb = clause.verb
    if verb.preposition is not None:
        governed = spec.object or phrases.generate_person(chooser, clause.subject, policy, verb.object)
        return PrepositionalPhrase(verb.preposition, governed)
    if verb.frame == "position":
        return _generate_position_phrase(chooser, clause, phrases.head_noun(clause.subject))
    if spec.question_adverb is fw.WHERE_TO:
        return None
    return phrases.generate_place_phrase(chooser, phrases.GOALS[verb.english], policy)


def _generate_accusative(chooser: Chooser, clause: Clause, spec: ClauseSpec) -> Nominal:
    """Generate the direct object; under negation it is definite (nicht) or has kein."""
    policy = spec.object_policy or ("no-bare-plural" if _attracts_bare_plural(clause.dative) else "any")
    if clause.verb.frame == "have":
        policy = "negative" if clause.negated else "indefinite"
    elif clause.negated:
        policy = (
            "definite" if policy == "restrictable" else chooser.pick(("definite", "negative", "negative", "negative"))
        )
    if clause.verb.object == "person":
        return phrases.generate_person(
            chooser, clause.subject, policy if policy in ("any", "restrictable") else "definite"
        )
    excluded_noun = phrases.head_noun(clause.subject)
    return phrases.generate_noun_phrase(
        chooser, clause.verb.object, policy, excluded_noun, excluded_adjective=contradicting_adjective(clause.verb)
    )


def _attracts_bare_plural(dative: Nominal | None) -> bool:
    """Return whether a bare plural would attach to the dative: lend her cupboards."""
    return isinstance(dative, NounPhrase) or (isinstance(dative, Pronoun) and dative.gender == "f")


def _generate_position_phrase(chooser: Chooser, clause: Clause, excluded_noun: Noun | None) -> PrepositionalPhrase:
    preposition, tag = chooser.pick(phrases.POSITIONS[clause.verb.english])
    return PrepositionalPhrase(preposition, phrases.generate_noun_phrase(chooser, tag, "singular", excluded_noun))


def _generate_adjunct(chooser: Chooser, clause: Clause, policy: str) -> PrepositionalPhrase | None:
    """Generate, half of the time, a place, companion or beneficiary that fits the verb."""
    kinds = _adjunct_kinds(clause.verb)
    if not kinds or chooser.pick((False, True)):
        return None
    kind = chooser.pick(kinds)
    if kind == "place":
        return phrases.generate_place_phrase(chooser, phrases.PLACES, policy)
    options = (fw.WITH, fw.WITHOUT) if kind == "companion" else (fw.FOR,)
    return phrases.generate_person_phrase(chooser, options, clause.subject)


@cache
def _adjunct_kinds(verb: Verb) -> tuple[str, ...]:
    return tuple(sorted(verb.features & {"place", "companion", "beneficiary"}))


# Time


def _time_adverbials(clause: Clause) -> tuple[Adverb, ...]:
    if clause.tense == "past":
        return fw.PAST_ADVERBIALS
    if clause.tense == "progressive":
        return fw.PRESENT_ADVERBIALS
    if clause.tense == "future":
        return fw.FUTURE_ADVERBIALS
    return fw.PRESENT_ADVERBIALS[:1] + fw.FUTURE_ADVERBIALS[:1]


def _add_obligatory_adverbial(chooser: Chooser, clause: Clause, spec: ClauseSpec) -> Clause:
    """Add the adverbial that the habitual present and the present perfect require."""
    if clause.tense == "perfect":
        return clause._replace(adverb=fw.ALREADY)
    if spec.time == "any" and chooser.pick((False, True)):
        return clause._replace(time=chooser.pick(fw.FREQUENCY_ADVERBIALS))
    return clause._replace(adverb=chooser.pick(fw.FREQUENCY_ADVERBS))


def _add_time_adverbial(chooser: Chooser, clause: Clause, spec: ClauseSpec) -> Clause:
    """Add, sometimes, a time adverbial: first or, if not negated, in the middle field."""
    statement = clause.mood == "statement"
    only_first = clause.negated or spec.time == "first"
    if only_first and not statement:
        return clause
    if not _needs_adverbial(clause) and not chooser.pick((False, False, True)):
        return clause
    first = statement and (only_first or chooser.pick((True, True, False)))
    event = spec.allow_events and clause.tense in ("past", "future") and chooser.pick((False, False, True))
    if not event:
        return clause._replace(time=chooser.pick(_time_adverbials(clause)), time_first=first)
    preposition = chooser.pick((fw.AFTER, fw.BEFORE))
    return clause._replace(
        time=PrepositionalPhrase(preposition, phrases.generate_noun_phrase(chooser, "event", "definite")),
        time_first=first,
    )


def _needs_adverbial(clause: Clause) -> bool:
    """Return whether the clause has only two words without an adverbial; three are required."""
    if (
        clause.verb.frame != "intransitive"
        or clause.prepositional_phrase is not None
        or clause.question_adverb is not None
    ):
        return False
    bare = not isinstance(clause.subject, NounPhrase) or clause.subject.determiner is fw.ZERO_ARTICLE
    one_word_verb = clause.tense in ("past", "progressive") and clause.modal is None and not clause.negated
    return bare and one_word_verb and clause.mood in ("statement", "polar", "wh")


@cache
def verbs_for_object(noun: Noun) -> tuple[Verb, ...]:
    """Return the transitive action verbs that can take the noun as their object."""
    return tuple(
        verb
        for verb in verbs.BY_FRAME["accusative"]
        if noun in nouns.BY_TAG[verb.object] and verb.subject == "person" and not verb.stative
    )
