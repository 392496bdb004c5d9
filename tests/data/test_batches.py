"""Batches by definition: every pair once per epoch, in budget, a function of the number."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.config import BOS, EOS, PAD, DataConfig
from heedful.data.batches import Batches, assemble, collate, pad, unpadded
from heedful.data.length_buckets import LengthBuckets, length_buckets, shapes, write_order
from heedful.data.store import write_store
from heedful.data.token_budget import bucket_boundaries
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


def shapes_of(store, batches: Batches, number: int) -> list[tuple[int, int, int]]:
    source, target = store.lengths("source"), store.lengths("target")
    return sorted((len(batch), source[batch].max(), target[batch].max()) for batch in epoch(batches, number))


@pytest.mark.parametrize("number", [0, 1, 17])
def test_every_pair_is_seen_exactly_once_per_epoch(batches, store, number):
    seen = [index for batch in epoch(batches, number) for index in batch]
    assert sorted(seen) == list(range(len(store)))


def test_both_padded_sides_fit_the_budget(batches):
    for number in range(2 * batches.per_epoch):
        batch = batches[number]
        assert batch.source_BS.numel() <= BUDGET
        assert batch.target_out_BT.numel() <= BUDGET


def test_pair_longer_than_the_budget_is_a_batch_of_its_own(store):
    batches = Batches(store, 5, seed=1)
    for number in range(batches.per_epoch):
        batch = batches[number]
        assert len(batch.lines) == 1 or max(batch.source_BS.numel(), batch.target_out_BT.numel()) <= 5


def test_a_batch_is_a_function_of_its_number(store):
    """The result depends neither on earlier calls nor on the object."""
    one = Batches(store, BUDGET, seed=3)
    numbers = [0, 5, 3 * one.per_epoch + 2, 5, 1, one.per_epoch, one.per_epoch - 1, 0]
    for number in numbers:
        fresh = Batches(store, BUDGET, seed=3)
        assert one.indices(number).tolist() == fresh.indices(number).tolist()
        assert torch.equal(one[number].source_BS, fresh[number].source_BS)
        assert torch.equal(one[number].target_in_BT, fresh[number].target_in_BT)
        assert one[number].lines == fresh[number].lines


def test_batches_do_not_change_from_one_version_to_the_next(store, batches):
    """A resumed run must see the same batches, also with a newer version."""
    lengths = list(zip(store.lengths("target").tolist(), store.lengths("source").tolist(), strict=True))
    alike = [[i for i in range(len(store)) if lengths[i] == pair] for pair in sorted(set(lengths), key=up_and_down)]
    order = [
        index
        for bucket, members in enumerate(alike)
        for index in np.random.default_rng((1, 1, 0, bucket)).permutation(members).tolist()
    ]
    starts = naive_cut([lengths[index] for index in order], BUDGET)
    places = np.random.default_rng((1, 2, 0)).permutation(batches.per_epoch)
    assert epoch(batches, 0) == [order[starts[batch] : starts[batch + 1]] for batch in places]


def up_and_down(pair: tuple[int, int]) -> tuple[int, int]:
    target, source = pair
    return target, -source if target % 2 else source


def test_seeds_and_epochs_differ(store, batches):
    first, second = epoch(batches, 0), epoch(batches, 1)
    other = epoch(Batches(store, BUDGET, seed=2), 0)
    assert first != second
    assert first != other
    # Not only the order of the batches: other sentences come together.
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}


def test_batches_are_shuffled_across_lengths(store, batches):
    longest = [store.lengths("target")[batch].max() for batch in epoch(batches, 0)]
    assert longest != sorted(longest)


def test_every_epoch_has_the_same_shapes(store, batches):
    assert shapes_of(store, batches, 0) == shapes_of(store, batches, 1) == shapes_of(store, batches, 5)


def test_tokens_exclude_padding(batches):
    for number in range(10):
        batch = batches[number]
        assert batches.tokens(number) == batch.tokens == int((batch.target_out_BT != PAD).sum())


@pytest.mark.parametrize("number", [0, 3])
def test_padding_fraction_matches_a_count(batches, number):
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


def test_bidirectional_batches_alternate_in_direction(store, batches):
    """A reversed batch is a batch with swapped sides; none after `bidirectional` batches."""
    bidirectional = Batches(store, BUDGET, seed=1, bidirectional=6)
    for number in range(10):
        one, other = batches[number], bidirectional[number]
        if number in (1, 3, 5):
            one = assemble(unpadded(one.target_out_BT), unpadded(one.source_BS), one.lines)
        assert torch.equal(other.source_BS, one.source_BS)
        assert torch.equal(other.target_in_BT, one.target_in_BT)
        assert torch.equal(other.target_out_BT, one.target_out_BT)
        assert (other.tokens, other.lines) == (one.tokens, one.lines)


def test_worst_batch_may_be_a_reversed_one(tmp_path, tokenizer):
    texts = [Pair("bada kilo meto " * 3, "me"), Pair("me", "kilo bada")]
    store = write_store(tmp_path / "s", texts, tokenizer, DataConfig(max_ratio=100.0), {})
    long, short = (max(store.lengths(side)) for side in ("source", "target"))
    assert long > short
    assert Batches(store, 1, seed=1).worst().target_out_BT.shape == (1, short)
    assert Batches(store, 1, seed=1, bidirectional=10).worst().target_out_BT.shape == (1, long)


def test_worst_has_no_side_effects(store, batches):
    expected = Batches(store, BUDGET, seed=1).indices(4).tolist()
    batches.indices(batches.per_epoch)
    batches.worst()
    assert batches.indices(4).tolist() == expected


LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=60)


def order_by_length(pairs: list[tuple[int, int]], chunk: int = 1_000) -> tuple[list[int], LengthBuckets]:
    chunks = [np.array(pairs[at : at + chunk], np.int32).T for at in range(0, len(pairs), chunk)]
    buckets, file = length_buckets(chunks), io.BytesIO()
    write_order(chunks, buckets, file)
    return np.frombuffer(file.getvalue(), np.int64).tolist(), buckets


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
@given(LENGTHS, st.one_of(st.integers(1, 300), st.sampled_from([40, 60, 80, 120, 240])))
@example([(2, 2)] * 5, 4)  # the budget itself is allowed
@example([(3, 2), (2, 2), (2, 2)], 5)
def test_boundaries_and_shapes_match_plain_loops(pairs, budget):
    order, buckets = order_by_length(pairs)
    sorted_pairs = [pairs[index] for index in order]
    starts = bucket_boundaries(buckets, budget)
    assert starts.tolist() == naive_cut(sorted_pairs, budget)
    batches = [sorted_pairs[begin:end] for begin, end in itertools.pairwise(starts)]
    found = shapes(buckets, starts)
    assert found.pairs_N.tolist() == [len(batch) for batch in batches]
    assert found.source_N.tolist() == [max(source for source, _ in batch) for batch in batches]
    assert found.target_N.tolist() == [max(target for _, target in batch) for batch in batches]
    assert found.tokens_N.tolist() == [sum(target for _, target in batch) for batch in batches]


@given(LENGTHS, st.integers(1, 30))
def test_order_does_not_depend_on_the_chunk_size(pairs, chunk):
    whole, buckets = order_by_length(pairs)
    parts, same_buckets = order_by_length(pairs, chunk)
    assert parts == whole
    assert [column.tolist() for column in same_buckets] == [column.tolist() for column in buckets]


def test_sort_keys_distinguish_the_largest_lengths():
    pairs = [(2**31 - 1, 2**31 - 1), (2**31 - 2, 2**31 - 1), (1, 2**31 - 2), (2**31 - 1, 1)]
    order, buckets = order_by_length(pairs)
    assert order == [3, 2, 0, 1]
    assert list(zip(*(column.tolist() for column in buckets), strict=True)) == [(*pairs[i], 1) for i in order]


@given(LENGTHS)
def test_order_groups_similar_lengths(pairs):
    order, buckets = order_by_length(pairs)
    assert order == sorted(range(len(pairs)), key=lambda i: (pairs[i][1], pairs[i][0] * (-1) ** pairs[i][1]))
    sorted_pairs = [pairs[index] for index in order]
    assert [target for _, target in sorted_pairs] == sorted(target for _, target in pairs)
    for length in {target for _, target in pairs}:
        sources = [source for source, target in sorted_pairs if target == length]
        assert sources == sorted(sources, reverse=length % 2 == 1)
    named = zip(*(column.tolist() for column in buckets), strict=True)
    assert [(source, target) for source, target, count in named for _ in range(count)] == sorted_pairs
    assert len(buckets.count_G) == len(set(pairs))


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


def test_batch_moves_to_a_device_completely(batches):
    batch = batches[0]
    moved = batch.to(torch.device("meta"))
    assert {moved.source_BS.device.type, moved.target_in_BT.device.type, moved.target_out_BT.device.type} == {"meta"}
    assert (moved.tokens, moved.lines) == (batch.tokens, batch.lines)


@pytest.mark.skipif(not MULTI30K.is_dir(), reason="Multi30k is not beside this checkout (docs/reference/data.md)")
def test_padding_on_multi30k_is_under_five_percent(tmp_path):
    corpus = Corpus.of((str(MULTI30K / "train.en.gz"),), (str(MULTI30K / "train.de.gz"),), "training")
    tokenizer = learn((text for pair in corpus.pairs() for text in pair), 8_000, threads=2)
    store = write_store(tmp_path / "s", corpus.pairs(), tokenizer, DataConfig(), {}, threads=2)
    assert store.report.kept > 28_900
    assert Batches(store, 4_096, seed=1).padding() < 0.05
