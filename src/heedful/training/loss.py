"""Label-smoothed cross-entropy (section 5.4), and the likelihood behind perplexity."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.data.batches import Batch
from heedful.decoding.likelihood import teacher_forced_states
from heedful.model.embeddings import Embedding
from heedful.model.transformer import Transformer

_CHUNK = 512  # float32 tokens whose logits are computed at a time; fewer would slow the matrix products
_CONVERTED_ROWS = 64  # tokens whose logits are converted to float32 at a time
_EXACT_BELOW = 60.0  # nats: a probability above e^-60 is a normal float, so its logarithm is exact


class Loss(NamedTuple):
    """Sums over target tokens with end tokens, without padding."""

    smoothed: Tensor  # the training objective
    nll: Tensor  # negative log-likelihood, unsmoothed


def smoothed_cross_entropy(logits_PV: Tensor, labels_P: Tensor, label_smoothing: float) -> Loss:
    """Return cross-entropy with label smoothing ε, summed over P tokens.

    The target distribution q has 1 - ε on the label and ε spread uniformly over the vocabulary.
    -Σ q log p = log Z - (1 - ε)·logit(label) - ε·mean(logits), so no P × V tensor of log-probabilities is needed.
    """
    logits_PV = logits_PV.float() if logits_PV.dtype.itemsize < 4 else logits_PV
    log_z_P = logits_PV.logsumexp(dim=-1)
    nll_P = log_z_P - logits_PV.gather(1, labels_P[:, None])[:, 0]
    uniform_P = log_z_P - logits_PV.mean(dim=-1)
    smoothed = (1 - label_smoothing) * nll_P.sum() + label_smoothing * uniform_P.sum()
    return Loss(smoothed, nll_P.sum())


def projected_loss(states_PD: Tensor, weight_VD: Tensor, labels_P: Tensor, label_smoothing: float) -> Loss:
    """Return `smoothed_cross_entropy` of the logits states · weightᵀ, computed in chunks.

    P × V logits, their softmax and their gradient would be the largest tensors of a training step. A chunk fits into
    the cache, and only the gradients of the states and of the weight remain.
    """
    if not torch.is_grad_enabled():  # inside `forward`, parameters would still ask for their gradients
        states_PD, weight_VD = states_PD.detach(), weight_VD.detach()
    return Loss(*_ProjectedLoss.apply(states_PD, weight_VD, labels_P, label_smoothing))  # type: ignore[no-untyped-call]


class _ProjectedLoss(torch.autograd.Function):
    """Compute the gradient, softmax - q with the smoothed label q, during the forward pass.

    Every pass over the logits is expensive, so there is one, the softmax. The term of label smoothing is the same for
    all tokens and needs only the sums of the states and of the weights. States may be less precise than the weights;
    softmax, loss and the weights' gradient have the precision of the weights.
    """

    @staticmethod
    def forward(
        ctx: Any, states_PD: Tensor, weight_VD: Tensor, labels_P: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad)
        # Softmax, sums and the gradient of the weight are float32 even where FSDP gathers the weight in bf16.
        dtype = torch.promote_types(weight_VD.dtype, torch.float32)
        states_grad_PD = torch.empty_like(states_PD) if wanted else None
        weight_grad_VD = torch.zeros_like(weight_VD, dtype=dtype) if wanted else None
        matrix_VD = weight_VD.to(states_PD.dtype)
        nll, labels = (weight_VD.new_zeros((), dtype=dtype) for _ in range(2))
        chunk = _CHUNK * dtype.itemsize // states_PD.itemsize  # the same bytes in every precision
        logits_buffer_CV = states_PD.new_empty(min(chunk, len(labels_P)), len(weight_VD))  # reused for all chunks
        for start in range(0, len(labels_P), chunk):
            states_CD, labels_C1 = states_PD[start : start + chunk], labels_P[start : start + chunk, None]
            logits_CV = torch.mm(states_CD, matrix_VD.T, out=logits_buffer_CV[: len(states_CD)])
            label_C1 = logits_CV.gather(1, labels_C1).to(dtype)
            nll_C1 = _subtract_labels_from_softmax(logits_CV, labels_C1, smoothing, dtype)
            if not bool((nll_C1 < _EXACT_BELOW).all()):  # the softmax underflows; its logarithm must not
                again_CV = (states_CD @ matrix_VD.T).to(dtype)
                nll_C1 = again_CV.logsumexp(dim=1, keepdim=True) - label_C1
            nll += nll_C1.sum()
            labels += label_C1.sum()
            if states_grad_PD is not None and weight_grad_VD is not None:
                torch.mm(logits_CV, matrix_VD, out=states_grad_PD[start : start + chunk])
                _add_product(weight_grad_VD, logits_CV.T, states_CD)
        states_D, mean_D = states_PD.sum(dim=0, dtype=dtype), weight_VD.mean(dim=0, dtype=dtype)
        smoothed = nll + smoothing * (labels - (states_D * mean_D).sum())  # the mean logit is states · mean weight
        if states_grad_PD is not None and weight_grad_VD is not None:
            states_grad_PD -= (smoothing * mean_D).to(states_grad_PD.dtype)
            weight_grad_VD -= smoothing / len(weight_VD) * states_D
        ctx.save_for_backward(states_grad_PD, weight_grad_VD)
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        states_grad_PD, weight_grad_VD = ctx.saved_tensors
        scale = gradients[0]
        return states_grad_PD * scale.to(states_grad_PD.dtype), weight_grad_VD * scale, None, None


def _subtract_labels_from_softmax(logits_CV: Tensor, labels_C1: Tensor, smoothing: float, dtype: torch.dtype) -> Tensor:
    """Replace logits by softmax - (1 - ε) · label; return negative log-likelihoods C × 1.

    The softmax is computed in `dtype`. Less precise logits are converted a few rows at a time, which stay in the cache.
    """
    rows = len(logits_CV) if logits_CV.dtype == dtype else _CONVERTED_ROWS
    nll = []
    for logits_RV, labels_R1 in zip(torch.split(logits_CV, rows), torch.split(labels_C1, rows), strict=True):
        softmax_RV = logits_RV.to(dtype)  # the logits themselves where they have this type
        torch.softmax(softmax_RV, dim=1, out=softmax_RV)
        nll.append(-softmax_RV.gather(1, labels_R1).log())
        softmax_RV.scatter_add_(1, labels_R1, softmax_RV.new_full(labels_R1.shape, smoothing - 1))
        if softmax_RV is not logits_RV:
            logits_RV.copy_(softmax_RV)
    return torch.cat(nll)


def _add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """Add a · b to the total, whose type may be more precise than theirs."""
    if total.dtype == a.dtype:
        total.addmm_(a, b)
    else:
        total += a @ b


def batch_loss(model: Transformer, batch: Batch, label_smoothing: float) -> Loss:
    """Return the loss of one parallel pass with teacher forcing.

    Logits are computed for real tokens only.
    """
    states_PD, labels_P = teacher_forced_states(model, batch)
    return states_loss(model, states_PD, labels_P, label_smoothing)


def states_loss(model: Transformer, states_PD: Tensor, labels_P: Tensor, label_smoothing: float) -> Loss:
    """Return the loss of the decoder's states."""
    if states_PD.dtype == torch.float16:
        # The loss scale must be applied to the gradient of the logits before rounding, which only autograd does.
        return smoothed_cross_entropy(model.embedding.logits(states_PD), labels_P, label_smoothing)
    return projected_loss(*with_bias_column(states_PD, model.embedding), labels_P, label_smoothing)


def with_bias_column(states_PD: Tensor, embedding: Embedding) -> tuple[Tensor, Tensor]:
    """Return states and projection; a bias becomes one more column, whose state is always 1."""
    weight_VD, bias_V = embedding.matrix("projection"), embedding.bias_V
    if bias_V is None:
        return states_PD, weight_VD
    return F.pad(states_PD, (0, 1), value=1.0), torch.cat([weight_VD, bias_V[:, None]], dim=1)


def perplexity(nll_per_token: float) -> float:
    """Return e^nll for an unsmoothed nll per token, or infinity if it overflows."""
    try:
        return math.exp(nll_per_token)
    except OverflowError:
        return math.inf
