"""Generation of plausible noun phrases, pronouns and prepositional phrases."""

from __future__ import annotations

from functools import cache

from heedful.grammar import adjectives, nouns
from heedful.grammar import function_words as fw
from heedful.grammar.abstract_syntax import Nominal, NounPhrase, PrepositionalPhrase, Pronoun
from heedful.grammar.chooser import Chooser
from heedful.grammar.lexical_entries import Adjective, Determiner, Noun, Preposition

NumberDeterminer = tuple[bool, Determiner]  # whether it is plural, and the determiner

PERSONAL_PRONOUNS = tuple(
    Pronoun(agreement, gender)
    for agreement, gender in (("1s", ""), ("2s", ""), ("3s", "m"), ("3s", "f"), ("1p", ""), ("3p", ""))
)
PRONOUNS_IN_QUESTIONS = PERSONAL_PRONOUNS[1:]  # without I: speakers do not ask about themselves
_COREFERENT = {"1s": ("1s", "1p"), "1p": ("1s", "1p"), "2s": ("2s",), "3p": ("3p",), "3s": ()}
# A restrictive relative clause selects from several referents, so it is odd after my, this or a unique noun.
RELATIVE_CLAUSE_DETERMINERS = frozenset(
    {fw.THE, fw.A, fw.EVERY, fw.TWO, fw.THREE, fw.ZERO_ARTICLE, fw.NEGATED_A, fw.NEGATED_ANY}
)
_ODD_COMBINATIONS = {
    "old": ("boy", "girl", "child", "beach", "lake", "river", "island"),
    "young": ("grandmother", "grandfather"),
    "dirty": ("picture",),
    "friendly": ("friend",),
}
_POSSESSABLE_PLACES = frozenset({"garden", "kitchen", "room", "office", "house"})


def _combine(singular: tuple[Determiner, ...], plural: tuple[Determiner, ...]) -> tuple[NumberDeterminer, ...]:
    return tuple((False, each) for each in singular) + tuple((True, each) for each in plural)


def _all_options(noun: Noun) -> tuple[NumberDeterminer, ...]:
    """Return numbers with determiners, weighted by how common they are."""
    if "kin" in noun.tags:
        return _combine(fw.POSSESSIVES * 2, () if "singular-only" in noun.tags else fw.POSSESSIVES)
    if noun.mass:
        return _combine((fw.THE,) * 3 + (fw.ZERO_ARTICLE,) * 5 + (fw.THIS,), ())
    if noun.kind in ("place", "room"):
        owned = fw.POSSESSIVES if noun.english in _POSSESSABLE_PLACES else ()
        return _combine((fw.THE,) * 8 + (fw.A, fw.THIS, *owned), ())
    if noun.kind == "event":
        return _combine((fw.THE,) * 5 + (fw.THIS, fw.A), ())
    plural = (fw.THE,) * 3 + (fw.THESE, fw.TWO, fw.THREE, fw.ZERO_ARTICLE)
    if noun.kind == "person":
        return _combine((fw.THE,) * 7 + (fw.A,) * 3 + (fw.THIS, fw.EVERY), plural)
    if noun.tags & {"transport", "wild"}:  # without possessives
        return _combine((fw.THE,) * 7 + (fw.A,) * 3 + (fw.THIS,), plural)
    return _combine((fw.THE,) * 7 + (fw.A,) * 4 + (fw.THIS, *fw.POSSESSIVES), (*plural, *fw.POSSESSIVES[:4]))


def _is_allowed(noun: Noun, option: NumberDeterminer, policy: str) -> bool:
    plural, determiner = option
    if policy == "definite":
        return determiner.definite and determiner is not fw.EVERY
    if policy == "indefinite":
        return not determiner.definite
    if policy == "singular":
        return not plural and determiner is not fw.EVERY
    if policy == "restrictable":
        return determiner in RELATIVE_CLAUSE_DETERMINERS
    if policy == "no-bare-plural":  # the determiner marks where the phrase starts
        return not plural or determiner is not fw.ZERO_ARTICLE
    if policy == "antecedent":
        # English has no fixed pronoun for the girl or the child
        return determiner is not fw.EVERY and (plural or noun.kind != "person" or noun.gender != "n")
    return True


@cache
def number_determiner_options(noun: Noun, policy: str) -> tuple[NumberDeterminer, ...]:
    """Return the combinations of number and determiner that a noun allows.

    The policy is any, definite, indefinite, singular, restrictable (allows a relative clause), no-bare-plural,
    antecedent, negative or which.
    """
    if policy == "negative":
        if "kin" in noun.tags:
            return ()
        if noun.mass:
            return ((False, fw.NEGATED_ANY),)
        if noun.kind in ("place", "room", "event"):
            return ((False, fw.NEGATED_A),)
        return ((False, fw.NEGATED_A), (False, fw.NEGATED_A), (True, fw.NEGATED_ANY))
    if policy == "which":
        return () if noun.mass else ((False, fw.WHICH),)
    return tuple(option for option in _all_options(noun) if _is_allowed(noun, option, policy))


@cache
def candidate_nouns(tag: str, excluded_noun: Noun | None, policy: str) -> tuple[Noun, ...]:
    """Return the nouns with a tag that the policy allows, without the excluded noun."""
    return tuple(
        noun for noun in nouns.BY_TAG[tag] if noun is not excluded_noun and number_determiner_options(noun, policy)
    )


def is_odd(adjective: Adjective, noun: Noun) -> bool:
    """Return whether the pair repeats a stem (der junge Junge) or sounds odd (an old child)."""
    if noun.german.lower().startswith(adjective.stem):
        return True
    return noun.english in _ODD_COMBINATIONS.get(adjective.english, ())


@cache
def adjective_options(noun: Noun, excluded_adjective: str = "") -> tuple[tuple[Adjective, ...], ...]:
    """Return weighted adjective sequences: half empty, the rest one or adjective + colour."""
    fitting = tuple(
        each for each in adjectives.BY_KIND[noun.kind] if not is_odd(each, noun) and each.english != excluded_adjective
    )
    colours = adjectives.BY_KIND["colour"] if noun.kind in adjectives.COLOURABLE_KINDS else ()
    single: list[tuple[Adjective, ...]] = [(each,) for each in (*fitting, *colours)]
    # Only colours come second: this order is the same in both languages and needs no comma.
    double: list[tuple[Adjective, ...]] = [(first, colour) for first in fitting for colour in colours]
    if double:
        single *= len(colours)
    empty: list[tuple[Adjective, ...]] = [()] * (len(single) + len(double))
    return tuple(empty + single + double)


def generate_noun_phrase(
    chooser: Chooser,
    tag: str,
    policy: str = "any",
    excluded_noun: Noun | None = None,
    without_adjectives: bool = False,
    excluded_adjective: str = "",
) -> NounPhrase:
    """Generate a noun phrase without a relative clause."""
    return expand_noun(
        chooser,
        chooser.pick(candidate_nouns(tag, excluded_noun, policy)),
        policy,
        without_adjectives,
        excluded_adjective,
    )


def expand_noun(
    chooser: Chooser, noun: Noun, policy: str = "any", without_adjectives: bool = False, excluded_adjective: str = ""
) -> NounPhrase:
    """Generate a noun phrase for a given noun: choose number, determiner and adjectives."""
    plural, determiner = chooser.pick(number_determiner_options(noun, policy))
    chosen: tuple[Adjective, ...] = (
        () if without_adjectives else chooser.pick(adjective_options(noun, excluded_adjective))
    )
    return chooser.check_complete(NounPhrase(noun, plural, determiner, chosen))


@cache
def non_reflexive_pronouns(agreement: str, gender: str) -> tuple[Pronoun, ...]:
    """Return the object pronouns that are not reflexive with this subject."""
    coreferent = _COREFERENT[agreement]
    return tuple(
        each
        for each in PERSONAL_PRONOUNS
        if each.agreement not in coreferent and not (agreement == each.agreement == "3s" and each.gender == gender)
    )


def generate_person(chooser: Chooser, subject: Nominal | None, policy: str = "any", tag: str = "person") -> Nominal:
    """Generate a person as an object: a noun phrase or, one time in four, a pronoun."""
    if policy not in ("negative", "restrictable") and tag == "person" and chooser.pick((False, False, False, True)):
        if isinstance(subject, Pronoun):
            return chooser.check_complete(chooser.pick(non_reflexive_pronouns(subject.agreement, subject.gender)))
        return chooser.check_complete(chooser.pick(PERSONAL_PRONOUNS))
    return generate_noun_phrase(chooser, tag, policy, head_noun(subject))


def generate_other_person(chooser: Chooser, excluded_noun: Noun) -> Nominal:
    """Generate a definite person other than the excluded noun."""
    if chooser.pick((False, False, True)):
        return chooser.check_complete(chooser.pick(PERSONAL_PRONOUNS))
    return generate_noun_phrase(chooser, "person", "definite", excluded_noun)


def head_noun(item: Nominal | None) -> Noun | None:
    """Return the head noun of a nominal, or None for pronouns."""
    return item.noun if isinstance(item, NounPhrase) else None


def pronoun_for(phrase: NounPhrase) -> Pronoun:
    """Return the pronoun that refers to a noun phrase in a later clause.

    English pronouns follow the referent, German ones the gender of the noun. For people the two coincide (see the
    antecedent policy); for things English always has it.
    """
    if phrase.plural:
        return Pronoun("3p", "", phrase)
    return Pronoun("3s", phrase.noun.gender, phrase)


# Each place selects its own locative preposition (at the station: am Bahnhof).
_AN = {"beach": fw.ON_BEACH}
_AUF = {"island": fw.ON_ISLAND}
PLACES: tuple[tuple[Preposition, Noun], ...] = (
    *((fw.IN, noun) for noun in nouns.BY_TAG["in"]),
    *((_AN.get(noun.english, fw.AT), noun) for noun in nouns.BY_TAG["an"]),
    *((_AUF.get(noun.english, fw.AT_MARKET), noun) for noun in nouns.BY_TAG["auf"]),
    *((fw.NEAR, noun) for noun in nouns.BY_TAG["building"]),
)
_GOALS = tuple((fw.INTO, noun) for noun in nouns.BY_TAG["enterable"]) + tuple(
    (fw.TO, noun) for noun in nouns.BY_TAG["goal"]
)
GOALS: dict[str, tuple[tuple[Preposition, Noun], ...]] = {
    "go": _GOALS,
    "come": _GOALS + tuple((fw.FROM, noun) for noun in nouns.BY_TAG["goal"]),
    "run": _GOALS
    + tuple((fw.THROUGH, noun) for noun in nouns.BY_TAG["outside"])
    + tuple((fw.AROUND, noun) for noun in nouns.BY_TAG["building"]),
}
POSITIONS: dict[str, tuple[tuple[Preposition, str], ...]] = {
    "lie": ((fw.ON, "surface"), (fw.UNDER, "surface"), (fw.NEXT_TO, "surface"), (fw.IN, "container")),
    "sit": ((fw.ON, "seat"), (fw.NEXT_TO, "person")),
    "stand": ((fw.IN_FRONT_OF, "building"), (fw.BEHIND, "building"), (fw.NEXT_TO, "building")),
    "place": ((fw.ON_DIRECTION, "surface"), (fw.UNDER_DIRECTION, "surface"), (fw.NEXT_TO_DIRECTION, "surface")),
}


def generate_place_phrase(
    chooser: Chooser, places: tuple[tuple[Preposition, Noun], ...], policy: str = "any"
) -> PrepositionalPhrase:
    """Generate a prepositional phrase with one of the given places."""
    preposition, noun = chooser.pick(places)
    return PrepositionalPhrase(preposition, expand_noun(chooser, noun, policy))


def generate_person_phrase(
    chooser: Chooser, options: tuple[Preposition, ...], subject: Nominal | None
) -> PrepositionalPhrase:
    """Generate a prepositional phrase with a person: with him, for my aunt."""
    return PrepositionalPhrase(chooser.pick(options), generate_person(chooser, subject, "definite"))
