"""Next-token probabilities at every position and after each decoder layer (logit lens)."""

from __future__ import annotations

from typing import NamedTuple

import torch

from heedful.inspection.trace import Trace
from heedful.model.transformer import Transformer


class Candidates(NamedTuple):
    """The likeliest next tokens of one position, and how the actual next token did."""

    ids: list[int]  # likeliest first
    probabilities: list[float]
    chosen: float  # probability of the actual next token
    rank: int  # of the actual next token; 1 is the likeliest


def next_tokens(model: Transformer, steps: Trace, target: list[int], count: int) -> list[list[Candidates]]:
    """Return candidates[layer][position]; the last layer is the model's own output.

    The earlier layers are read through the final projection, as if the later layers were not there.
    """
    found = []
    for layer in steps.decoder:
        found.append(_candidates(model.embedding.logits(layer.output_TD).float(), target, count))
    return found


def _candidates(logits_TV: torch.Tensor, target: list[int], count: int) -> list[Candidates]:
    p_TV = logits_TV.softmax(dim=-1)
    best = p_TV.topk(min(count, p_TV.shape[1]), dim=-1)
    chosen_T = p_TV[torch.arange(len(target)), target]
    ranks_T = (p_TV > chosen_T[:, None]).sum(dim=-1) + 1
    return [
        Candidates(ids, probabilities, chosen, rank)
        for ids, probabilities, chosen, rank in zip(
            best.indices.tolist(), best.values.tolist(), chosen_T.tolist(), ranks_T.tolist(), strict=True
        )
    ]
