"""Word-level attention: group tokens into words and aggregate their weights."""

from __future__ import annotations

import torch
from torch import Tensor

_SPACE, _END = "\u2581", "</s>"


def group_tokens(tokens: list[str]) -> tuple[list[str], list[int]]:
    """Return the words, and the index of each token's word.

    A word starts at a space mark; punctuation and EOS are words of their own.
    """
    words: list[str] = []
    owners = []
    alone = True
    for token in tokens:
        stands_alone = token == _END or not any(character.isalnum() for character in token)
        if alone or stands_alone or token.startswith(_SPACE):
            words.append("")
        words[-1] += token.replace(_SPACE, "")
        owners.append(len(words) - 1)
        alone = stands_alone
    return words, owners


def word_weights(weights_TS: Tensor, row_owners: list[int], column_owners: list[int]) -> Tensor:
    """Return weights between words: sums over attended, means over attending tokens.

    Rows still sum to 1.
    """
    columns = torch.zeros(weights_TS.shape[0], max(column_owners) + 1)
    columns.index_add_(1, torch.tensor(column_owners), weights_TS)
    rows = torch.zeros(max(row_owners) + 1, columns.shape[1])
    rows.index_add_(0, torch.tensor(row_owners), columns)
    return rows / torch.bincount(torch.tensor(row_owners))[:, None]
