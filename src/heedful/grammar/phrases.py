"""Choosing noun phrases, pronouns and prepositional phrases that make sense."""

from __future__ import annotations

from functools import cache

from heedful.grammar import adjectives, nouns
from heedful.grammar import function_words as fw
from heedful.grammar.choices import Choose
from heedful.grammar.structure import Nominal, NounPhrase, PrepositionalPhrase, Pronoun
from heedful.grammar.words import Adjective, Determiner, Noun, Preposition

Shell = tuple[bool, Determiner]  # plural or not, and the determiner

PEOPLE = tuple(
    Pronoun(agreement, gender)
    for agreement, gender in (("1s", ""), ("2s", ""), ("3s", "m"), ("3s", "f"), ("1p", ""), ("3p", ""))
)
ASKED_PEOPLE = PEOPLE[1:]  # nobody asks what I do
_SAME_PERSON = {"1s": ("1s", "1p"), "1p": ("1s", "1p"), "2s": ("2s",), "3p": ("3p",), "3s": ()}
# A restrictive relative clause picks one out of many: odd after my, this and all names of one person.
OPEN = frozenset({fw.THE, fw.A, fw.EVERY, fw.TWO, fw.THREE, fw.NONE, fw.NO_A, fw.NO_ANY})
_UNSAID = {
    "old": ("boy", "girl", "child", "beach", "lake", "river", "island"),
    "young": ("grandmother", "grandfather"),
    "dirty": ("picture",),
    "friendly": ("friend",),
}
_HOME = frozenset({"garden", "kitchen", "room", "office", "house"})


def _shells(singular: tuple[Determiner, ...], plural: tuple[Determiner, ...]) -> tuple[Shell, ...]:
    return tuple((False, each) for each in singular) + tuple((True, each) for each in plural)


def _all_shells(noun: Noun) -> tuple[Shell, ...]:
    """Number and determiner, the usual ones more often."""
    if "kin" in noun.tags:
        return _shells(fw.POSSESSIVES * 2, () if "single" in noun.tags else fw.POSSESSIVES)
    if noun.mass:
        return _shells((fw.THE,) * 3 + (fw.NONE,) * 5 + (fw.THIS,), ())
    if noun.kind in ("place", "room"):
        owned = fw.POSSESSIVES if noun.english in _HOME else ()
        return _shells((fw.THE,) * 8 + (fw.A, fw.THIS, *owned), ())
    if noun.kind == "event":
        return _shells((fw.THE,) * 5 + (fw.THIS, fw.A), ())
    plural = (fw.THE,) * 3 + (fw.THESE, fw.TWO, fw.THREE, fw.NONE)
    if noun.kind == "person":
        return _shells((fw.THE,) * 7 + (fw.A,) * 3 + (fw.THIS, fw.EVERY), plural)
    if noun.tags & {"transport", "wild"}:  # nobody's own
        return _shells((fw.THE,) * 7 + (fw.A,) * 3 + (fw.THIS,), plural)
    return _shells((fw.THE,) * 7 + (fw.A,) * 4 + (fw.THIS, *fw.POSSESSIVES), (*plural, *fw.POSSESSIVES[:4]))


def _fits(noun: Noun, shell: Shell, policy: str) -> bool:
    plural, determiner = shell
    if policy == "definite":
        return determiner.definite and determiner is not fw.EVERY
    if policy == "indefinite":
        return not determiner.definite
    if policy == "one":
        return not plural and determiner is not fw.EVERY
    if policy == "open":
        return determiner in OPEN
    if policy == "marked":  # the start of the phrase can be heard
        return not plural or determiner is not fw.NONE
    if policy == "antecedent":
        # he and she are sure for these only: English has no fixed pronoun for the girl or the child
        return determiner is not fw.EVERY and (plural or noun.kind != "person" or noun.gender != "n")
    return True


@cache
def shells(noun: Noun, policy: str) -> tuple[Shell, ...]:
    """What may stand before a noun.

    The policy is any, definite, indefinite, one, open, marked, antecedent, negative or which.
    """
    if policy == "negative":
        if "kin" in noun.tags:
            return ()
        if noun.mass:
            return ((False, fw.NO_ANY),)
        if noun.kind in ("place", "room", "event"):
            return ((False, fw.NO_A),)
        return ((False, fw.NO_A), (False, fw.NO_A), (True, fw.NO_ANY))
    if policy == "which":
        return () if noun.mass else ((False, fw.WHICH),)
    return tuple(shell for shell in _all_shells(noun) if _fits(noun, shell, policy))


@cache
def nouns_for(tag: str, avoid: Noun | None, policy: str) -> tuple[Noun, ...]:
    """The nouns with a tag that have a form under the policy, without one already used in the clause."""
    return tuple(noun for noun in nouns.BY_TAG[tag] if noun is not avoid and shells(noun, policy))


def unfit(adjective: Adjective, noun: Noun) -> bool:
    """The same stem twice (der junge Junge), or what would sound odd: an old child."""
    if noun.german.lower().startswith(adjective.stem):
        return True
    return noun.english in _UNSAID.get(adjective.english, ())


@cache
def adjective_sets(noun: Noun, contrary: str = "") -> tuple[tuple[Adjective, ...], ...]:
    """No adjective half of the time; else one that fits and is not the contrary one, or one before a colour."""
    fitting = tuple(
        each for each in adjectives.BY_KIND[noun.kind] if not unfit(each, noun) and each.english != contrary
    )
    colours = adjectives.BY_KIND["colour"] if noun.kind in adjectives.COLOURED else ()
    single: list[tuple[Adjective, ...]] = [(each,) for each in (*fitting, *colours)]
    # A second adjective is a colour: the one order that is the same in both languages, and takes no comma.
    double: list[tuple[Adjective, ...]] = [(first, colour) for first in fitting for colour in colours]
    if double:
        single *= len(colours)
    plain: list[tuple[Adjective, ...]] = [()] * (len(single) + len(double))
    return tuple(plain + single + double)


def noun_phrase(
    choose: Choose,
    tag: str,
    policy: str = "any",
    avoid: Noun | None = None,
    plain: bool = False,
    contrary: str = "",
) -> NounPhrase:
    """A noun phrase without relative clause; a plain one has no adjectives, none has the contrary one."""
    return described(choose, choose.pick(nouns_for(tag, avoid, policy)), policy, plain, contrary)


def described(choose: Choose, noun: Noun, policy: str = "any", plain: bool = False, contrary: str = "") -> NounPhrase:
    """A given noun with number, determiner and adjectives."""
    plural, determiner = choose.pick(shells(noun, policy))
    chosen: tuple[Adjective, ...] = () if plain else choose.pick(adjective_sets(noun, contrary))
    return choose.settle(NounPhrase(noun, plural, determiner, chosen))


@cache
def other_people(agreement: str, gender: str) -> tuple[Pronoun, ...]:
    """Pronouns that can be the object beside this subject without becoming reflexive."""
    barred = _SAME_PERSON[agreement]
    return tuple(
        each
        for each in PEOPLE
        if each.agreement not in barred and not (agreement == each.agreement == "3s" and each.gender == gender)
    )


def person(choose: Choose, subject: Nominal | None, policy: str = "any", tag: str = "person") -> Nominal:
    """A person as an object or after a preposition: a noun phrase or, now and then, a pronoun."""
    if policy not in ("negative", "open") and tag == "person" and choose.pick((False, False, False, True)):
        if isinstance(subject, Pronoun):
            return choose.settle(choose.pick(other_people(subject.agreement, subject.gender)))
        return choose.settle(choose.pick(PEOPLE))
    return noun_phrase(choose, tag, policy, noun_of(subject))


def other_person(choose: Choose, avoid: Noun) -> Nominal:
    """A definite person, not of the noun given: the subject of a relative clause."""
    if choose.pick((False, False, True)):
        return choose.settle(choose.pick(PEOPLE))
    return noun_phrase(choose, "person", "definite", avoid)


def noun_of(item: Nominal | None) -> Noun | None:
    """The noun of a nominal, if it has one."""
    return item.noun if isinstance(item, NounPhrase) else None


def pronoun_for(phrase: NounPhrase) -> Pronoun:
    """The pronoun that stands for a noun phrase in a later clause.

    English he, she and it follow the person or thing; German follows the noun's gender. The two meet here: for
    people the genders coincide (see the antecedent policy), for things English says it whatever the gender.
    """
    if phrase.plural:
        return Pronoun("3p", "", phrase)
    return Pronoun("3s", phrase.noun.gender, phrase)


# Where one can be: the preposition is the place's own (at the station: am Bahnhof).
_AN = {"beach": fw.ON_BEACH}
_AUF = {"island": fw.ON_ISLAND}
PLACES: tuple[tuple[Preposition, Noun], ...] = (
    *((fw.IN, noun) for noun in nouns.BY_TAG["in"]),
    *((_AN.get(noun.english, fw.AT), noun) for noun in nouns.BY_TAG["an"]),
    *((_AUF.get(noun.english, fw.AT_MARKET), noun) for noun in nouns.BY_TAG["auf"]),
    *((fw.NEAR, noun) for noun in nouns.BY_TAG["building"]),
)
_GOALS = tuple((fw.INTO, noun) for noun in nouns.BY_TAG["enter"]) + tuple(
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
    "place": ((fw.ONTO, "surface"), (fw.PUT_UNDER, "surface"), (fw.PUT_NEXT_TO, "surface")),
}


def at_place(choose: Choose, places: tuple[tuple[Preposition, Noun], ...], policy: str = "any") -> PrepositionalPhrase:
    """A preposition with one of the places that it fits."""
    preposition, noun = choose.pick(places)
    return PrepositionalPhrase(preposition, described(choose, noun, policy))


def with_person(choose: Choose, options: tuple[Preposition, ...], subject: Nominal | None) -> PrepositionalPhrase:
    """A preposition with somebody: with him, for my aunt."""
    return PrepositionalPhrase(choose.pick(options), person(choose, subject, "definite"))
