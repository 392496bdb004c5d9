"""The encoder of search against `Transformer.encode`."""

from __future__ import annotations

import pytest
import torch
from search_oracles import random_model, random_sources

from heedful.data.batches import pad
from heedful.decoding.encoder import SearchEncoder

V = 11


@pytest.mark.parametrize("lengths", [[4], [5, 5, 5], [1, 6, 3], [120, 3]], ids=["one", "unpadded", "padded", "long"])
@pytest.mark.parametrize("shape", [{}, {"d_k": 3, "d_v": 5}, {"d_k": 5, "d_v": 3}, {"positions": "learned"}], ids=str)
@torch.no_grad()
def test_states_and_mask(lengths: list[int], shape: dict[str, int]) -> None:
    model = random_model(3, V, N=2, **shape)
    source_BS = pad(random_sources(1, V, lengths))
    expected, found = model.encode(source_BS), SearchEncoder(model).encode(source_BS)
    real = source_BS != 0
    torch.testing.assert_close(found.states_BSD[real], expected.states_BSD[real], rtol=0.0, atol=1e-9)
    if expected.mask_B11S is None:
        assert found.mask_B11S is None
    else:
        assert found.mask_B11S is not None
        assert torch.equal(found.mask_B11S, expected.mask_B11S)


@torch.no_grad()
def test_bf16_states_are_close() -> None:
    model = random_model(3, V, N=2).float()
    source_BS = pad(random_sources(1, V, [5, 7]))
    found = SearchEncoder(model, "bf16").encode(source_BS).states_BSD
    assert found.dtype == torch.bfloat16
    real = source_BS != 0
    torch.testing.assert_close(found.float()[real], model.encode(source_BS).states_BSD[real], rtol=0.1, atol=0.1)
