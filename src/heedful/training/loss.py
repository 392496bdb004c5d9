"""The loss (section 5.4): cross-entropy with label smoothing, and the likelihood that perplexity is of."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from heedful.config import PAD
from heedful.data.batches import Batch
from heedful.model.transformer import Transformer


class Loss(NamedTuple):
    """Sums over real target pieces, end symbols included; padding counts for nothing."""

    smoothed: Tensor  # what is minimised
    nll: Tensor  # negative log-likelihood, unsmoothed


def smoothed_cross_entropy(logits_PV: Tensor, labels_P: Tensor, label_smoothing: float) -> Loss:
    """Cross-entropy with (1 - ε) on the label and ε spread uniformly over the vocabulary, summed over P pieces.

    -Σ q log p = log Z - (1 - ε)·logit(label) - ε·mean(logits): no V-wide copy of log-probabilities is needed.
    """
    logits_PV = logits_PV.float() if logits_PV.dtype.itemsize < 4 else logits_PV
    log_z_P = logits_PV.logsumexp(dim=-1)
    nll_P = log_z_P - logits_PV.gather(1, labels_P[:, None])[:, 0]
    uniform_P = log_z_P - logits_PV.mean(dim=-1)
    smoothed = (1 - label_smoothing) * nll_P.sum() + label_smoothing * uniform_P.sum()
    return Loss(smoothed, nll_P.sum())


def batch_loss(model: Transformer, batch: Batch, label_smoothing: float) -> Loss:
    """Teacher forcing: one parallel pass, logits only where there is a piece to predict."""
    states_BTD = model.decode(batch.target_in_BT, model.encode(batch.source_BS))
    real_BT = batch.target_out_BT != PAD
    logits_PV = model.embedding.logits(states_BTD[real_BT])
    return smoothed_cross_entropy(logits_PV, batch.target_out_BT[real_BT], label_smoothing)


def perplexity(nll_per_piece: float) -> float:
    """e^nll, of the unsmoothed likelihood a piece; infinite where it overflows."""
    return math.exp(nll_per_piece) if nll_per_piece < 700 else math.inf
