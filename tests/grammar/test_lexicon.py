"""The tables are complete and consistent."""

from collections import Counter

from heedful.grammar import clauses, nouns, phrases
from heedful.grammar.adjectives import ADJECTIVES, BY_KIND
from heedful.grammar.nouns import BY_TAG, NOUNS
from heedful.grammar.structure import NounPhrase
from heedful.grammar.verbs import VERBS


def test_there_are_enough_words():
    assert len(NOUNS) + len(VERBS) + len(ADJECTIVES) >= 220


def test_every_noun_is_complete():
    for noun in NOUNS:
        assert noun.gender in "mfn"
        assert noun.german[0].isupper()
        assert noun.german_plural[0].isupper()
        assert noun.english.islower()
        assert noun.kind in BY_KIND
        assert phrases.shells(noun, "any")
        if noun.weak:
            assert noun.gender == "m"
            assert noun.weak == noun.german_plural


def test_english_tells_singular_from_plural():
    assert all(noun.english != noun.english_plural for noun in NOUNS)


def test_no_noun_is_listed_twice_or_shares_a_form():
    forms = Counter(form for noun in NOUNS for form in (noun.english, noun.english_plural))
    assert max(forms.values()) == 1


def test_every_verb_is_complete():
    for verb in VERBS:
        assert verb.auxiliary in ("haben", "sein")
        assert verb.subject in BY_TAG
        assert verb.object == "-" or verb.object in BY_TAG or verb.frame in ("motion", "position")
        assert verb.german_participle
        if verb.prefix:
            assert verb.german_participle.startswith(verb.prefix)
        assert (verb.frame == "prepositional") == (verb.preposition is not None)


def test_verbs_of_one_english_name_and_frame_have_one_german_name():
    german: dict[tuple[str, ...], set[str]] = {}
    for verb in VERBS:
        key = (verb.english, verb.particle, verb.english_preposition, verb.frame)
        german.setdefault(key, set()).add(verb.prefix + verb.german)
    assert all(len(names) == 1 for names in german.values())


def test_every_place_has_one_preposition_of_rest():
    for noun in NOUNS:
        if noun.kind in ("place", "room"):
            assert len(noun.tags & {"in", "an", "auf"}) == 1


def test_adjectives_have_distinct_names_and_some_kind():
    assert len({adjective.english for adjective in ADJECTIVES}) == len(ADJECTIVES)
    assert all(adjective.kinds for adjective in ADJECTIVES)


def test_wider_classes_are_made_of_listed_nouns():
    assert {noun for tag in nouns.BY_TAG.values() for noun in tag} == set(NOUNS)


class First:
    """Takes the first option, and fails where there is none."""

    def pick(self, options):
        return options[0]


def test_something_is_always_left_to_say_of_a_thing_whatever_adjectives_it_has():
    for noun in NOUNS:
        goods = (None, True, False) if noun.tags & {"ware", "drinkable", "readable"} else (None,)
        plural, determiner = phrases.shells(noun, "any")[0]
        for adjectives in set(phrases.adjective_sets(noun)):
            for good in goods:
                clauses.said_of(First(), NounPhrase(noun, plural, determiner, adjectives), good)
