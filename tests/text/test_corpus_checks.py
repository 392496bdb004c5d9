"""Corpus checks warn about mistakes and only about mistakes."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator

import pytest

from heedful.text.builtin_corpus import BuiltinCorpus
from heedful.text.corpus import Pair
from heedful.text.corpus_checks import (
    SAMPLE,
    PairCounter,
    empty_translations,
    reversed_validation,
    same_sides,
    sample,
    thinned,
)

TRAINING = [Pair(*pair) for pair in BuiltinCorpus("train", 1_500).pairs()]
VALIDATION = [Pair(*pair) for pair in BuiltinCorpus("valid", 60).pairs()]


def reverse(pairs: list[Pair]) -> list[Pair]:
    return [Pair(pair.target, pair.source) for pair in pairs]


def copied(pairs: list[Pair]) -> list[Pair]:
    return [Pair(pair.source, f"{pair.source} ") for pair in pairs]


def counted(training: list[Pair], validation: list[Pair] = VALIDATION, **options: int) -> PairCounter:
    counter = PairCounter(validation, **options)
    assert list(counter.through(training)) == training
    return counter


def test_a_sample_is_bounded_and_thinned() -> None:
    def endless() -> Iterator[Pair]:
        while True:
            yield TRAINING[0]

    assert len(sample(endless())) == SAMPLE
    assert len(thinned(sample(endless()))) == SAMPLE / 10
    assert thinned(VALIDATION) == VALIDATION


def test_the_same_text_on_both_sides() -> None:
    said = same_sides(copied(TRAINING), "training")
    assert said is not None
    assert said.startswith("In 100% of the first 1,500 training pairs, both sides have the same text.")
    mostly = copied(TRAINING[:900]) + TRAINING[900:]
    assert "In 60% of" in (same_sides(mostly, "training") or "")


def test_names_and_numbers_may_be_the_same_on_both_sides() -> None:
    assert same_sides(TRAINING, "training") is None
    assert same_sides(copied(TRAINING[:300]) + TRAINING[300:], "training") is None
    assert same_sides([], "training") is None


def test_validation_text_in_the_other_direction() -> None:
    said = reversed_validation(TRAINING[:200], reverse(VALIDATION))
    assert said is not None
    assert said.endswith("Swap data.valid_source and data.valid_target.")


def test_validation_text_in_the_right_direction() -> None:
    assert reversed_validation(TRAINING[:200], VALIDATION) is None
    assert reversed_validation(reverse(TRAINING[:200]), reverse(VALIDATION)) is None


def test_sides_that_look_alike_have_no_direction() -> None:
    draw = random.Random(1)
    letters = [" ".join(draw.choices("abcdefgh", k=6)) for _ in range(300)]
    pairs = [Pair(line, " ".join(reversed(line.split()))) for line in letters]
    assert reversed_validation(pairs[:200], reverse(pairs[200:])) is None
    assert reversed_validation(copied(TRAINING[:200]), copied(VALIDATION)) is None


def test_a_sound_corpus_gives_no_warning() -> None:
    held_out = [pair for pair in VALIDATION if pair not in TRAINING]
    assert list(counted(list(dict.fromkeys(TRAINING)), held_out).warnings()) == []


def test_validation_pairs_in_the_training_text() -> None:
    [said] = counted(list(dict.fromkeys(TRAINING)) + VALIDATION[:6], VALIDATION).warnings()
    assert said.startswith("6 of 60 validation pairs (10%) are also in the training text.")


def test_white_space_does_not_hide_a_pair() -> None:
    spaced = [Pair(f" {pair.source}", f"{pair.target}\t") for pair in VALIDATION]
    said = list(counted(list(dict.fromkeys(TRAINING)) + spaced).warnings())
    assert said[0].startswith("60 of 60 validation pairs (100%)")


def test_a_single_pair_is_counted_in_the_singular() -> None:
    few, known = counted(VALIDATION[:1], VALIDATION[:1]).warnings()
    assert few.startswith("The training text has only 1 pair. ")
    assert known.startswith("1 of 1 validation pair (100%) is also in the training text.")


def test_a_source_with_another_translation_is_another_pair() -> None:
    others = [Pair(pair.source, f"{pair.target} x") for pair in VALIDATION]
    assert list(counted(list(dict.fromkeys(TRAINING)) + others).warnings()) == []


def test_few_pairs() -> None:
    [said] = counted(list(dict.fromkeys(TRAINING))[:999]).warnings()
    assert said.startswith("The training text has only 999 pairs.")
    assert list(counted(list(dict.fromkeys(TRAINING))[:1_000]).warnings()) == []


def test_duplicates() -> None:
    different = list(dict.fromkeys(TRAINING))[:1_000]
    [said] = counted(different + different[:500]).warnings()
    assert said.startswith("About 33% of the training pairs are duplicates.")
    assert list(counted(different + different[:50]).warnings()) == []


def test_duplicates_of_a_large_corpus_are_estimated_in_bounded_memory() -> None:
    def large() -> Iterator[Pair]:
        for number in range(60_000):
            yield Pair(f"source {number % 30_000}", "target")

    counter = PairCounter([], most=2_000)
    tracemalloc.start()
    for _ in counter.through(large()):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counter.pairs == 60_000
    assert len(counter._counts) <= 2_000
    assert counter.duplicates == pytest.approx(0.5, abs=0.01)  # every pair is there twice, whatever is sampled
    assert peak < 2_000_000


def test_many_empty_translations() -> None:
    said = empty_translations(42, 100)
    assert said is not None
    assert said.startswith("42 of 100 translations are empty. The model may be undertrained:")


def test_few_empty_translations() -> None:
    assert empty_translations(0, 0) is None
    assert empty_translations(0, 100) is None
    assert empty_translations(9, 100) is None
