"""Reference log-probabilities for exported models."""

from __future__ import annotations

import torch

from heedful.config import BOS, EOS
from heedful.interop.export_constraints import SUPPRESSED_TOKENS
from heedful.storage.model_directory import Model


@torch.no_grad()
def log_probabilities(model: Model, source: list[int], target: list[int]) -> torch.Tensor:
    """Return the log-probability of each target token, with suppressed tokens masked."""
    logits_TV = model.transformer(torch.tensor([source]), torch.tensor([[BOS, *target[:-1]]]))[0]
    logits_TV[:, list(SUPPRESSED_TOKENS)] = -torch.inf
    return logits_TV.log_softmax(dim=-1)[range(len(target)), target]


def sentences(model: Model, *lengths: int) -> list[list[int]]:
    """Return random token sequences of these lengths, each with the end symbol."""
    generator = torch.Generator().manual_seed(0)
    sequences = [torch.randint(EOS + 1, model.tokenizer.vocab_size, (n - 1,), generator=generator) for n in lengths]
    return [[*ids.tolist(), EOS] for ids in sequences]
