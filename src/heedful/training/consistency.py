"""SimCut's consistency loss (Gao et al. 2022): predict the same with some words cut.

Not in the paper. The loss is that of the whole input plus `training.consistency` times KL(whole ‖ cut), where the cut
input keeps only the positions of some source and target tokens. Both sides get gradients. A step needs a second forward
and backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from heedful.config import ModelConfig, TrainingConfig
from heedful.data.batches import Batch
from heedful.decoding.likelihood import teacher_forced_states
from heedful.model.complexity import logits_flops, stacks_flops
from heedful.model.transformer import Transformer
from heedful.training.loss import Loss, states_loss, with_bias_column

CHUNK = 512  # tokens whose distributions are compared at a time


def consistent_loss(model: Transformer, batch: Batch, training: TrainingConfig) -> Loss:
    """Return the loss of the whole input plus the weighted divergence, and the input's nll."""
    whole_PD, labels_P = teacher_forced_states(model, batch)
    with _words_cut(model, training.cutoff):
        cut_PD, _ = teacher_forced_states(model, batch)
    loss = states_loss(model, whole_PD, labels_P, training.label_smoothing)
    (whole_PD, weight_VD), (cut_PD, _) = (with_bias_column(states, model.embedding) for states in (whole_PD, cut_PD))
    divergence = kl_divergence(whole_PD, cut_PD, weight_VD)
    return Loss(loss.smoothed + training.consistency * divergence, loss.nll)


def kl_divergence(whole_PD: Tensor, cut_PD: Tensor, weight_VD: Tensor) -> Tensor:
    """Return Σ p · (log p - log q) over P tokens and the vocabulary.

    p comes from the whole input and q from the cut input. The logits of a chunk are computed again in the backward
    pass, so those of all tokens are never in memory.
    """
    total = whole_PD.new_zeros((), dtype=torch.promote_types(weight_VD.dtype, torch.float32))
    for whole_CD, cut_CD in zip(torch.split(whole_PD, CHUNK), torch.split(cut_PD, CHUNK), strict=True):
        total = total + checkpoint(_chunk_divergence, whole_CD, cut_CD, weight_VD, use_reentrant=False)
    return total


def _chunk_divergence(whole_CD: Tensor, cut_CD: Tensor, weight_VD: Tensor) -> Tensor:
    log_p_CV, log_q_CV = (_log_probabilities(states_CD, weight_VD) for states_CD in (whole_CD, cut_CD))
    return F.kl_div(log_q_CV, log_p_CV, reduction="sum", log_target=True)


def _log_probabilities(states_CD: Tensor, weight_VD: Tensor) -> Tensor:
    """Return log-probabilities, in float32 or more."""
    logits_CV = F.linear(states_CD, weight_VD.to(states_CD.dtype))
    return logits_CV.to(torch.promote_types(weight_VD.dtype, torch.float32)).log_softmax(dim=-1)


@contextmanager
def _words_cut(model: Transformer, probability: float) -> Iterator[None]:
    """Zero embeddings with this probability instead of that of word dropout."""
    before = model.embedding.word_dropout
    model.embedding.word_dropout = probability
    try:
        yield
    finally:
        model.embedding.word_dropout = before


def consistency_flops(config: ModelConfig, B: int, S: int, T: int, tokens: int, checkpointed: bool = False) -> int:
    """Count what the divergence adds to a training step.

    This is the second pass through the stacks, and the logits of both passes, computed twice and differentiated once.
    """
    stacks = stacks_flops(config, B, S, T)
    return 3 * stacks + stacks * checkpointed + 8 * logits_flops(config, tokens)
