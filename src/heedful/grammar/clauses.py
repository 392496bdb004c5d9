"""Choosing clauses: a verb, a tense, and what the verb asks for."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from heedful.grammar import function_words as fw
from heedful.grammar import nouns, phrases, verbs
from heedful.grammar.adjectives import BY_KIND, clashes, contrary
from heedful.grammar.choices import Choose
from heedful.grammar.structure import (
    Clause,
    Nominal,
    NounPhrase,
    Predicate,
    PrepositionalPhrase,
    Pronoun,
)
from heedful.grammar.words import Adjective, Adverb, Marker, Modal, Noun, Verb

TenseChoice = tuple[str, Modal | Marker | None]  # the tense, and the modal or whatever else shows it

_PRESENT_MODALS: tuple[TenseChoice, ...] = tuple(("present", modal) for modal in fw.MODALS)
_PAST_MODALS: tuple[TenseChoice, ...] = tuple(("past", modal) for modal in (fw.CAN, fw.HAVE_TO, fw.WANT, fw.ALLOWED))
_PAST: TenseChoice = ("past", None)
_PRESENT: TenseChoice = ("present", None)
_PROGRESSIVE: TenseChoice = ("progressive", fw.AM_ARE_IS)
_FUTURE: TenseChoice = ("future", fw.WILL)
_PERFECT: TenseChoice = ("perfect", fw.HAVE_HAS)
# policy -> choices for verbs of action; the simple present of these means a habit, and gets an adverb for it.
_ACTION: dict[str, tuple[TenseChoice, ...]] = {
    "free": (_PROGRESSIVE,) * 6 + (_PAST,) * 8 + (_FUTURE,) * 4 + (_PRESENT,) * 5 + (_PERFECT,) * 2
    + _PRESENT_MODALS + _PAST_MODALS,
    "unhurried": (_PROGRESSIVE,) * 5 + (_PAST,) * 7 + (_FUTURE,) * 4 + _PRESENT_MODALS + _PAST_MODALS,
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
_STATE = (_PRESENT, _PAST)
_PAST_POLICIES = frozenset({"past", "simple past", "past modal"})

# Verbs that people do, by frame, the richer frames more often.
ACTIONS: tuple[Verb, ...] = tuple(
    verb
    for frame, times in (
        ("intransitive", 1), ("accusative", 1), ("dative", 1), ("ditransitive", 2), ("prepositional", 1),
        ("motion", 2), ("position", 1), ("placing", 3),
    )
    for verb in verbs.BY_FRAME[frame] * times
    if verb.subject in ("person", "animate") and not verb.stative
    and "chance" not in verb.options
)  # fmt: skip
ALL: tuple[Verb, ...] = ACTIONS + tuple(
    verb
    for verb in verbs.VERBS
    if verb not in ACTIONS and verb.frame not in ("that", "whether", "to")
) + (verbs.BE,) * 5 + (verbs.HAVE,) * 5  # fmt: skip
_NEGATION = (None, None, None, fw.NOT)
_UNGRADABLE = frozenset({"broken", "delicious"})


class Plan(NamedTuple):
    """What the sentence around it asks of a clause."""

    mood: str
    tenses: str = "free"
    subject: Nominal | None = None  # given, or chosen by the clause
    subject_policy: str = "any"
    avoid: Noun | None = None  # a noun already used in the sentence, not to be the subject again
    negation: bool = True
    object: Nominal | None = None  # given instead of the verb's own object
    object_policy: str = ""  # determiners of the direct object, where the sentence and not the clause decides
    time: str = "any"  # an adverbial of time: any place, first only, or none
    adjunct: bool = True  # a prepositional phrase that the verb does not need
    events: bool = True  # "after the concert" may stand as time
    question_adverb: Adverb | None = None


def tense_of(choose: Choose, verb: Verb, policy: str) -> TenseChoice:
    """A tense that the policy allows and the verb can have."""
    if verb.stative:
        if policy in _PAST_POLICIES:
            return _PAST
        return choose.pick(_STATE) if policy in ("free", "unhurried", "event", "relative") else _PRESENT
    if "chance" in verb.options:
        return _PAST if policy == "relative" else choose.pick((_PAST, _PAST, _FUTURE))
    if verb.subject not in ("person", "animate"):  # trains and letters want, and are allowed, nothing
        policy = "event" if policy in ("free", "unhurried", "relative") else policy
    elif policy == "free" and (verb.frame in ("ditransitive", "placing") or verb.object == "event"):
        policy = "unhurried"  # a habit needs something that happens more than once
    # "They read" would be present or past: where the two look alike, the present is the progressive.
    options = _ACTION[policy]
    if verb.past == verb.english:
        options = tuple(_PROGRESSIVE if each == _PRESENT else each for each in options)
    return choose.pick(options)


def _subject(choose: Choose, verb: Verb, plan: Plan, negated: bool) -> Nominal:
    policy = "definite" if negated or verb is verbs.BE else plan.subject_policy
    people = verb.subject in ("person", "animate", "anything") and policy not in ("antecedent", "open")
    if people and choose.pick((False, False, False, True)):
        asked = plan.mood in ("polar", "wh")
        return choose.settle(choose.pick(phrases.ASKED_PEOPLE if asked else phrases.PEOPLE))
    return phrases.noun_phrase(choose, verb.subject, policy, plan.avoid, plain=verb is verbs.BE)


def clause(choose: Choose, pool: tuple[Verb, ...], plan: Plan) -> Clause:
    """A clause with one of the verbs of the pool; if the subject is given, the pool must fit it."""
    return choose.settle(unsettled(choose, pool, plan))


def unsettled(choose: Choose, pool: tuple[Verb, ...], plan: Plan) -> Clause:
    """The same for a caller who has something to add."""
    verb = choose.pick(pool)
    tense, marker = tense_of(choose, verb, plan.tenses)
    modal = marker if isinstance(marker, Modal) else None
    habit = tense == "present" and modal is None and not verb.stative and plan.tenses == "free"
    can_negate = plan.negation and not habit and tense != "perfect" and modal is not fw.MUST
    negated = can_negate and choose.pick(_NEGATION) is not None
    subject = plan.subject if plan.subject is not None else _subject(choose, verb, plan, negated)
    frame = Clause(plan.mood, subject, verb, tense, modal, negated, question_adverb=plan.question_adverb)
    if plan.object is None and not plan.object_policy:  # else the clause may open with its object
        choose.begin(frame)
    if verb.frame == "be":
        frame = frame._replace(predicate=predicate(choose, subject, plan.tenses in ("past", "present")))
    elif verb.frame not in ("that", "whether", "to"):
        frame = complements(choose, frame, plan)
    if habit or tense == "perfect":
        frame = _habit(choose, frame, plan)
    elif plan.time != "none" and not verb.stative:
        frame = _timed(choose, frame, plan)
    return frame


def predicate(choose: Choose, subject: Nominal, reason: bool) -> Predicate:
    """An adjective that can be said of the subject; as a reason, a passing state of a person."""
    named = subject.antecedent if isinstance(subject, Pronoun) else subject
    if not isinstance(named, NounPhrase):
        return _said(choose, _sayable(None, "state" if reason else "person", ()))
    kind = "state" if reason and named.noun.kind == "person" else named.noun.kind
    return _said(choose, _sayable(named.noun, kind, named.adjectives))


def said_of(choose: Choose, phrase: NounPhrase, good: bool | None = None, unsaid: str = "") -> Predicate:
    """An adjective for a noun phrase that does not have it; `good` asks for what one likes or dislikes."""
    return _said(choose, _sayable(phrase.noun, phrase.noun.kind, phrase.adjectives, good, unsaid))


def _said(choose: Choose, options: tuple[Adjective, ...]) -> Predicate:
    adjective = choose.pick(options)
    if adjective.english in _UNGRADABLE:
        return Predicate(adjective, None)
    return Predicate(adjective, choose.pick((None, None, fw.VERY)))


@cache
def _sayable(
    noun: Noun | None, kind: str, avoid: tuple[Adjective, ...], good: bool | None = None, unsaid: str = ""
) -> tuple[Adjective, ...]:
    options = tuple(each for each in BY_KIND[kind] if noun is None or not phrases.unfit(each, noun))
    if good is not None:
        options = tuple(each for each in options if ("good" in each.kinds) == good)
    return tuple(each for each in options if not clashes(each, avoid) and each.english != unsaid)


# Complements


def complements(choose: Choose, frame: Clause, plan: Plan) -> Clause:
    """Add the objects and prepositional phrases that the verb asks for or allows."""
    verb, subject = frame.verb, frame.subject
    definite = "definite" if frame.negated else "any"
    if verb.frame in ("accusative", "have"):
        frame = frame._replace(accusative=plan.object or _accusative(choose, frame, plan))
    elif verb.frame == "dative":
        policy = "definite" if frame.negated else plan.object_policy or "definite"
        dative = plan.object or phrases.person(choose, subject, policy, verb.object)
        frame = frame._replace(dative=dative)
    elif verb.frame == "ditransitive":
        frame = frame._replace(dative=phrases.person(choose, subject, "definite"))
        frame = frame._replace(accusative=plan.object or _accusative(choose, frame, plan))
    elif verb.frame == "placing":
        frame = frame._replace(accusative=plan.object or _accusative(choose, frame, plan))
        return frame._replace(phrase=_position(choose, frame, phrases.noun_of(frame.accusative)))
    elif verb.frame != "intransitive":
        return frame._replace(phrase=_complement_phrase(choose, frame, plan, definite))
    return frame._replace(phrase=_adjunct(choose, frame, definite)) if plan.adjunct else frame


def _complement_phrase(choose: Choose, frame: Clause, plan: Plan, policy: str) -> PrepositionalPhrase | None:
    """The prepositional phrase that the verb cannot do without."""
    verb = frame.verb
    if verb.preposition is not None:
        governed = plan.object or phrases.person(choose, frame.subject, policy, verb.object)
        return PrepositionalPhrase(verb.preposition, governed)
    if verb.frame == "position":
        return _position(choose, frame, phrases.noun_of(frame.subject))
    if plan.question_adverb is fw.WHERE_TO:
        return None
    return phrases.at_place(choose, phrases.GOALS[verb.english], policy)


def _accusative(choose: Choose, frame: Clause, plan: Plan) -> Nominal:
    """The direct object; negation makes it either definite (nicht) or kein."""
    policy = plan.object_policy or ("marked" if _runs_on(frame.dative) else "any")
    if frame.verb.frame == "have":
        policy = "negative" if frame.negated else "indefinite"
    elif frame.negated:
        policy = "definite" if policy == "open" else choose.pick(("definite", "negative", "negative", "negative"))
    if frame.verb.object == "person":
        return phrases.person(choose, frame.subject, policy if policy in ("any", "open") else "definite")
    avoid = phrases.noun_of(frame.subject)
    return phrases.noun_phrase(choose, frame.verb.object, policy, avoid, contrary=contrary(frame.verb))


def _runs_on(dative: Nominal | None) -> bool:
    """Whether a bare plural after it would be read as one with it: lend the queen cupboards, lend her cupboards."""
    return isinstance(dative, NounPhrase) or (isinstance(dative, Pronoun) and dative.gender == "f")


def _position(choose: Choose, frame: Clause, avoid: Noun | None) -> PrepositionalPhrase:
    preposition, tag = choose.pick(phrases.POSITIONS[frame.verb.english])
    return PrepositionalPhrase(preposition, phrases.noun_phrase(choose, tag, "one", avoid))


def _adjunct(choose: Choose, frame: Clause, policy: str) -> PrepositionalPhrase | None:
    """Now and then a place, a companion or somebody for whom it is done."""
    kinds = _adjunct_kinds(frame.verb)
    if not kinds or choose.pick((False, True)):
        return None
    kind = choose.pick(kinds)
    if kind == "place":
        return phrases.at_place(choose, phrases.PLACES, policy)
    options = (fw.WITH, fw.WITHOUT) if kind == "companion" else (fw.FOR,)
    return phrases.with_person(choose, options, frame.subject)


@cache
def _adjunct_kinds(verb: Verb) -> tuple[str, ...]:
    return tuple(sorted(verb.options & {"place", "companion", "beneficiary"}))


# Time


def _times(frame: Clause) -> tuple[Adverb, ...]:
    if frame.tense == "past":
        return fw.YESTERDAY
    if frame.tense == "progressive":
        return fw.TODAY
    if frame.tense == "future":
        return fw.TOMORROW
    return fw.TODAY[:1] + fw.TOMORROW[:1]


def _habit(choose: Choose, frame: Clause, plan: Plan) -> Clause:
    """What the simple present of an action and the present perfect are never without."""
    if frame.tense == "perfect":
        return frame._replace(adverb=fw.ALREADY)
    if plan.time == "any" and choose.pick((False, True)):
        return frame._replace(time=choose.pick(fw.EVERY_DAY))
    return frame._replace(adverb=choose.pick(fw.HABITS))


def _timed(choose: Choose, frame: Clause, plan: Plan) -> Clause:
    """Now and then an adverbial of time, first or, unless the clause is negated, in the middle field."""
    statement = frame.mood == "statement"
    only_first = frame.negated or plan.time == "first"
    if only_first and not statement:
        return frame
    if not _too_short(frame) and not choose.pick((False, False, True)):
        return frame
    first = statement and (only_first or choose.pick((True, True, False)))
    event = plan.events and frame.tense in ("past", "future") and choose.pick((False, False, True))
    if not event:
        return frame._replace(time=choose.pick(_times(frame)), time_first=first)
    preposition = choose.pick((fw.AFTER, fw.BEFORE))
    return frame._replace(
        time=PrepositionalPhrase(preposition, phrases.noun_phrase(choose, "event", "definite")),
        time_first=first,
    )


def _too_short(frame: Clause) -> bool:
    """Whether nothing but a bare subject and its verb is there: at least three words make a sentence."""
    if frame.verb.frame != "intransitive" or frame.phrase is not None or frame.question_adverb is not None:
        return False
    bare = not isinstance(frame.subject, NounPhrase) or frame.subject.determiner is fw.NONE
    one_word_verb = frame.tense in ("past", "progressive") and frame.modal is None and not frame.negated
    return bare and one_word_verb and frame.mood in ("statement", "polar", "wh")


@cache
def verbs_for_object(noun: Noun) -> tuple[Verb, ...]:
    """The verbs of action, with an accusative, that make sense with a noun as their object."""
    return tuple(
        verb
        for verb in verbs.BY_FRAME["accusative"]
        if noun in nouns.BY_TAG[verb.object] and verb.subject == "person" and not verb.stative
    )
