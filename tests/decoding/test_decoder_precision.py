"""The decoder with weights for search: types and precisions (see also test_cache.py)."""

from __future__ import annotations

import pytest
import torch
from search_oracles import random_model, random_sources

from heedful.config import BOS
from heedful.data.batches import pad
from heedful.decoding.cache import DecoderCache
from heedful.decoding.inference_model import SearchModel
from heedful.decoding.projection_kernels import Precision


def test_float64_model_keeps_float64_in_search() -> None:
    ready = SearchModel(random_model(1))
    assert ready.decoder.logits(torch.zeros(1, 8, dtype=torch.float64)).dtype == torch.float64


@pytest.mark.parametrize(("precision", "error"), [("fp32", 1e-5), ("bf16", 0.1), ("int8", 0.3)])
@torch.inference_mode()
def test_lower_precisions_are_close(precision: Precision, error: float) -> None:
    """Compare log-probabilities after three tokens with those of the model in one pass."""
    model = random_model(1, 40, N=2, d_model=32, d_ff=48).float()
    source_BS, target_BT = pad(random_sources(1, 40, [6, 4])), torch.tensor([[BOS, 7, 9], [BOS, 30, 5]])
    ready = SearchModel(model, precision)
    cache = DecoderCache(ready.decoder, beam=1)
    cache.admit(ready.encoder.encode(source_BS), [0, 1])
    found = [cache.step(target_BT[:, t], torch.full((2,), t)) for t in range(3)][-1].float().log_softmax(-1)
    expected = model(source_BS, target_BT)[:, -1].log_softmax(-1)
    difference = (found.exp() - expected.exp()).abs().max()
    assert difference <= error
    if precision != "fp32":
        assert difference > 1e-5
