"""Next-token probabilities against the softmax and a model cut off after a layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from heedful.config import BOS, EOS
from heedful.inspection.next_tokens import next_tokens
from heedful.inspection.trace import trace
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model

SOURCE, TARGET = [7, 8, 9, 10, EOS], [11, 12, EOS]


def cut_off(model: Transformer, layers: int) -> Transformer:
    """The same encoder with only the first layers of the decoder."""
    cut = Transformer(replace(model.config)).eval()
    cut.load_state_dict(model.state_dict())
    cut.decoder = torch.nn.ModuleList(list(cut.decoder)[:layers])
    return cut


@torch.no_grad()
def test_candidates_are_those_of_the_model(random_model: Callable[..., Model]) -> None:
    model = random_model().transformer
    shifted = [BOS, *TARGET[:-1]]
    found = next_tokens(model, trace(model, torch.tensor(SOURCE), torch.tensor(shifted)), TARGET, 5)
    assert len(found) == 2
    for layer, positions in enumerate(found):
        p_TV = cut_off(model, layer + 1)(torch.tensor([SOURCE]), torch.tensor([shifted]))[0].softmax(dim=-1)
        for position, (one, p_V, target) in enumerate(zip(positions, p_TV, TARGET, strict=True)):
            order = sorted(range(len(p_V)), key=lambda token: -float(p_V[token]))
            assert one.ids == order[:5], position
            assert one.probabilities == pytest.approx([float(p_V[token]) for token in order[:5]], abs=1e-5)
            assert one.chosen == pytest.approx(float(p_V[target]), abs=1e-5)
            assert one.rank == order.index(target) + 1
