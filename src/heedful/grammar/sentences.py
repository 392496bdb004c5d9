"""Choosing whole sentences: the grammar's start."""

from __future__ import annotations

from functools import cache
from typing import Any

from heedful.grammar import clauses, nouns, phrases, relatives, verbs
from heedful.grammar import function_words as fw
from heedful.grammar.choices import Choose
from heedful.grammar.clauses import Plan
from heedful.grammar.structure import Clause, Nominal, NounPhrase, Pronoun, Question, Sentence
from heedful.grammar.words import Conjunction, Noun, Verb

Pool = tuple[Verb, ...]


def _named(*english: str) -> Pool:
    """The verbs of action with these English names."""
    return tuple(verb for verb in clauses.ACTIONS if verb.english in english)


_FORMS = (
    ("statement",) * 9 + ("polar",) * 3 + ("wh",) * 4 + ("reason",) * 3 + ("thing",) * 4 + ("sequence",) * 4
    + ("content",) * 5 + ("purpose",) * 2 + ("trying",) * 2 + ("coordinate",) * 2
)  # fmt: skip
_PLACED = tuple(verb for verb in clauses.ACTIONS if "place" in verb.options)
_GOING = tuple(verb for verb in verbs.BY_FRAME["motion"] if verb.english == "go")
_DATIVES = tuple(verb for verb in verbs.BY_FRAME["dative"] if verb.subject != "ware")
_WITH_OBJECT = tuple(verb for verb in clauses.ALL if verb.frame == "accusative") + _DATIVES
_PREPOSITIONAL = tuple(verb for verb in verbs.BY_FRAME["prepositional"] if verb.object == "person")
_ON_THINGS = tuple(
    verb
    for verb in verbs.BY_FRAME["accusative"]
    if verb.object not in ("person", "animate", "findable", "indoors")
    and verb.subject == "person"
    and "chance" not in verb.options
)
_COUNTED = tuple(verb for verb in _ON_THINGS if verb.object != "drinkable")
_TASKS = tuple(
    verb
    for verb in clauses.ACTIONS
    if verb.frame in ("accusative", "dative", "ditransitive")
    and verb.english not in ("carry", "hide", "follow", "look")
)
_ERRANDS = tuple(
    verb
    for verb in _TASKS
    if verb.english not in ("sell", "send", "lend", "bake", "feed", "tidy", "wash", "repair", "turn", "try")
)
_DUTIES = _TASKS + tuple(verb for verb in clauses.ACTIONS if verb.english in ("go", "work", "wait", "speak"))
# Tense of the main clause, tense of the subordinate clause; the conjunction decides which are natural.
# A background lasts (while he is waiting), an achievement is over at one moment (as soon as he comes back).
_SEQUENCES: tuple[tuple[Conjunction, str, str], ...] = (
    (fw.IF, "future", "condition"),
    (fw.AS_SOON_AS, "future", "condition"),
    (fw.BEFORE_CLAUSE, "simple past", "simple past"),
    (fw.WHILE, "progressive", "progressive"),
)
_BACKGROUND = _named("work", "cook", "wait", "sit", "stand", "eat", "drink", "dance", "play")
_MEANWHILE = _named("laugh", "sing", "cry", "watch", "look", "listen", "speak", "photograph", "help")
_ACHIEVEMENT = _named(
    "get", "come", "open", "close", "turn", "pick", "wake", "tidy", "call", "buy", "sell", "repair",
    "show", "give", "bring", "send",
)  # fmt: skip
_POOLS: dict[Conjunction, tuple[Pool, Pool]] = {
    fw.IF: (clauses.ACTIONS, _ACHIEVEMENT),
    fw.AS_SOON_AS: (clauses.ACTIONS, _ACHIEVEMENT),
    fw.BEFORE_CLAUSE: (clauses.ACTIONS, clauses.ACTIONS),
    fw.WHILE: (_MEANWHILE, _BACKGROUND),
}
# What is asked for -> the verbs, and what the plan of the clause must say.
_WH: dict[str, tuple[Pool, dict[str, Any]]] = {
    "where": (_PLACED, {"adjunct": False, "question_adverb": fw.WHERE}),
    "where to": (_GOING, {"question_adverb": fw.WHERE_TO}),
    "when": (clauses.ACTIONS, {"tenses": "event", "time": "none", "question_adverb": fw.WHEN}),
    "why": (clauses.ALL, {"question_adverb": fw.WHY}),
    "subject": (clauses.ACTIONS, {"subject": Question(True)}),
    "thing": (_ON_THINGS, {"object": Question(False)}),
    "which": (_COUNTED, {"object_policy": "which", "adjunct": False}),
    "dative": (_DATIVES, {"object": Question(True)}),
    "preposition": (_PREPOSITIONAL, {"object": Question(True), "adjunct": False}),
}
_ASKED = tuple(_WH)
_KNOW, _BELIEVE, _HOPE, _SAY = verbs.BY_FRAME["that"]
(_ASK,) = verbs.BY_FRAME["whether"]
_CONTENT: tuple[tuple[Verb, Conjunction, str, bool], ...] = (
    (_KNOW, fw.THAT, "statement", False),
    (_BELIEVE, fw.THAT, "statement", False),
    (_BELIEVE, fw.THAT, "statement", True),
    (_HOPE, fw.THAT, "statement", False),
    (_SAY, fw.THAT, "statement", False),
    (_ASK, fw.WHETHER, "statement", False),
    (_KNOW, fw.WHETHER, "statement", True),
    (_KNOW, fw.WHETHER, "polar", False),
)
_GETTING = tuple(verb for verb in _ON_THINGS if verb.english in ("buy", "need"))
# Done with a thing because one likes it, except sell.
_JUDGED = frozenset({"buy", "sell", "read", "eat", "drink", "bring", "try"})
_JUDGING = tuple(verb for verb in _ON_THINGS if verb.english in _JUDGED)
_USES = frozenset({"read", "eat", "drink", "paint", "photograph", "repair", "try", "give", "show", "lend", "offer"})
# What one does in such a state: not to do it is done although, not because.
_CAUSE = {"eat": "hungry", "sleep": "tired", "laugh": "happy", "cry": "sad"}


def sentence(choose: Choose) -> Sentence:
    """Any sentence of the grammar."""
    form = choose.pick(_FORMS)
    if form == "statement":
        return Sentence("simple", _statement(choose))
    if form == "polar":
        return Sentence("simple", _polar(choose))
    if form == "wh":
        return Sentence("simple", _wh(choose))
    if form == "reason":
        return _reason(choose)
    if form == "thing":
        return _about_thing(choose)
    if form == "sequence":
        return _sequence(choose)
    if form == "content":
        return _content(choose)
    if form == "purpose":
        return _purpose(choose)
    return _trying(choose) if form == "trying" else _coordinate(choose)


# One clause


def _statement(choose: Choose) -> Clause:
    """A statement, one in three with a relative clause at its subject or object."""
    where = choose.pick(("", "", "", "subject", "object"))
    if not where:
        return clauses.clause(choose, clauses.ALL, Plan("statement"))
    if where == "object":
        return _with_object_relative(choose, "statement")
    made = clauses.unsettled(choose, clauses.ALL, Plan("statement", "unhurried", subject_policy="open"))
    if relatives.can_have_relative(made.subject):
        assert isinstance(made.subject, NounPhrase)
        made = made._replace(subject=relatives.with_relative(choose, made.subject, made))
    return choose.settle(made)


def _with_object_relative(choose: Choose, mood: str) -> Clause:
    """Nothing may follow the object in English: it would read as a part of the relative clause."""
    plan = Plan(mood, "unhurried", object_policy="open", adjunct=False, time="first")
    if mood == "polar":
        plan = plan._replace(subject_policy="definite", negation=False)
    made = clauses.unsettled(choose, _WITH_OBJECT, plan)
    item = made.accusative or made.dative
    if relatives.can_have_relative(item):
        assert isinstance(item, NounPhrase)
        item = relatives.with_relative(choose, item, made)
        made = made._replace(accusative=item) if made.accusative else made._replace(dative=item)
    return choose.settle(made)


def _polar(choose: Choose) -> Clause:
    if choose.pick((False, False, True)):
        return _with_object_relative(choose, "polar")
    return clauses.clause(choose, clauses.ALL, Plan("polar", "unhurried", subject_policy="definite", negation=False))


def _wh(choose: Choose) -> Clause:
    """where, when, why, who, what, which."""
    pool, changes = _WH[choose.pick(_ASKED)]
    plan = Plan("wh", "unhurried", subject_policy="definite", negation=False)
    return clauses.clause(choose, pool, plan._replace(**changes))


# Two clauses


def _speaker(choose: Choose) -> Nominal:
    """A person whom a later clause can take up again as I, you, he, she, we or they."""
    if choose.pick((False, False, True)):
        return choose.settle(choose.pick(phrases.PEOPLE))
    return phrases.noun_phrase(choose, "person", "antecedent")


def _again(item: Nominal) -> Nominal:
    """The pronoun for somebody named before."""
    return phrases.pronoun_for(item) if isinstance(item, NounPhrase) else item


def _join(
    choose: Choose, conjunction: Conjunction, main: tuple[Pool, Plan], subordinate: tuple[Pool, Plan]
) -> Sentence:
    """Main and subordinate clause about the same person, in either order; the second says he or she."""
    conjunction_first = choose.pick((False, False, True))
    person = _speaker(choose)
    one, two = (subordinate, main) if conjunction_first else (main, subordinate)
    moods = ("dependent", "inverted") if conjunction_first else ("statement", "dependent")
    first = clauses.clause(choose, one[0], one[1]._replace(mood=moods[0], subject=person))
    second = clauses.clause(choose, two[0], two[1]._replace(mood=moods[1], subject=_again(person)))
    return Sentence("subordinate", first, second, conjunction, conjunction_first)


def _reason(choose: Choose) -> Sentence:
    """because or although: a state of the same person, or what that person must or wants to do."""
    conjunction = choose.pick((fw.BECAUSE, fw.ALTHOUGH))
    tense = choose.pick(("past", "present"))
    main = (clauses.ACTIONS, Plan("", tense))
    if choose.pick((False, True)):
        return _causal(_join(choose, conjunction, main, ((verbs.BE,), Plan("", tense, negation=False))))
    plan = Plan("", tense + " modal", negation=False, time="none")
    return _join(choose, conjunction, main, (_DUTIES, plan))


def _causal(made: Sentence) -> Sentence:
    """With the other conjunction where state and action leave no choice: not eating although one is hungry."""
    assert made.second is not None
    state, main = (made.first, made.second) if made.conjunction_first else (made.second, made.first)
    assert state.predicate is not None
    if _CAUSE.get(main.verb.english) != state.predicate.adjective.english:
        return made
    return made._replace(conjunction=fw.ALTHOUGH if main.negated else fw.BECAUSE)


def _sequence(choose: Choose) -> Sentence:
    """if, as soon as, before and while, with the tenses that they call for."""
    conjunction, main, subordinate = choose.pick(_SEQUENCES)
    plan = Plan("", negation=False, time="none")
    return _join(
        choose,
        conjunction,
        (_POOLS[conjunction][0], plan._replace(tenses=main, adjunct=conjunction is not fw.WHILE)),
        (_POOLS[conjunction][1], plan._replace(tenses=subordinate)),
    )


def _about_thing(choose: Choose) -> Sentence:
    """A second clause about the thing of the first: it is er, sie or es by the noun.

    The first clause has no other thing that "it" could stand for.
    """
    tense, used = choose.pick(("past", "present")), choose.pick((False, True))
    person = _speaker(choose)
    plan = Plan("statement", tense, person, negation=False, adjunct=False, events=False)
    plan = plan._replace(object_policy="antecedent")
    first = clauses.clause(choose, _GETTING if used else _JUDGING, plan)
    thing = first.accusative
    assert isinstance(thing, NounPhrase)
    conjunction = fw.BECAUSE if used else choose.pick((fw.BECAUSE, fw.ALTHOUGH))
    pronoun = phrases.pronoun_for(thing)
    if used:
        about = Plan("dependent", tense + " modal", _again(person), negation=False, object=pronoun)
        second = clauses.clause(choose, _uses(thing.noun), about._replace(time="none", adjunct=False))
    else:
        good = (conjunction is fw.BECAUSE) == (first.verb.english != "sell")
        said = clauses.said_of(choose, thing, good)
        second = choose.settle(Clause("dependent", pronoun, verbs.BE, tense, predicate=said))
    return Sentence("subordinate", first, second, conjunction)


@cache
def _uses(noun: Noun) -> Pool:
    """What one gets a thing for: to use it, or to give it to somebody."""
    return tuple(
        verb
        for verb in verbs.BY_FRAME["accusative"] + verbs.BY_FRAME["ditransitive"]
        if verb.english in _USES and noun in nouns.BY_TAG[verb.object]
    )


def _content(choose: Choose) -> Sentence:
    """that and whether; the main verb stands in the present, so that English does not shift the tense."""
    verb, conjunction, mood, negated = choose.pick(_CONTENT)
    subject = _knower(choose, phrases.ASKED_PEOPLE if mood == "polar" else phrases.PEOPLE)
    first = choose.settle(Clause(mood, subject, verb, negated=negated))
    plan = Plan("dependent", "event" if verb is _HOPE else "free", avoid=phrases.noun_of(subject))
    plan = plan._replace(negation=not negated and conjunction is fw.THAT)
    second = clauses.clause(choose, clauses.ALL, plan)
    return Sentence("content", first, second, conjunction)


def _knower(choose: Choose, people: tuple[Pronoun, ...] = phrases.PEOPLE) -> Nominal:
    """Somebody definite; nothing later refers back."""
    if choose.pick((False, True)):
        return choose.settle(choose.pick(people))
    return phrases.noun_phrase(choose, "person", "definite")


def _purpose(choose: Choose) -> Sentence:
    """in order to: um ... zu."""
    conjunction = choose.pick((fw.IN_ORDER_TO,))
    tense = choose.pick(("past", "future", "progressive"))
    plan = Plan("statement", tense, _speaker(choose), negation=False, time="first")
    first = clauses.clause(choose, _GOING, plan)
    return Sentence("purpose", first, _task(choose, _ERRANDS, first.subject), conjunction)


def _trying(choose: Choose) -> Sentence:
    """try, forget and promise to: a comma and zu in German."""
    verb = choose.pick(verbs.BY_FRAME["to"])
    tense = choose.pick(("simple past", "progressive") if verb.english == "try" else ("simple past",))
    plan = Plan("statement", tense, _speaker(choose), negation=False, time="first")
    first = clauses.clause(choose, (verb,), plan)
    return Sentence("trying", first, _task(choose, _TASKS, first.subject))


def _task(choose: Choose, pool: Pool, subject: Nominal | None) -> Clause:
    """An infinitive clause; its objects must not be the one who acts."""
    verb = choose.pick(pool)
    plan = Plan("infinitive", negation=False, time="none", adjunct=False)
    made = clauses.complements(choose, Clause("infinitive", subject, verb), plan)
    return choose.settle(made._replace(subject=None))


def _coordinate(choose: Choose) -> Sentence:
    """and, but: two people and what they do."""
    conjunction = choose.pick((fw.AND, fw.BUT))
    tense = choose.pick(("past", "progressive", "future"))
    plan = Plan("statement", tense, _knower(choose))
    first = clauses.clause(choose, clauses.ACTIONS, plan)
    other = phrases.noun_phrase(choose, "person", "definite", phrases.noun_of(first.subject))
    second = clauses.clause(choose, clauses.ACTIONS, plan._replace(subject=other, time="none"))
    return Sentence("coordinate", first, second, conjunction)
