"""Labels of heads whose behaviour is known by construction."""

from __future__ import annotations

import math

import pytest
import torch

from heedful.inspection.head_labels import label_heads, normalised_entropy

TOKENS = ["▁a", "▁b", "▁c", "</s>"]


def one(kind: str, weights: torch.Tensor, rows: list[str] = TOKENS, columns: list[str] = TOKENS) -> str:
    return label_heads(kind, weights[None, None], rows, columns)[0][0].label


def shifted(offset: int) -> torch.Tensor:
    """Attend to the token at an offset, and at the edges evenly."""
    weights = torch.full((4, 4), 0.25)
    for row in range(4):
        if 0 <= row + offset < 4:
            weights[row] = torch.eye(4)[row + offset]
    return weights


@pytest.mark.parametrize(
    ("offset", "label"), [(-2, "2 tokens back"), (-1, "previous token"), (0, "same position"), (1, "next token")]
)
def test_position_heads(offset: int, label: str) -> None:
    assert one("encoder", shifted(offset)) == label


def test_end_and_start_symbol() -> None:
    assert one("encoder", torch.eye(4)[[3, 3, 3, 3]]) == "end symbol"
    assert one("cross", torch.eye(4)[[3, 3, 3, 3]]) == "end symbol"
    assert one("decoder", torch.eye(4)[[0, 0, 0, 0]]) == "start symbol"


def test_same_word_in_cross_attention() -> None:
    weights = torch.full((4, 4), 0.25)
    weights[0] = torch.eye(4)[1]
    assert one("cross", weights, rows=["▁b", "▁x", "▁y", "</s>"]) == "same word"
    assert one("cross", weights, rows=["▁z", "▁x", "▁y", "</s>"]) != "same word"


def test_unnamed_heads_are_labelled_by_entropy() -> None:
    assert one("encoder", torch.full((4, 4), 0.25)) == "diffuse"
    assert one("cross", torch.eye(4)[[1, 0, 2, 1]]) == "sharp"
    half = torch.tensor([0.5, 0.5, 0.0, 0.0])
    assert one("cross", half.expand(4, 4)) == "mixed"


def test_normalised_entropy() -> None:
    assert normalised_entropy(torch.full((2, 4), 0.25), causal=False) == pytest.approx(1.0)
    assert normalised_entropy(torch.eye(4), causal=False) == pytest.approx(0.0)
    expected = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1)) / math.log(2)
    assert normalised_entropy(torch.tensor([[0.9, 0.1]]), causal=False) == pytest.approx(expected)
    causal = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    assert normalised_entropy(causal, causal=True) == pytest.approx(1.0)
