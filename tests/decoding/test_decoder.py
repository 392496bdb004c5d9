"""The decoder with its weights laid out for search, in float32 and in 8-bit integers; test_cache.py has the rest."""

from __future__ import annotations

import pytest
import torch
from random_models import random_model
from torch import Tensor

from heedful.decoding.decoder import FloatProjection, Int8Projection, SearchDecoder
from heedful.decoding.search import likeliest


@pytest.fixture
def draw() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def normal(draw: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=draw)


def test_int8_rounds_and_does_no_more(draw: torch.Generator) -> None:
    """The error is what rounding by half a step makes, and no more; the largest numbers do not overflow.

    (The second part cannot fail on processors with VNNI, whose sums are wider.)
    """
    weight, bias = normal(draw, 24, 64) * normal(draw, 24, 1), normal(draw, 24)  # rows of very different size
    x = normal(draw, 9, 64)
    found, exact = Int8Projection(weight, bias)(x), FloatProjection(weight, bias)(x)
    step_of_x = (max(x.max(), 0) - min(x.min(), 0)) / 127
    step_of_weight = weight.abs().amax(dim=1) / 127
    most = step_of_x / 2 * weight.abs().sum(dim=1) + step_of_weight / 2 * (x.abs() + step_of_x / 2).sum(dim=1)[:, None]
    assert ((found - exact).abs() <= most).all()
    assert not torch.equal(found, exact)
    extreme = torch.full((4, 64), 3.0)
    torch.testing.assert_close(Int8Projection(torch.ones(8, 64), None)(extreme), torch.full((4, 8), 192.0))


def test_a_row_of_zeros_stays_zero() -> None:
    found = Int8Projection(torch.zeros(4, 8), None)(torch.ones(3, 8))
    assert found.abs().max() == 0


def test_the_decoder_of_a_model_in_double_stays_double() -> None:
    assert SearchDecoder(random_model(1)).logits(torch.zeros(1, 8, dtype=torch.float64)).dtype == torch.float64


@pytest.mark.parametrize("tokens", [7, 1_003])
def test_likeliest_is_the_top_of_a_log_softmax(draw: torch.Generator, tokens: int) -> None:
    logits = 3 * normal(draw, 6, tokens)
    expected = logits.log_softmax(dim=1)
    expected[:, :3] = -torch.inf  # padding, unknown, start
    expected[2] = torch.where(torch.arange(tokens) == 3, expected[2], -torch.inf)  # only the end
    at_limit = torch.arange(6) == 2
    values, found = likeliest(logits.clone(), at_limit, 4)
    torch.testing.assert_close(values, expected.topk(4, dim=1).values)
    finite = values.isfinite()
    torch.testing.assert_close(expected.gather(1, found)[finite], values[finite])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_int8_gives_back_the_type_it_was_given(dtype: torch.dtype) -> None:
    assert Int8Projection(torch.ones(4, 8, dtype=dtype), None)(torch.ones(3, 8, dtype=dtype)).dtype == dtype
