"""Teacher forcing: the likelihood of given targets, from one parallel pass."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.config import PAD
from heedful.data.batches import Batch
from heedful.model.transformer import Transformer


def teacher_forced_states(model: Transformer, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the decoder's states and labels for the P target tokens without padding.

    The decoder reads the target shifted right (section 3.1).
    """
    states_BTD = model.decode(batch.target_in_BT, model.encode(batch.source_BS))
    real_BT = batch.target_out_BT != PAD
    return states_BTD[real_BT], batch.target_out_BT[real_BT]


@torch.inference_mode()
def log_likelihoods(model: Transformer, batch: Batch) -> list[float]:
    """Return the log-probability of each target given its source."""
    states_PD, labels_P = teacher_forced_states(model, batch)
    logits_PV = model.embedding.logits(states_PD).float()
    log_probability_P = logits_PV.gather(1, labels_P[:, None])[:, 0] - logits_PV.logsumexp(dim=1)
    tokens_B = (batch.target_out_BT != PAD).sum(dim=1).tolist()
    return [float(sentence.sum()) for sentence in torch.split(log_probability_P, tokens_B)]
