"""The likeliest next tokens: log-softmax and top-k over the vocabulary."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from heedful.config import EOS, PAD

NEVER_SAID = slice(PAD, EOS)  # padding, unknown, start
_BLOCK = 64  # rows whose log-probabilities stay in a core's cache
_GROUP = 32  # tokens per group
_FEW_TOKENS = 1_024  # below this vocabulary size, groups do not pay


def likeliest(logits_RV: Tensor, at_limit_R: Tensor | None, count: int) -> tuple[Tensor, Tensor]:
    """Return the log-probabilities and ids of the `count` likeliest tokens of each row, best first.

    Tokens that are never said do not count; a row at its limit may only end. The sum of a softmax includes all of
    them. There are fewer than `count` if the vocabulary is smaller.
    """
    if logits_RV.device.type != "cpu":
        return _block(logits_RV, at_limit_R, count)
    starts = range(0, len(logits_RV), _BLOCK)
    limits = [None if at_limit_R is None else at_limit_R[start : start + _BLOCK] for start in starts]
    blocks = [
        _block(logits_RV[start : start + _BLOCK], limit_R, count) for start, limit_R in zip(starts, limits, strict=True)
    ]
    if len(blocks) == 1:
        return blocks[0]
    return torch.cat([values for values, _ in blocks]), torch.cat([tokens for _, tokens in blocks])


def _block(logits_RV: Tensor, at_limit_R: Tensor | None, count: int) -> tuple[Tensor, Tensor]:
    log_p_RV = logits_RV.log_softmax(dim=1, dtype=torch.float32)
    log_p_RV[:, NEVER_SAID] = -math.inf
    if at_limit_R is not None:
        end_R = log_p_RV[at_limit_R, EOS]
        log_p_RV[at_limit_R] = -math.inf
        log_p_RV[at_limit_R, EOS] = end_R
    return top(log_p_RV, count)


def top(x_RV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return what `x_RV.topk(count)` returns, in less time on a CPU: values equal to another may change places.

    The `count` largest values lie in the `count` groups with the largest maxima, and among the last few columns, which
    are in no group. Group g has the columns g, g + G, g + 2G, …: so maxima are taken of whole rows of numbers at once.
    """
    R, V = x_RV.shape
    G = V // _GROUP
    if V < _FEW_TOKENS or count > G or x_RV.device.type != "cpu":
        return _topk(x_RV, min(count, V))
    grouped = G * _GROUP
    _, groups_RC = _topk(x_RV[:, :grouped].view(R, _GROUP, G).amax(dim=1), count)
    columns = (groups_RC[:, :, None] + torch.arange(0, grouped, G)).view(R, -1)
    if grouped < V:
        columns = torch.cat([columns, torch.arange(grouped, V).expand(R, -1)], dim=1)
    values, places = _topk(x_RV.gather(1, columns), count)
    return values, columns.gather(1, places)


def _topk(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    values, places = x.topk(count, dim=1)
    return values, places
