"""The lexicon tables are complete and consistent."""

from collections import Counter

from heedful.grammar import clauses, nouns, phrases
from heedful.grammar.abstract_syntax import NounPhrase
from heedful.grammar.adjectives import ADJECTIVES, BY_KIND
from heedful.grammar.nouns import BY_TAG, NOUNS
from heedful.grammar.verbs import VERBS


def test_lexicon_has_at_least_220_content_words():
    assert len(NOUNS) + len(VERBS) + len(ADJECTIVES) >= 220


def test_noun_entries_are_complete():
    for noun in NOUNS:
        assert noun.gender in "mfn"
        assert noun.german[0].isupper()
        assert noun.german_plural[0].isupper()
        assert noun.english.islower()
        assert noun.kind in BY_KIND
        assert phrases.number_determiner_options(noun, "any")
        if noun.weak_form:
            assert noun.gender == "m"
            assert noun.weak_form == noun.german_plural


def test_english_singular_and_plural_differ():
    assert all(noun.english != noun.english_plural for noun in NOUNS)


def test_english_noun_forms_are_unique():
    forms = Counter(form for noun in NOUNS for form in (noun.english, noun.english_plural))
    assert max(forms.values()) == 1


def test_verb_entries_are_complete():
    for verb in VERBS:
        assert verb.auxiliary in ("haben", "sein")
        assert verb.subject in BY_TAG
        assert verb.object == "-" or verb.object in BY_TAG or verb.frame in ("motion", "position")
        assert verb.german_participle
        if verb.prefix:
            assert verb.german_participle.startswith(verb.prefix)
        assert (verb.frame == "prepositional") == (verb.preposition is not None)


def test_english_verb_and_frame_determine_the_german_verb():
    german: dict[tuple[str, ...], set[str]] = {}
    for verb in VERBS:
        key = (verb.english, verb.particle, verb.english_preposition, verb.frame)
        german.setdefault(key, set()).add(verb.prefix + verb.german)
    assert all(len(names) == 1 for names in german.values())


def test_every_place_has_exactly_one_locative_preposition():
    for noun in NOUNS:
        if noun.kind in ("place", "room"):
            assert len(noun.tags & {"in", "an", "auf"}) == 1


def test_adjectives_are_unique_and_have_a_kind():
    assert len({adjective.english for adjective in ADJECTIVES}) == len(ADJECTIVES)
    assert all(adjective.kinds for adjective in ADJECTIVES)


def test_derived_noun_tags_contain_only_listed_nouns():
    assert {noun for tag in nouns.BY_TAG.values() for noun in tag} == set(NOUNS)


class FirstOptionChooser:
    """Picks the first option and fails if there are none."""

    def pick(self, options):
        return options[0]


def test_every_noun_phrase_has_a_compatible_predicate():
    for noun in NOUNS:
        polarities = (None, True, False) if noun.tags & {"purchasable", "drinkable", "readable"} else (None,)
        plural, determiner = phrases.number_determiner_options(noun, "any")[0]
        for adjectives in set(phrases.adjective_options(noun)):
            for positive in polarities:
                clauses.generate_predicate_for(
                    FirstOptionChooser(), NounPhrase(noun, plural, determiner, adjectives), positive
                )
