"""Log-softmax and top-k over the vocabulary against torch's own."""

from __future__ import annotations

import pytest
import torch

from heedful.decoding.top_tokens import top_tokens


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [6, 131])
@pytest.mark.parametrize("tokens", [7, 1_003])
def test_matches_top_k_of_log_softmax(tokens: int, rows: int, dtype: torch.dtype) -> None:
    logits = 3 * torch.randn(rows, tokens, generator=torch.Generator().manual_seed(1)).to(dtype)
    expected = logits.float().log_softmax(dim=1)
    expected[:, :3] = -torch.inf  # padding, unknown, start
    at_limit = torch.arange(rows) % 70 == 2
    expected[at_limit] = torch.where(torch.arange(tokens) == 3, expected[at_limit], -torch.inf)  # only the end
    values, found = top_tokens(logits, at_limit, 4)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values, expected.topk(4, dim=1).values)
    finite = values.isfinite()
    torch.testing.assert_close(expected.gather(1, found)[finite], values[finite])
    assert all(len(set(row)) == 4 for row in found.tolist())
