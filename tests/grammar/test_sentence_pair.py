"""Generated pairs: reproducibility, unique translations, length and splits."""

import math
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest

from heedful.grammar import PHENOMENA, SPLITS, SentencePair, assign_split, make_pair, pairs
from heedful.grammar.nouns import NOUNS
from heedful.grammar.recognizer import derivations
from heedful.grammar.sentence_pair import realise
from heedful.grammar.splits import is_unseen

COUNT = 15_000


@cache
def sample() -> tuple[SentencePair, ...]:
    return tuple(make_pair(0, index) for index in range(COUNT))


def test_make_pair_is_a_pure_function_of_seed_and_index():
    first = [make_pair(3, index) for index in range(50)]
    backwards = [make_pair(3, index) for index in reversed(range(50))]
    assert first == backwards[::-1]
    assert first != [make_pair(4, index) for index in range(50)]


def test_pairs_are_identical_in_a_new_process():
    code = "from heedful.grammar import make_pair\nfor i in range(20): print(ascii(make_pair(5, i)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == [ascii(make_pair(5, index)) for index in range(20)]


def test_one_english_sentence_has_one_translation():
    known: dict[str, SentencePair] = {}
    for pair in sample():
        assert known.setdefault(pair.english, pair) == pair


def test_every_derivation_of_a_sentence_gives_the_same_pair():
    """The grammar has no second translation, not even one that the sample lacks."""
    for pair in sample()[:15]:
        assert {realise(structure) for structure in derivations(pair.english)} == {pair}


def test_sentences_are_well_formatted():
    for pair in sample():
        for text in (pair.english, pair.german):
            assert 3 <= len(text.split()) <= 25
            assert text[0].isupper()
            assert text[-1] in ".?"
            assert "  " not in text
            assert " ," not in text
            assert ",," not in text
        assert (pair.english[-1] == "?") == ("question" in pair.phenomena) == (pair.german[-1] == "?")


def test_phenomena_are_sorted_documented_and_all_occur():
    counts = Counter(name for pair in sample() for name in pair.phenomena)
    assert set(counts) == set(PHENOMENA)
    assert min(counts.values()) > COUNT / 200
    assert all(list(pair.phenomena) == sorted(set(pair.phenomena)) for pair in sample())


def test_long_distance_agreement_occurs():
    distances = Counter(pair.agreement_distance for pair in sample())
    assert min(distances) >= 0
    assert sum(count for distance, count in distances.items() if distance >= 8) > COUNT / 100


def test_grammar_generates_more_than_ten_million_sentences():
    """Birthday estimate: n draws from M equally likely sentences repeat about n²/2M times.

    Sentences are not equally likely; this causes more repetitions, so the estimate is a lower bound.
    """
    longer = [pair.english for pair in sample() if len(pair.english.split()) > 8]
    repeated = len(longer) - len(set(longer))
    assert math.comb(len(longer), 2) / max(repeated, 1) > 10_000_000


def test_splits_are_disjoint():
    split: dict[str, str] = {}
    for pair in sample():
        assert split.setdefault(pair.english, assign_split(pair)) == assign_split(pair)
    assert set(split.values()) == set(SPLITS)


def test_held_out_combinations_occur_only_in_the_unseen_split():
    for pair in sample():
        assert (assign_split(pair) == "unseen") == any(is_unseen(each) for each in pair.combinations)


def test_every_noun_and_construction_occurs_in_training():
    training = [pair for pair in sample() if assign_split(pair) == "train"]
    words = {word for pair in training for word in pair.english.lower().rstrip(".?").replace(",", "").split()}
    for noun in NOUNS:
        assert noun.english in words or noun.english_plural in words
    seen = {combination.partition("+")[2] for pair in training for combination in pair.combinations}
    everywhere = {combination.partition("+")[2] for pair in sample() for combination in pair.combinations}
    assert seen == everywhere
    assert {name for pair in training for name in pair.phenomena} == set(PHENOMENA)


def test_nouns_of_unseen_combinations_occur_in_training():
    unseen = {each for pair in sample() for each in pair.combinations if is_unseen(each)}
    training = {each for pair in sample() if assign_split(pair) == "train" for each in pair.combinations}
    assert len(unseen) >= 15
    assert {each.partition("+")[0] for each in unseen} <= {each.partition("+")[0] for each in training}


@pytest.mark.parametrize("split", SPLITS)
def test_pairs_are_unique_and_belong_to_the_requested_split(split):
    some = list(pairs(split, 60, seed=9))
    assert len({pair.english for pair in some}) == 60
    assert {assign_split(pair) for pair in some} == {split}
    assert some[:20] == list(pairs(split, 20, seed=9))


def test_zero_pairs_requested():
    assert list(pairs("train", 0)) == []


def test_unknown_split_is_rejected():
    with pytest.raises(ValueError, match="'dev'"):
        next(pairs("dev", 1))
