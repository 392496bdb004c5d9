"""Token-budget batching: full batches, none over budget, every item once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heedful.data.token_budget import batch_boundaries, batches_by_length

LENGTHS = st.lists(st.integers(1, 30), max_size=60)


@given(lengths=LENGTHS, budget=st.integers(1, 100))
def test_batches_by_length_hold_every_item_once_longest_first(lengths: list[int], budget: int) -> None:
    batches = list(batches_by_length(lengths, budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    longest = [max(lengths[index] for index in batch) for batch in batches]
    assert longest == sorted(longest, reverse=True)
    for number, batch in enumerate(batches):
        assert len(batch) == 1 or len(batch) * longest[number] <= budget
        if number + 1 < len(batches):  # one more item would have exceeded the budget
            assert (len(batch) + 1) * longest[number] > budget


@given(lengths=LENGTHS, budget=st.integers(1, 100))
def test_counts_of_equal_lengths_match_single_items(lengths: list[int], budget: int) -> None:
    distinct = sorted(set(lengths))
    by_run = batch_boundaries(distinct, [lengths.count(length) for length in distinct], budget)
    assert by_run == batch_boundaries(sorted(lengths), [1] * len(lengths), budget)


def test_a_sentence_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    assert list(batches_by_length([3, 50, 3], 10)) == [[1], [0, 2]]
