"""Generation of whole sentences: the start symbol of the grammar."""

from __future__ import annotations

from functools import cache
from typing import Any

from heedful.grammar import clauses, nouns, phrases, relative_clauses, verbs
from heedful.grammar import function_words as fw
from heedful.grammar.abstract_syntax import Clause, InterrogativePronoun, Nominal, NounPhrase, Pronoun, Sentence
from heedful.grammar.chooser import Chooser
from heedful.grammar.clauses import ClauseSpec
from heedful.grammar.lexical_entries import Conjunction, Noun, Verb

Verbs = tuple[Verb, ...]


def _action_verbs(*english: str) -> Verbs:
    """Return the action verbs with these English infinitives."""
    return tuple(verb for verb in clauses.ACTION_VERBS if verb.english in english)


_SENTENCE_TYPES = (
    ("statement",) * 9 + ("polar",) * 3 + ("wh",) * 4 + ("reason",) * 3 + ("thing",) * 4 + ("sequence",) * 4
    + ("content",) * 5 + ("purpose",) * 2 + ("infinitive",) * 2 + ("coordinate",) * 2
)  # fmt: skip
_VERBS_WITH_PLACE = tuple(verb for verb in clauses.ACTION_VERBS if "place" in verb.features)
_GO = tuple(verb for verb in verbs.BY_FRAME["motion"] if verb.english == "go")
_DATIVE_VERBS = tuple(verb for verb in verbs.BY_FRAME["dative"] if verb.subject != "purchasable")
_VERBS_WITH_OBJECT = tuple(verb for verb in clauses.SIMPLE_CLAUSE_VERBS if verb.frame == "accusative") + _DATIVE_VERBS
_PREPOSITIONAL_VERBS = tuple(verb for verb in verbs.BY_FRAME["prepositional"] if verb.object == "person")
_THING_OBJECT_VERBS = tuple(
    verb
    for verb in verbs.BY_FRAME["accusative"]
    if verb.object not in ("person", "animate", "findable", "indoors")
    and verb.subject == "person"
    and "non-volitional" not in verb.features
)
_COUNT_OBJECT_VERBS = tuple(verb for verb in _THING_OBJECT_VERBS if verb.object != "drinkable")
_INFINITIVE_VERBS = tuple(
    verb
    for verb in clauses.ACTION_VERBS
    if verb.frame in ("accusative", "dative", "ditransitive")
    and verb.english not in ("carry", "hide", "follow", "look")
)
_PURPOSE_VERBS = tuple(
    verb
    for verb in _INFINITIVE_VERBS
    if verb.english not in ("sell", "send", "lend", "bake", "feed", "tidy", "wash", "repair", "turn", "try")
)
_OBLIGATION_VERBS = _INFINITIVE_VERBS + tuple(
    verb for verb in clauses.ACTION_VERBS if verb.english in ("go", "work", "wait", "speak")
)
# Conjunction, tense policy of the main clause, tense policy of the subordinate clause.
# Durative verbs follow while (while he is waiting), achievement verbs as soon as (as soon as he comes back).
_TENSE_SEQUENCES: tuple[tuple[Conjunction, str, str], ...] = (
    (fw.IF, "future", "condition"),
    (fw.AS_SOON_AS, "future", "condition"),
    (fw.BEFORE_CLAUSE, "simple past", "simple past"),
    (fw.WHILE, "progressive", "progressive"),
)
_DURATIVE_VERBS = _action_verbs("work", "cook", "wait", "sit", "stand", "eat", "drink", "dance", "play")
_SIMULTANEOUS_VERBS = _action_verbs("laugh", "sing", "cry", "watch", "look", "listen", "speak", "photograph", "help")
_ACHIEVEMENT_VERBS = _action_verbs(
    "get", "come", "open", "close", "turn", "pick", "wake", "tidy", "call", "buy", "sell", "repair",
    "show", "give", "bring", "send",
)  # fmt: skip
_VERBS_BY_CONJUNCTION: dict[Conjunction, tuple[Verbs, Verbs]] = {
    fw.IF: (clauses.ACTION_VERBS, _ACHIEVEMENT_VERBS),
    fw.AS_SOON_AS: (clauses.ACTION_VERBS, _ACHIEVEMENT_VERBS),
    fw.BEFORE_CLAUSE: (clauses.ACTION_VERBS, clauses.ACTION_VERBS),
    fw.WHILE: (_SIMULTANEOUS_VERBS, _DURATIVE_VERBS),
}
# Type of wh-question -> candidate verbs, and the fields of the ClauseSpec that it sets.
_WH_QUESTIONS: dict[str, tuple[Verbs, dict[str, Any]]] = {
    "where": (_VERBS_WITH_PLACE, {"allow_adjunct": False, "question_adverb": fw.WHERE}),
    "where to": (_GO, {"question_adverb": fw.WHERE_TO}),
    "when": (clauses.ACTION_VERBS, {"tense_policy": "event", "time": "none", "question_adverb": fw.WHEN}),
    "why": (clauses.SIMPLE_CLAUSE_VERBS, {"question_adverb": fw.WHY}),
    "subject": (clauses.ACTION_VERBS, {"subject": InterrogativePronoun(True)}),
    "thing": (_THING_OBJECT_VERBS, {"object": InterrogativePronoun(False)}),
    "which": (_COUNT_OBJECT_VERBS, {"object_policy": "which", "allow_adjunct": False}),
    "dative": (_DATIVE_VERBS, {"object": InterrogativePronoun(True)}),
    "preposition": (_PREPOSITIONAL_VERBS, {"object": InterrogativePronoun(True), "allow_adjunct": False}),
}
_WH_TYPES = tuple(_WH_QUESTIONS)
_KNOW, _BELIEVE, _HOPE, _SAY = verbs.BY_FRAME["that"]
(_ASK,) = verbs.BY_FRAME["whether"]
_CONTENT_CLAUSES: tuple[tuple[Verb, Conjunction, str, bool], ...] = (
    (_KNOW, fw.THAT, "statement", False),
    (_BELIEVE, fw.THAT, "statement", False),
    (_BELIEVE, fw.THAT, "statement", True),
    (_HOPE, fw.THAT, "statement", False),
    (_SAY, fw.THAT, "statement", False),
    (_ASK, fw.WHETHER, "statement", False),
    (_KNOW, fw.WHETHER, "statement", True),
    (_KNOW, fw.WHETHER, "polar", False),
)
_ACQUISITION_VERBS = tuple(verb for verb in _THING_OBJECT_VERBS if verb.english in ("buy", "need"))
# The reason for these actions is a positive property of the object; for sell, a negative one.
_EVALUATED_ACTIONS = frozenset({"buy", "sell", "read", "eat", "drink", "bring", "try"})
_EVALUATED_ACTION_VERBS = tuple(verb for verb in _THING_OBJECT_VERBS if verb.english in _EVALUATED_ACTIONS)
_USE_ACTIONS = frozenset(
    {"read", "eat", "drink", "paint", "photograph", "repair", "try", "give", "show", "lend", "offer"}
)
# Action -> the state that causes it: negated, the action takes although, not because.
_CAUSING_STATES = {"eat": "hungry", "sleep": "tired", "laugh": "happy", "cry": "sad"}


def generate_sentence(chooser: Chooser) -> Sentence:
    """Generate a sentence of any type."""
    sentence_type = chooser.pick(_SENTENCE_TYPES)
    if sentence_type == "statement":
        return Sentence("simple", _generate_statement(chooser))
    if sentence_type == "polar":
        return Sentence("simple", _generate_polar_question(chooser))
    if sentence_type == "wh":
        return Sentence("simple", _generate_wh_question(chooser))
    if sentence_type == "reason":
        return _generate_reason_sentence(chooser)
    if sentence_type == "thing":
        return _generate_thing_sentence(chooser)
    if sentence_type == "sequence":
        return _generate_temporal_sentence(chooser)
    if sentence_type == "content":
        return _generate_content_sentence(chooser)
    if sentence_type == "purpose":
        return _generate_purpose_sentence(chooser)
    return (
        _generate_infinitive_sentence(chooser)
        if sentence_type == "infinitive"
        else _generate_coordinate_sentence(chooser)
    )


# One clause


def _generate_statement(chooser: Chooser) -> Clause:
    """Generate a statement, sometimes with a relative clause on its subject or object."""
    attachment = chooser.pick(("", "", "", "subject", "object"))
    if not attachment:
        return clauses.generate_clause(chooser, clauses.SIMPLE_CLAUSE_VERBS, ClauseSpec("statement"))
    if attachment == "object":
        return _generate_clause_with_object_relative(chooser, "statement")
    clause = clauses.draft_clause(
        chooser, clauses.SIMPLE_CLAUSE_VERBS, ClauseSpec("statement", "non-habitual", subject_policy="restrictable")
    )
    if relative_clauses.allows_relative_clause(clause.subject):
        assert isinstance(clause.subject, NounPhrase)
        clause = clause._replace(subject=relative_clauses.add_relative_clause(chooser, clause.subject, clause))
    return chooser.check_complete(clause)


def _generate_clause_with_object_relative(chooser: Chooser, mood: str) -> Clause:
    """Generate a clause with a relative clause on its object.

    Nothing follows the object in English, because it would attach to the relative clause.
    """
    spec = ClauseSpec(mood, "non-habitual", object_policy="restrictable", allow_adjunct=False, time="first")
    if mood == "polar":
        spec = spec._replace(subject_policy="definite", allow_negation=False)
    clause = clauses.draft_clause(chooser, _VERBS_WITH_OBJECT, spec)
    item = clause.accusative or clause.dative
    if relative_clauses.allows_relative_clause(item):
        assert isinstance(item, NounPhrase)
        item = relative_clauses.add_relative_clause(chooser, item, clause)
        clause = clause._replace(accusative=item) if clause.accusative else clause._replace(dative=item)
    return chooser.check_complete(clause)


def _generate_polar_question(chooser: Chooser) -> Clause:
    if chooser.pick((False, False, True)):
        return _generate_clause_with_object_relative(chooser, "polar")
    return clauses.generate_clause(
        chooser,
        clauses.SIMPLE_CLAUSE_VERBS,
        ClauseSpec("polar", "non-habitual", subject_policy="definite", allow_negation=False),
    )


def _generate_wh_question(chooser: Chooser) -> Clause:
    """Generate a question with where, when, why, who, what or which."""
    candidates, overrides = _WH_QUESTIONS[chooser.pick(_WH_TYPES)]
    spec = ClauseSpec("wh", "non-habitual", subject_policy="definite", allow_negation=False)
    return clauses.generate_clause(chooser, candidates, spec._replace(**overrides))


# Two clauses


def _generate_antecedent(chooser: Chooser) -> Nominal:
    """Generate a person to whom a pronoun in a later clause can refer."""
    if chooser.pick((False, False, True)):
        return chooser.check_complete(chooser.pick(phrases.PERSONAL_PRONOUNS))
    return phrases.generate_noun_phrase(chooser, "person", "antecedent")


def _pronominalise(item: Nominal) -> Nominal:
    """Return the pronoun for a person mentioned before."""
    return phrases.pronoun_for(item) if isinstance(item, NounPhrase) else item


def _join_clauses(
    chooser: Chooser, conjunction: Conjunction, main: tuple[Verbs, ClauseSpec], subordinate: tuple[Verbs, ClauseSpec]
) -> Sentence:
    """Join a main and a subordinate clause with the same subject, in either order."""
    conjunction_first = chooser.pick((False, False, True))
    person = _generate_antecedent(chooser)
    one, two = (subordinate, main) if conjunction_first else (main, subordinate)
    moods = ("dependent", "inverted") if conjunction_first else ("statement", "dependent")
    first = clauses.generate_clause(chooser, one[0], one[1]._replace(mood=moods[0], subject=person))
    second = clauses.generate_clause(chooser, two[0], two[1]._replace(mood=moods[1], subject=_pronominalise(person)))
    return Sentence("subordinate", first, second, conjunction, conjunction_first)


def _generate_reason_sentence(chooser: Chooser) -> Sentence:
    """Generate a sentence with because or although: a state, an obligation or a wish."""
    conjunction = chooser.pick((fw.BECAUSE, fw.ALTHOUGH))
    tense = chooser.pick(("past", "present"))
    main = (clauses.ACTION_VERBS, ClauseSpec("", tense))
    if chooser.pick((False, True)):
        return _correct_conjunction(
            _join_clauses(chooser, conjunction, main, ((verbs.BE,), ClauseSpec("", tense, allow_negation=False)))
        )
    spec = ClauseSpec("", tense + " modal", allow_negation=False, time="none")
    return _join_clauses(chooser, conjunction, main, (_OBLIGATION_VERBS, spec))


def _correct_conjunction(sentence: Sentence) -> Sentence:
    """Correct the conjunction if the state causes the action: not eating although hungry."""
    assert sentence.second is not None
    state, main = (sentence.first, sentence.second) if sentence.conjunction_first else (sentence.second, sentence.first)
    assert state.predicate is not None
    if _CAUSING_STATES.get(main.verb.english) != state.predicate.adjective.english:
        return sentence
    return sentence._replace(conjunction=fw.ALTHOUGH if main.negated else fw.BECAUSE)


def _generate_temporal_sentence(chooser: Chooser) -> Sentence:
    """Generate a sentence with if, as soon as, before or while and matching tenses."""
    conjunction, main, subordinate = chooser.pick(_TENSE_SEQUENCES)
    spec = ClauseSpec("", allow_negation=False, time="none")
    return _join_clauses(
        chooser,
        conjunction,
        (
            _VERBS_BY_CONJUNCTION[conjunction][0],
            spec._replace(tense_policy=main, allow_adjunct=conjunction is not fw.WHILE),
        ),
        (_VERBS_BY_CONJUNCTION[conjunction][1], spec._replace(tense_policy=subordinate)),
    )


def _generate_thing_sentence(chooser: Chooser) -> Sentence:
    """Generate a sentence whose second clause refers to the object of the first as it.

    German has er, sie or es by the gender of the noun. The first clause has no other possible antecedent.
    """
    tense, about_use = chooser.pick(("past", "present")), chooser.pick((False, True))
    person = _generate_antecedent(chooser)
    spec = ClauseSpec("statement", tense, person, allow_negation=False, allow_adjunct=False, allow_events=False)
    spec = spec._replace(object_policy="antecedent")
    first = clauses.generate_clause(chooser, _ACQUISITION_VERBS if about_use else _EVALUATED_ACTION_VERBS, spec)
    thing = first.accusative
    assert isinstance(thing, NounPhrase)
    conjunction = fw.BECAUSE if about_use else chooser.pick((fw.BECAUSE, fw.ALTHOUGH))
    pronoun = phrases.pronoun_for(thing)
    if about_use:
        second_spec = ClauseSpec(
            "dependent", tense + " modal", _pronominalise(person), allow_negation=False, object=pronoun
        )
        second = clauses.generate_clause(
            chooser, _verbs_of_use(thing.noun), second_spec._replace(time="none", allow_adjunct=False)
        )
    else:
        positive = (conjunction is fw.BECAUSE) == (first.verb.english != "sell")
        predicate = clauses.generate_predicate_for(chooser, thing, positive)
        second = chooser.check_complete(Clause("dependent", pronoun, verbs.BE, tense, predicate=predicate))
    return Sentence("subordinate", first, second, conjunction)


@cache
def _verbs_of_use(noun: Noun) -> Verbs:
    """Return the verbs of using a thing or giving it away."""
    return tuple(
        verb
        for verb in verbs.BY_FRAME["accusative"] + verbs.BY_FRAME["ditransitive"]
        if verb.english in _USE_ACTIONS and noun in nouns.BY_TAG[verb.object]
    )


def _generate_content_sentence(chooser: Chooser) -> Sentence:
    """Generate a that or whether clause under a present-tense verb, to avoid tense shift."""
    verb, conjunction, mood, negated = chooser.pick(_CONTENT_CLAUSES)
    subject = _generate_definite_person(
        chooser, phrases.PRONOUNS_IN_QUESTIONS if mood == "polar" else phrases.PERSONAL_PRONOUNS
    )
    first = chooser.check_complete(Clause(mood, subject, verb, negated=negated))
    spec = ClauseSpec("dependent", "event" if verb is _HOPE else "free", excluded_noun=phrases.head_noun(subject))
    spec = spec._replace(allow_negation=not negated and conjunction is fw.THAT)
    second = clauses.generate_clause(chooser, clauses.SIMPLE_CLAUSE_VERBS, spec)
    return Sentence("content", first, second, conjunction)


def _generate_definite_person(chooser: Chooser, pronouns: tuple[Pronoun, ...] = phrases.PERSONAL_PRONOUNS) -> Nominal:
    """Generate a definite person to whom no later pronoun refers."""
    if chooser.pick((False, True)):
        return chooser.check_complete(chooser.pick(pronouns))
    return phrases.generate_noun_phrase(chooser, "person", "definite")


def _generate_purpose_sentence(chooser: Chooser) -> Sentence:
    """Generate a sentence with in order to (um ... zu)."""
    conjunction = chooser.pick((fw.IN_ORDER_TO,))
    tense = chooser.pick(("past", "future", "progressive"))
    spec = ClauseSpec("statement", tense, _generate_antecedent(chooser), allow_negation=False, time="first")
    first = clauses.generate_clause(chooser, _GO, spec)
    return Sentence("purpose", first, _generate_infinitive_clause(chooser, _PURPOSE_VERBS, first.subject), conjunction)


def _generate_infinitive_sentence(chooser: Chooser) -> Sentence:
    """Generate a sentence with try to, forget to or promise to."""
    verb = chooser.pick(verbs.BY_FRAME["infinitive"])
    tense = chooser.pick(("simple past", "progressive") if verb.english == "try" else ("simple past",))
    spec = ClauseSpec("statement", tense, _generate_antecedent(chooser), allow_negation=False, time="first")
    first = clauses.generate_clause(chooser, (verb,), spec)
    return Sentence("infinitive", first, _generate_infinitive_clause(chooser, _INFINITIVE_VERBS, first.subject))


def _generate_infinitive_clause(chooser: Chooser, candidates: Verbs, subject: Nominal | None) -> Clause:
    """Generate an infinitive clause whose objects differ from its implied subject."""
    verb = chooser.pick(candidates)
    spec = ClauseSpec("infinitive", allow_negation=False, time="none", allow_adjunct=False)
    clause = clauses.add_complements(chooser, Clause("infinitive", subject, verb), spec)
    return chooser.check_complete(clause._replace(subject=None))


def _generate_coordinate_sentence(chooser: Chooser) -> Sentence:
    """Generate two main clauses with different subjects, joined by and or but."""
    conjunction = chooser.pick((fw.AND, fw.BUT))
    tense = chooser.pick(("past", "progressive", "future"))
    spec = ClauseSpec("statement", tense, _generate_definite_person(chooser))
    first = clauses.generate_clause(chooser, clauses.ACTION_VERBS, spec)
    other = phrases.generate_noun_phrase(chooser, "person", "definite", phrases.head_noun(first.subject))
    second = clauses.generate_clause(chooser, clauses.ACTION_VERBS, spec._replace(subject=other, time="none"))
    return Sentence("coordinate", first, second, conjunction)
