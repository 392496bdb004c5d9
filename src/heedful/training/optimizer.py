"""The optimizer that `training.optimizer` selects."""

from __future__ import annotations

import torch

from heedful.model.transformer import Transformer
from heedful.training.adam import Adam
from heedful.training.muon import Muon


def make_optimizer(model: Transformer, name: str) -> Adam:
    """Return the optimizer for a model's parameters. Muon updates the matrices of its linear layers."""
    if name == "adam":
        return Adam(model.parameters())
    matrices = [module.weight for module in model.modules() if isinstance(module, torch.nn.Linear)]
    return Muon(model.parameters(), matrices)
