"""Held-out text: independent of order, disjoint from training, of a useful size."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.errors import CorpusError
from heedful.text.corpus import Corpus, Pair
from heedful.text.held_out import FEWEST, MOST, HeldOut, Remaining, size_for

WriteText = Callable[..., Path]


def pairs(count: int) -> list[Pair]:
    return [Pair(f"Source sentence {number}", f"Target sentence {number}") for number in range(count)]


@pytest.fixture
def held_out(write_text: WriteText) -> Callable[..., HeldOut]:
    """`held_out(pairs, size=0)`: of a corpus in a .tsv file."""

    def of(content: list[Pair], size: int = 0) -> HeldOut:
        path = write_text("train.tsv", [f"{pair.source}\t{pair.target}" for pair in content])
        return HeldOut(Corpus((path,), ()), size)

    return of


@pytest.mark.parametrize(("count", "size"), [(100, 20), (400, 20), (1_000, 50), (20_000, 1_000), (10**6, 1_000)])
def test_a_twentieth_within_limits(count: int, size: int) -> None:
    assert size_for(count) == size
    assert FEWEST <= size <= MOST


def test_every_pair_is_held_out_or_trained_on(held_out: Callable[..., HeldOut]) -> None:
    content = pairs(1_000)
    valid = held_out(content)
    train = Remaining(valid)
    assert (valid.count(), train.count()) == (50, 950)
    assert sorted([*valid.pairs(), *train.pairs()]) == sorted(content)


def test_the_choice_does_not_depend_on_order(held_out: Callable[..., HeldOut]) -> None:
    content = pairs(500)
    expected = list(held_out(content).pairs())
    random.Random(1).shuffle(content)
    assert list(held_out(content).pairs()) == expected


def test_the_choice_does_not_depend_on_how_the_text_is_stored(
    held_out: Callable[..., HeldOut], write_text: WriteText
) -> None:
    content = pairs(300)
    expected = list(held_out(content).pairs())
    parts = content[:100], content[100:]
    sides = [
        tuple(write_text(f"{number}.{side}.gz", [pair[side] for pair in part]) for number, part in enumerate(parts))
        for side in (0, 1)
    ]
    assert list(HeldOut(Corpus(*sides)).pairs()) == expected


def test_a_longer_text_keeps_most_of_the_choice(held_out: Callable[..., HeldOut]) -> None:
    """Hashes decide, not positions: earlier choices stay, or make room for smaller hashes."""
    before = set(held_out(pairs(2_000), size=100).pairs())
    after = set(held_out(pairs(2_200), size=100).pairs())
    assert len(before & after) > 80


def test_no_side_of_a_held_out_pair_is_trained_on(held_out: Callable[..., HeldOut]) -> None:
    """Each source has three targets and each target two sources, in several spellings."""
    content = [
        Pair(spelling.format(number % 400), f"Ziel {number % 600}")
        for number in range(1_200)
        for spelling in ("The  dog {}", "the dog {}")
    ]
    valid = held_out(content)
    train = Remaining(valid)
    key = " ".join
    for side in (0, 1):
        known = {key(pair[side].lower().split()) for pair in valid.pairs()}
        trained = {key(pair[side].lower().split()) for pair in train.pairs()}
        assert known
        assert not known & trained
    assert 0 < train.count() < len(content) - valid.count()  # the control: some pairs had to go


def test_duplicates_are_held_out_once(held_out: Callable[..., HeldOut]) -> None:
    valid = held_out([*pairs(200)] * 5)
    chosen = list(valid.pairs())
    assert len(chosen) == len(set(chosen)) == size_for(1_000)


def test_of_several_spellings_the_choice_does_not_depend_on_order(held_out: Callable[..., HeldOut]) -> None:
    content = [pair for one in pairs(200) for pair in (one, Pair(one.source.upper(), one.target))]
    expected = list(held_out(content).pairs())
    assert list(held_out(content[::-1]).pairs()) == expected


def test_pairs_with_an_empty_side_are_not_held_out(held_out: Callable[..., HeldOut]) -> None:
    empty = [Pair("", f"Ziel {number}") for number in range(100)]
    assert not set(held_out([*empty, *pairs(100)], size=90).pairs()) & set(empty)


@pytest.mark.parametrize("count", [2, 99])
def test_too_few_pairs(held_out: Callable[..., HeldOut], count: int) -> None:
    with pytest.raises(CorpusError, match=rf"{count} distinct pairs: too few to hold out 20 .*at least 100 pairs.*"):
        held_out(pairs(count)).count()


def test_too_few_different_pairs(held_out: Callable[..., HeldOut]) -> None:
    with pytest.raises(CorpusError, match="50 distinct pairs"):
        held_out([*pairs(50)] * 10).count()


def test_a_size_that_the_text_does_not_have(held_out: Callable[..., HeldOut]) -> None:
    with pytest.raises(CorpusError, match="150 distinct pairs: too few to hold out 200"):
        held_out(pairs(150), size=200).count()


def test_nothing_left_to_train_on(held_out: Callable[..., HeldOut]) -> None:
    content = [Pair(pair.source, "Ja.") for pair in pairs(200)]
    with pytest.raises(CorpusError, match="Every pair of the training text has the same source or target"):
        Remaining(held_out(content)).count()
