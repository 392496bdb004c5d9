"""Teacher forcing by definition: the product of next-token probabilities by prefix."""

from __future__ import annotations

import pytest
import torch
from search_oracles import random_model

from heedful.config import BOS, EOS
from heedful.data.batches import assemble
from heedful.decoding.likelihood import log_likelihoods, teacher_forced_states
from heedful.training.loss import batch_loss

PAIRS = [([5, 6, EOS], [7, 5, 4, 6, EOS]), ([4, EOS], [EOS]), ([6, 5, 4, 7, EOS], [5, EOS])]


def test_log_likelihoods_match_sums_over_prefixes() -> None:
    model = random_model(1, 8)
    expected = []
    for source, target in PAIRS:
        total = 0.0
        for length, token in enumerate(target):
            logits_1TV = model(torch.tensor([source]), torch.tensor([[BOS, *target[:length]]]))
            total += float(logits_1TV[0, -1].double().log_softmax(dim=0)[token])
        expected.append(total)
    batch = assemble([source for source, _ in PAIRS], [target for _, target in PAIRS], lines=())
    assert log_likelihoods(model, batch) == pytest.approx(expected, abs=1e-4)
    # Training and scoring share one definition.
    assert -batch_loss(model, batch, 0.0).nll.item() == pytest.approx(sum(expected), abs=1e-4)


def test_states_and_labels_exclude_padding() -> None:
    batch = assemble([source for source, _ in PAIRS], [target for _, target in PAIRS], lines=())
    states_PD, labels_P = teacher_forced_states(random_model(1, 8), batch)
    assert labels_P.tolist() == [token for _, target in PAIRS for token in target]
    assert len(states_PD) == len(labels_P)
