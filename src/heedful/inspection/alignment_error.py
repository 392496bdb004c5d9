"""Alignment error rate of attention heads against a known word alignment."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

Link = tuple[int, int]  # target word, source word


def alignment_error_rate(found: Collection[Link], gold: Collection[Link]) -> float:
    """Return 1 - 2 |A ∩ G| / (|A| + |G|) (Och and Ney 2003, with sure links only)."""
    if not found and not gold:
        return 0.0
    return 1.0 - 2 * len(set(found) & set(gold)) / (len(set(found)) + len(set(gold)))


def head_alignment_errors(weights_NHTS: Tensor, gold: Sequence[Link]) -> list[list[float]]:
    """Return the error rate of every head, from weights between words.

    Each target word that has gold links is linked to the source word with the largest weight. The others are not
    scored: the grammar aligns content words, and says nothing about articles and punctuation.
    """
    rows = sorted({target for target, _ in gold})
    attended: list[list[list[int]]] = weights_NHTS[:, :, torch.tensor(rows)].argmax(dim=-1).tolist()
    return [
        [alignment_error_rate(list(zip(rows, columns, strict=True)), gold) for columns in layer] for layer in attended
    ]
