"""Why this token and not that one: contrastive attribution over the source.

The quantity explained is the difference of two logits at one position, which is also the difference of the two
log-probabilities. Positive numbers favour the chosen token, negative ones the other.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from heedful.inspection.trace import LayerSteps, decode_steps, embed, encode_steps
from heedful.model.transformer import Transformer


class Contrast(NamedTuple):
    """Attribution of one choice to the source tokens."""

    difference: float  # log P(chosen) - log P(other)
    input_times_gradient: list[float]  # per source token
    value_zeroing: list[float]  # per source token: how much the difference falls without its values
    attention: list[float]  # per source token: mean cross-attention over layers and heads
    agreement: float  # Spearman's ρ of attention and the size of input × gradient
    agreement_zeroing: float  # the same with value zeroing


def contrast(
    model: Transformer, source: list[int], target_in: list[int], position: int, chosen: int, other: int
) -> Contrast:
    """Explain why `chosen` rather than `other` follows target position `position`."""
    device = model.embedding.weight_VD.device
    source_S, target_T = (torch.tensor(ids, device=device) for ids in (source, target_in[: position + 1]))
    difference, gradients = _input_times_gradient(model, source_S, target_T, chosen, other)
    zeroing, decoder = _value_zeroing(model, source_S, target_T, chosen, other)
    attention = torch.stack([_cross_weights(layer)[:, -1] for layer in decoder]).mean(dim=(0, 1))
    return Contrast(
        difference,
        gradients.tolist(),
        zeroing.tolist(),
        attention.tolist(),
        rank_agreement(attention, gradients.abs()),
        rank_agreement(attention, zeroing.abs()),
    )


def logit_difference(model: Transformer, state_D: Tensor, chosen: int, other: int) -> Tensor:
    logits = model.embedding.logits(state_D)
    return logits[..., chosen] - logits[..., other]


def _input_times_gradient(
    model: Transformer, source_S: Tensor, target_T: Tensor, chosen: int, other: int
) -> tuple[float, Tensor]:
    with torch.inference_mode(False), torch.enable_grad():
        embedded = embed(model, source_S.clone(), "source")
        scaled_SD = embedded.scaled_TD.detach().clone().requires_grad_()
        memory_SD = encode_steps(model, scaled_SD + embedded.position_TD.detach())[-1].output_TD
        states_TD = decode_steps(model, embed(model, target_T.clone()).input_TD, memory_SD)[-1].output_TD
        difference = logit_difference(model, states_TD[-1], chosen, other)
        (gradient_SD,) = torch.autograd.grad(difference, scaled_SD)
        return float(difference.detach()), (gradient_SD * scaled_SD.detach()).sum(dim=-1)


@torch.no_grad()
def _value_zeroing(
    model: Transformer, source_S: Tensor, target_T: Tensor, chosen: int, other: int
) -> tuple[Tensor, list[LayerSteps]]:
    """Return the drop in the difference for each zeroed token, and the unmodified steps."""
    memory_SD = encode_steps(model, embed(model, source_S, "source").input_TD)[-1].output_TD
    target_TD = embed(model, target_T).input_TD
    S = len(source_S)
    read_BS = 1.0 - torch.eye(S, dtype=memory_SD.dtype, device=memory_SD.device)
    batch = decode_steps(model, target_TD.expand(S, -1, -1), memory_SD.expand(S, -1, -1), read_BS)
    plain = decode_steps(model, target_TD, memory_SD)
    before = logit_difference(model, plain[-1].output_TD[-1], chosen, other)
    return before - logit_difference(model, batch[-1].output_TD[:, -1], chosen, other), plain


def _cross_weights(layer: LayerSteps) -> Tensor:
    assert layer.cross_attention is not None, "decoder layers have cross-attention"
    return layer.cross_attention.weights_HTS


def rank_agreement(a: Tensor, b: Tensor) -> float:
    """Return Spearman's rank correlation; 0 if one side is constant."""
    ranks = torch.stack([_ranks(a.double()), _ranks(b.double())])
    centred = ranks - ranks.mean(dim=1, keepdim=True)
    norms = centred.norm(dim=1)
    return float(centred[0] @ centred[1] / norms.prod()) if bool((norms > 0).all()) else 0.0


def _ranks(values: Tensor) -> Tensor:
    """Return ranks from 0, with the mean rank for ties."""
    smaller = (values[None, :] < values[:, None]).sum(dim=1)
    equal = (values[None, :] == values[:, None]).sum(dim=1)
    return smaller + (equal - 1) / 2
