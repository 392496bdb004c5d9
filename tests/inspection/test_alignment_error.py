"""Alignment error rate on small cases that can be counted."""

from __future__ import annotations

import pytest
import torch

from heedful.inspection.alignment_error import alignment_error_rate, head_alignment_errors


@pytest.mark.parametrize(
    ("found", "gold", "expected"),
    [
        ([(0, 0), (1, 1)], [(0, 0), (1, 1)], 0.0),
        ([(0, 1), (1, 0)], [(0, 0), (1, 1)], 1.0),
        ([(0, 0), (1, 0)], [(0, 0), (1, 1)], 0.5),
        ([(0, 0)], [(0, 0), (0, 1), (0, 2)], 0.5),  # 1 - 2 · 1 / (1 + 3)
        ([], [], 0.0),
    ],
)
def test_rate(found: list[tuple[int, int]], gold: list[tuple[int, int]], expected: float) -> None:
    assert alignment_error_rate(found, gold) == pytest.approx(expected)


def test_a_head_links_each_scored_word_to_its_largest_weight() -> None:
    right = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.1, 0.8, 0.1]])
    wrong = right.roll(1, dims=1)
    gold = [(0, 0), (2, 1)]  # word 1 has no gold link and is not scored
    assert head_alignment_errors(torch.stack([right, wrong])[None], gold) == [[0.0, 1.0]]
