"""The loss (section 5.4): cross-entropy with label smoothing, and the likelihood that perplexity is of."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heedful.config import PAD
from heedful.data.batches import Batch
from heedful.model.transformer import Transformer

_CHUNK = 512  # tokens whose logits are held at a time: enough for full speed of the matrix products
_SURE = 60.0  # nats: a probability above e^-60 is a normal number, whose logarithm is exact


class Loss(NamedTuple):
    """Sums over real target tokens, end symbols included; padding counts for nothing."""

    smoothed: Tensor  # what is minimised
    nll: Tensor  # negative log-likelihood, unsmoothed


def smoothed_cross_entropy(logits_PV: Tensor, labels_P: Tensor, label_smoothing: float) -> Loss:
    """Cross-entropy with (1 - ε) on the label and ε spread uniformly over the vocabulary, summed over P tokens.

    -Σ q log p = log Z - (1 - ε)·logit(label) - ε·mean(logits): no V-wide copy of log-probabilities is needed.
    """
    logits_PV = logits_PV.float() if logits_PV.dtype.itemsize < 4 else logits_PV
    log_z_P = logits_PV.logsumexp(dim=-1)
    nll_P = log_z_P - logits_PV.gather(1, labels_P[:, None])[:, 0]
    uniform_P = log_z_P - logits_PV.mean(dim=-1)
    smoothed = (1 - label_smoothing) * nll_P.sum() + label_smoothing * uniform_P.sum()
    return Loss(smoothed, nll_P.sum())


def projected_loss(states_PD: Tensor, weight_VD: Tensor, labels_P: Tensor, label_smoothing: float) -> Loss:
    """`smoothed_cross_entropy` of the logits states · weightᵀ, which are never held all at once.

    P × V logits, their softmax and their gradient are the largest tensors of a training step. A chunk of them at a
    time stays in the cache, and what is left are two gradients of the size of the states and of the weight.
    """
    if not torch.is_grad_enabled():  # inside `forward`, parameters would still ask for their gradients
        states_PD, weight_VD = states_PD.detach(), weight_VD.detach()
    return Loss(*_ProjectedLoss.apply(states_PD, weight_VD, labels_P, label_smoothing))  # type: ignore[no-untyped-call]


class _ProjectedLoss(torch.autograd.Function):
    """The gradient, softmax - q with q the smoothed label, is made where the softmax is: going forward.

    The logits are too large for the caches near a core, and every pass over them costs; so there is one, the softmax.
    What label smoothing adds is the same for all tokens, and needs sums over the states and the weights alone.
    """

    @staticmethod
    def forward(
        ctx: Any, states_PD: Tensor, weight_VD: Tensor, labels_P: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad)
        states_grad_PD = torch.empty_like(states_PD) if wanted else None
        weight_grad_VD = torch.zeros_like(weight_VD) if wanted else None
        nll, labels = states_PD.new_zeros(()), states_PD.new_zeros(())
        logits_buffer_CV = states_PD.new_empty(min(_CHUNK, len(labels_P)), len(weight_VD))  # one for all chunks
        for start in range(0, len(labels_P), _CHUNK):
            states_CD, labels_C1 = states_PD[start : start + _CHUNK], labels_P[start : start + _CHUNK, None]
            logits_CV = torch.mm(states_CD, weight_VD.T, out=logits_buffer_CV[: len(states_CD)])
            label_C1 = logits_CV.gather(1, labels_C1)
            softmax_CV = torch.softmax(logits_CV, dim=1, out=logits_CV)
            nll_C1 = -softmax_CV.gather(1, labels_C1).log()
            if not bool((nll_C1 < _SURE).all()):  # as good as 0 for the softmax, but not for its logarithm
                nll_C1 = (states_CD @ weight_VD.T).logsumexp(dim=1, keepdim=True) - label_C1
            nll += nll_C1.sum()
            labels += label_C1.sum()
            if states_grad_PD is not None and weight_grad_VD is not None:
                softmax_CV.scatter_add_(1, labels_C1, torch.full_like(label_C1, smoothing - 1))
                torch.mm(softmax_CV, weight_VD, out=states_grad_PD[start : start + _CHUNK])
                weight_grad_VD.addmm_(softmax_CV.T, states_CD)
        states_D, mean_D = states_PD.sum(dim=0), weight_VD.mean(dim=0)
        smoothed = nll + smoothing * (labels - (states_D * mean_D).sum())  # the mean logit is states · mean weight
        if states_grad_PD is not None and weight_grad_VD is not None:
            states_grad_PD -= smoothing * mean_D
            weight_grad_VD -= smoothing / len(weight_VD) * states_D
        ctx.save_for_backward(states_grad_PD, weight_grad_VD)
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        states_grad_PD, weight_grad_VD = ctx.saved_tensors
        return states_grad_PD * gradients[0], weight_grad_VD * gradients[0], None, None


def batch_loss(model: Transformer, batch: Batch, label_smoothing: float) -> Loss:
    """Teacher forcing: one parallel pass, logits only where there is a token to predict."""
    states_BTD = model.decode(batch.target_in_BT, model.encode(batch.source_BS))
    real_BT = batch.target_out_BT != PAD
    states_PD, labels_P = states_BTD[real_BT], batch.target_out_BT[real_BT]
    if torch.is_autocast_enabled(states_PD.device.type):
        # Half precision needs the loss's scale in the gradient of the logits: autograd carries it there.
        return smoothed_cross_entropy(model.embedding.logits(states_PD), labels_P, label_smoothing)
    return projected_loss(states_PD, model.embedding.weight_VD, labels_P, label_smoothing)


def perplexity(nll_per_token: float) -> float:
    """e^nll, of the unsmoothed likelihood per token; infinite where it overflows."""
    try:
        return math.exp(nll_per_token)
    except OverflowError:
        return math.inf
