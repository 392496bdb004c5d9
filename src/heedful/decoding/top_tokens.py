"""The likeliest next tokens: log-softmax and top-k over the vocabulary."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from heedful.config import EOS, PAD

SUPPRESSED = slice(PAD, EOS)  # padding, unknown, start


def top_tokens(logits_RV: Tensor, at_limit_R: Tensor | None, count: int) -> tuple[Tensor, Tensor]:
    """Return log-probabilities and ids of the `count` likeliest tokens per row, best first.

    Suppressed tokens do not count; a row at its limit may only end. The sum of a softmax includes all of
    them. There are fewer than `count` if the vocabulary is smaller.
    """
    log_p_RV = logits_RV.log_softmax(dim=1, dtype=torch.float32)
    log_p_RV[:, SUPPRESSED] = -math.inf
    if at_limit_R is not None:
        end_R = log_p_RV[at_limit_R, EOS]
        log_p_RV[at_limit_R] = -math.inf
        log_p_RV[at_limit_R, EOS] = end_R
    values, tokens = log_p_RV.topk(min(count, log_p_RV.shape[1]), dim=1)
    return values, tokens
