"""Batches against their definition: every pair once an epoch, within the budget, a pure function of their number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.config import BOS, EOS, PAD, DataConfig
from heedful.data.batches import Batches, collate, cut, order_by_length, pad
from heedful.data.store import write_store
from heedful.text.corpus import Corpus, Pair
from heedful.text.tokenizer import learn

BUDGET = 200
MULTI30K = Path(__file__).parents[3] / "shared" / "data" / "multi30k"


@pytest.fixture
def batches(store) -> Batches:
    return Batches(store, BUDGET, seed=1)


def epoch(batches: Batches, number: int) -> list[list[int]]:
    begin = number * batches.per_epoch
    return [batches.indices(i).tolist() for i in range(begin, begin + batches.per_epoch)]


def shapes(batches: Batches, number: int) -> list[tuple[int, int, int]]:
    return sorted(
        (len(batch), batches.source_lengths[batch].max(), batches.target_lengths[batch].max())
        for batch in epoch(batches, number)
    )


@pytest.mark.parametrize("number", [0, 1, 17])
def test_every_pair_is_seen_exactly_once_an_epoch(batches, store, number):
    seen = [index for batch in epoch(batches, number) for index in batch]
    assert sorted(seen) == list(range(len(store)))


def test_both_padded_sides_are_within_the_budget(batches):
    for number in range(2 * batches.per_epoch):
        batch = batches[number]
        assert batch.source_BS.numel() <= BUDGET
        assert batch.target_out_BT.numel() <= BUDGET


def test_a_budget_below_the_longest_pair_gives_it_a_batch_of_its_own(store):
    batches = Batches(store, 5, seed=1)
    for number in range(batches.per_epoch):
        batch = batches[number]
        assert len(batch.lines) == 1 or max(batch.source_BS.numel(), batch.target_out_BT.numel()) <= 5


def test_a_batch_is_a_function_of_its_number(store):
    """Whatever was asked before, and from a fresh object."""
    one = Batches(store, BUDGET, seed=3)
    numbers = [0, 5, 3 * one.per_epoch + 2, 5, 1, one.per_epoch, one.per_epoch - 1, 0]
    for number in numbers:
        fresh = Batches(store, BUDGET, seed=3)
        assert one.indices(number).tolist() == fresh.indices(number).tolist()
        assert torch.equal(one[number].source_BS, fresh[number].source_BS)
        assert torch.equal(one[number].target_in_BT, fresh[number].target_in_BT)
        assert one[number].lines == fresh[number].lines


def test_batches_do_not_change_from_one_version_to_the_next(batches):
    """A run that is continued must meet the batches it would have met."""
    total = np.random.default_rng((1, 2, 0)).permutation(batches.per_epoch)
    shuffled = np.random.default_rng((1, 1, 0)).permutation(1_000)
    key = order_by_length(batches.source_lengths, batches.target_lengths)[1]
    order = sorted(shuffled.tolist(), key=lambda index: key[index])
    starts = cut(*(lengths[order] for lengths in (batches.source_lengths, batches.target_lengths)), BUDGET)
    expected = [order[starts[batch] : starts[batch + 1]] for batch in total]
    assert epoch(batches, 0) == expected


def test_seeds_and_epochs_differ(store, batches):
    first, second = epoch(batches, 0), epoch(batches, 1)
    other = epoch(Batches(store, BUDGET, seed=2), 0)
    assert first != second
    assert first != other
    # Not only the order of the batches: other sentences come together.
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}


def test_batches_are_not_in_order_of_length(batches):
    longest = [batches.target_lengths[batch].max() for batch in epoch(batches, 0)]
    assert longest != sorted(longest)


def test_every_epoch_has_the_same_shapes(batches):
    assert shapes(batches, 0) == shapes(batches, 1) == shapes(batches, 5)


def test_tokens_are_the_real_target_pieces(batches):
    for number in range(10):
        batch = batches[number]
        assert batches.tokens(number) == batch.tokens == int((batch.target_out_BT != PAD).sum())


@pytest.mark.parametrize("number", [0, 3])
def test_padding_share_against_counting(batches, number):
    real = padded = 0
    for place in range(batches.per_epoch):
        batch = batches[number * batches.per_epoch + place]
        for side in (batch.source_BS, batch.target_out_BT):
            real += int((side != PAD).sum())
            padded += side.numel()
    assert batches.padding() == pytest.approx(1 - real / padded, abs=1e-12)


@pytest.mark.parametrize("budget", [50, 200, 1_000])
def test_worst_has_most_padded_target_positions(store, budget):
    batches = Batches(store, budget, seed=1)
    most = max(batches[number].target_out_BT.numel() for number in range(batches.per_epoch))
    assert batches.worst().target_out_BT.numel() == most


def test_asking_for_the_worst_changes_nothing(store, batches):
    expected = Batches(store, BUDGET, seed=1).indices(4).tolist()
    batches.indices(batches.per_epoch)
    batches.worst()
    assert batches.indices(4).tolist() == expected


LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=60)


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    source, target = zip(*pairs, strict=True)
    return np.array(source, np.int32), np.array(target, np.int32)


def naive_cut(pairs: list[tuple[int, int]], budget: int) -> list[int]:
    starts, batch = [0], []
    for index, pair in enumerate(pairs):
        wider = [*batch, pair]
        longest = max(length for pair in wider for length in pair)
        if batch and longest * len(wider) > budget:
            starts.append(index)
            wider = [pair]
        batch = wider
    return [*starts, len(pairs)]


@settings(max_examples=200)
@given(LENGTHS, st.one_of(st.integers(1, 300), st.sampled_from([40, 60, 80, 120, 240])), st.booleans())
@example([(2, 2)] * 5, 4, True)  # the budget itself is allowed
@example([(3, 2), (2, 2), (2, 2)], 5, True)
def test_cut_against_a_plain_loop(pairs, budget, in_order):
    if in_order:
        pairs = sorted(pairs, key=lambda pair: pair[1])
    assert cut(*columns(pairs), budget).tolist() == naive_cut(pairs, budget)


@given(LENGTHS)
def test_order_puts_alike_lengths_together(pairs):
    order, key = order_by_length(*columns(pairs))
    assert sorted(order.tolist()) == list(range(len(pairs)))
    assert key[order].tolist() == sorted(key.tolist())
    sorted_pairs = [pairs[index] for index in order]
    assert [target for _, target in sorted_pairs] == sorted(target for _, target in pairs)
    for length in {target for _, target in pairs}:
        sources = [source for source, target in sorted_pairs if target == length]
        assert sources == sorted(sources, reverse=length % 2 == 1)
    # One key for one pair of lengths, so that the cuts are those of every epoch.
    assert len(set(key.tolist())) == len(set(pairs))


def test_collate_shifts_and_pads(tmp_path, tokenizer):
    texts = [Pair("bada kilo meto", "me"), Pair("me", "kilo bada kilo"), Pair("", "left out"), Pair("bada", "bada")]
    store = write_store(tmp_path / "s", texts, tokenizer, DataConfig(max_ratio=100.0), {})
    batch = collate(store, [2, 0, 1])
    rows = [texts[3], texts[0], texts[1]]
    assert batch.lines == (4, 1, 2)
    longest = [max(len(tokenizer.encode(side)) for side in column) + 1 for column in zip(*rows, strict=True)]
    for row, (source, target) in enumerate(rows):
        source_ids, target_ids = tokenizer.encode(source), tokenizer.encode(target)
        assert batch.source_BS[row].tolist() == padded([*source_ids, EOS], longest[0])
        assert batch.target_in_BT[row].tolist() == padded([BOS, *target_ids], longest[1])
        assert batch.target_out_BT[row].tolist() == padded([*target_ids, EOS], longest[1])
    assert batch.tokens == sum(len(tokenizer.encode(target)) + 1 for _, target in rows)
    assert {batch.source_BS.dtype, batch.target_in_BT.dtype, batch.target_out_BT.dtype} == {torch.int64}


def padded(ids: list[int], length: int) -> list[int]:
    return ids + [PAD] * (length - len(ids))


@given(st.lists(st.lists(st.integers(4, 99), max_size=9), min_size=1, max_size=9))
def test_pad(sentences):
    longest = max(map(len, sentences))
    assert pad(sentences).tolist() == [padded(ids, longest) for ids in sentences]


def test_batch_moves_to_a_device_whole(batches):
    batch = batches[0]
    moved = batch.to(torch.device("meta"))
    assert {moved.source_BS.device.type, moved.target_in_BT.device.type, moved.target_out_BT.device.type} == {"meta"}
    assert (moved.tokens, moved.lines) == (batch.tokens, batch.lines)


@pytest.mark.skipif(not MULTI30K.is_dir(), reason="Multi30k is not beside this checkout (docs/data.md)")
def test_padding_on_multi30k_is_under_five_percent(tmp_path):
    corpus = Corpus.of((str(MULTI30K / "train.en.gz"),), (str(MULTI30K / "train.de.gz"),), "training")
    tokenizer = learn((text for pair in corpus.pairs() for text in pair), 8_000, threads=2)
    store = write_store(tmp_path / "s", corpus.pairs(), tokenizer, DataConfig(), {}, threads=2)
    assert store.report.kept > 28_900
    assert Batches(store, 4_096, seed=1).padding() < 0.05
