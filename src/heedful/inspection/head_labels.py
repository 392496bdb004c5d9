"""Labels that say what an attention head does on one sentence pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

_MAJORITY = 0.5  # of a head's weight, for a label that names what it attends to
_SHARP, _DIFFUSE = 0.35, 0.8  # of the largest possible entropy
_OFFSETS = (-2, -1, 0, 1, 2)
_OFFSET_NAMES = {-2: "2 tokens back", -1: "previous token", 0: "same position", 1: "next token", 2: "2 tokens ahead"}


class HeadLabel(NamedTuple):
    """What a head does. Shares are means over the rows of the weight that lies there."""

    label: str
    entropy: float  # 0: each row attends to one token; 1: evenly to all
    offset: int | None  # relative position with the largest share; None in cross-attention
    offset_share: float
    end_share: float  # on the end symbol, or in the decoder on the start symbol
    same_share: float  # on tokens with the same text, over the rows that have one; cross-attention only


def label_heads(kind: str, weights_NHTS: Tensor, rows: Sequence[str], columns: Sequence[str]) -> list[list[HeadLabel]]:
    """Return a label for every layer and head."""
    same_TS = torch.tensor([[row == column for column in columns] for row in rows])
    same_TS[-1] = False  # the end symbol is not a word
    return [[_label(kind, head.double(), same_TS) for head in layer] for layer in weights_NHTS]


def _label(kind: str, weights_TS: Tensor, same_TS: Tensor) -> HeadLabel:
    entropy = normalised_entropy(weights_TS, causal=kind == "decoder")
    end_share = float(weights_TS[:, 0 if kind == "decoder" else -1].mean())
    offset, offset_share = (None, 0.0) if kind == "cross" else _largest_offset(weights_TS)
    has_same = same_TS.any(dim=1)
    same_share = 0.0
    if kind == "cross" and bool(has_same.any()):
        same_share = float((weights_TS * same_TS).sum(dim=1)[has_same].mean())
    shares = {_OFFSET_NAMES.get(offset or 0, ""): offset_share, "same word": same_share}
    shares["start symbol" if kind == "decoder" else "end symbol"] = end_share
    best = max(shares, key=lambda name: shares[name])
    label = best if shares[best] >= _MAJORITY else _by_entropy(entropy)
    return HeadLabel(label, entropy, offset, offset_share, end_share, same_share)


def _by_entropy(entropy: float) -> str:
    return "sharp" if entropy < _SHARP else "diffuse" if entropy > _DIFFUSE else "mixed"


def normalised_entropy(weights_TS: Tensor, causal: bool) -> float:
    """Return the mean entropy of the rows, each divided by its largest possible value."""
    T, S = weights_TS.shape
    entropies = -(weights_TS * weights_TS.clamp_min(1e-30).log()).sum(dim=1)
    largest = [math.log(row + 1 if causal else S) for row in range(T)]
    shares = [float(one) / most for one, most in zip(entropies, largest, strict=True) if most > 0]
    return sum(shares) / len(shares) if shares else 0.0


def _largest_offset(weights_TS: Tensor) -> tuple[int, float]:
    """Return the offset column - row with the largest mean weight over rows that have it."""
    T = weights_TS.shape[0]
    shares = {k: float(weights_TS.diagonal(k).mean()) for k in _OFFSETS if abs(k) < T}
    best = max(shares, key=lambda k: shares[k])
    return best, shares[best]
