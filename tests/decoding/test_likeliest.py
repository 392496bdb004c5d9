"""Log-softmax and top-k over the vocabulary against torch's own."""

from __future__ import annotations

import pytest
import torch

from heedful.decoding.likeliest import likeliest, top


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [6, 64, 131])
@pytest.mark.parametrize("tokens", [7, 1_003, 4_600, 32 * 40])
def test_the_top_of_a_log_softmax(tokens: int, rows: int, dtype: torch.dtype) -> None:
    logits = 3 * torch.randn(rows, tokens, generator=torch.Generator().manual_seed(1)).to(dtype)
    expected = logits.float().log_softmax(dim=1)
    expected[:, :3] = -torch.inf  # padding, unknown, start
    at_limit = torch.arange(rows) % 70 == 2
    expected[at_limit] = torch.where(torch.arange(tokens) == 3, expected[at_limit], -torch.inf)  # only the end
    values, found = likeliest(logits, at_limit, 4)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values, expected.topk(4, dim=1).values)
    finite = values.isfinite()
    torch.testing.assert_close(expected.gather(1, found)[finite], values[finite])
    assert all(len(set(row)) == 4 for row in found.tolist())


@pytest.mark.parametrize("count", [1, 2, 8, 40])
@pytest.mark.parametrize("tokens", [1_024, 1_055, 5_000])
def test_top_is_topk(tokens: int, count: int) -> None:
    draw = torch.Generator().manual_seed(tokens + count)
    for x in (torch.randn(9, tokens, generator=draw), torch.arange(tokens).float().expand(3, -1) % 977):
        values, columns = top(x, count)
        assert torch.equal(values, x.topk(count, dim=1).values)
        assert torch.equal(x.gather(1, columns), values)
        assert all(len(set(row)) == count for row in columns.tolist())


def test_what_is_not_a_number_comes_first() -> None:
    x = torch.zeros(2, 2_000)
    x[1, 700] = torch.nan
    values, columns = top(x, 3)
    assert values[1, 0].isnan()
    assert columns[1, 0] == 700
