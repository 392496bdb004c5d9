"""Word-level attention: examples by hand, and invariants."""

import pytest
import torch

from heedful.views.word_attention import group_tokens, word_weights


def test_words_start_at_space_marks_and_punctuation_and_eos_are_separate() -> None:
    words, owners = group_tokens(["▁Der", "▁Hu", "nd", "▁bell", "t", ".", "</s>"])
    assert words == ["Der", "Hund", "bellt", ".", "</s>"]
    assert owners == [0, 1, 1, 2, 2, 3, 4]


def test_a_first_token_without_a_space_mark_begins_a_word() -> None:
    assert group_tokens(["ab", "c", "▁d"]) == (["abc", "d"], [0, 0, 1])


def test_weights_are_summed_over_attended_and_averaged_over_attending_tokens() -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    merged = word_weights(weights, [0, 0], [0, 1, 1])
    assert merged.tolist() == [pytest.approx([0.3, 0.7])]


def test_rows_still_sum_to_one() -> None:
    weights = torch.rand(7, 9, generator=torch.Generator().manual_seed(1)).softmax(dim=-1)
    merged = word_weights(weights, [0, 0, 1, 2, 2, 2, 3], [0, 1, 1, 2, 3, 3, 3, 4, 5])
    assert merged.shape == (4, 6)
    torch.testing.assert_close(merged.sum(dim=1), torch.ones(4))
