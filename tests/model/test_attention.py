"""Section 3.2 against torch's own attention and against the formula, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_oracle import causal, randomised, small, twin_attention

from heedful.model import attention as attention_module
from heedful.model.attention import (
    MultiHeadAttention,
    attention,
    causal_mask,
    fast_attention,
    plain_attention,
    softmax,
)

TOLERANCE = {"rtol": 0.0, "atol": 1e-10}


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_loops(q: Tensor, k: Tensor, v: Tensor, may_attend: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 1 for one head, a number at a time."""
    T, S, d_k = len(q), len(k), q.shape[1]
    weights = torch.zeros(T, S, dtype=torch.float64)
    for t in range(T):
        scores = {s: float(sum(q[t, i] * k[s, i] for i in range(d_k))) / d_k**0.5 for s in range(S) if may_attend[t, s]}
        largest = max(scores.values())
        total = sum(math.exp(score - largest) for score in scores.values())
        for s, score in scores.items():
            weights[t, s] = math.exp(score - largest) / total
    return weights @ v, weights


@pytest.mark.parametrize(
    ("dtype", "relative"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2**-8)]
)
@pytest.mark.parametrize("length", [1, 7, 15, 16, 17, 40])
def test_softmax_of_short_and_long_rows(dtype: torch.dtype, relative: float, length: int) -> None:
    scores = (5 * normal(3, 2, 4, length)).to(dtype).requires_grad_()
    expected_scores = scores.detach().double().requires_grad_()
    upstream = normal(3, 2, 4, length, seed=1).to(dtype)
    expected = expected_scores.exp() / expected_scores.exp().sum(dim=-1, keepdim=True)
    found = softmax(scores)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, rtol=relative, atol=1e-30)
    found.backward(upstream)
    expected.backward(upstream.double())
    torch.testing.assert_close(scores.grad.double(), expected_scores.grad, rtol=0.0, atol=5 * relative)


@pytest.mark.parametrize("masked", [False, True])
def test_plain_attention_matches_eq_1_if_d_k_differs_from_d_v(masked: bool) -> None:
    q, k, v = normal(2, 3, 4, 5, seed=1), normal(2, 3, 6, 5, seed=2), normal(2, 3, 6, 7, seed=3)
    mask = torch.rand(2, 1, 4, 6, generator=torch.Generator().manual_seed(4)) < 0.6 if masked else None
    if mask is not None:
        mask[..., 0] = True
    heads, weights = plain_attention(q, k, v, mask)
    assert heads.shape == (2, 3, 4, 7)
    for b in range(2):
        for h in range(3):
            allowed = torch.ones(4, 6, dtype=torch.bool) if mask is None else mask[b, 0]
            expected_heads, expected_weights = by_loops(q[b, h], k[b, h], v[b, h], allowed)
            torch.testing.assert_close(heads[b, h], expected_heads, **TOLERANCE)
            torch.testing.assert_close(weights[b, h], expected_weights, **TOLERANCE)


def test_masked_positions_get_no_weight_and_rows_sum_to_one() -> None:
    mask = torch.tensor([True, False, True, False])
    _, weights = plain_attention(100 * normal(1, 2, 3, 4), 100 * normal(1, 2, 4, 4, seed=1), normal(1, 2, 4, 4), mask)
    assert (weights[..., ~mask] == 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(1, 2, 3, dtype=torch.float64))


@pytest.mark.parametrize("T", [1, 5])
@pytest.mark.parametrize("d_v", [2, 4, 9])
@pytest.mark.parametrize("kind", ["open", "padded", "causal"])
def test_fast_attention_equals_plain_attention(kind: str, d_v: int, T: int) -> None:
    q, k, v = normal(3, 2, T, 4, seed=5), normal(3, 2, T, 4, seed=6), normal(3, 2, T, d_v, seed=7)
    masks = {
        "open": None,
        "padded": (torch.arange(T) < torch.tensor([1, 3, 5])[:, None])[:, None, None, :],
        "causal": causal_mask(T, torch.device("cpu")),
    }
    expected, _ = plain_attention(q, k, v, masks[kind])
    given = None if kind == "causal" else masks[kind]
    torch.testing.assert_close(fast_attention(q, k, v, given, causal=kind == "causal"), expected, **TOLERANCE)


@pytest.mark.parametrize("d_v", [2, 4, 9])
def test_gradient_of_fast_attention_matches_plain_attention(d_v: int) -> None:
    q, k, v = normal(2, 2, 5, 4, seed=5), normal(2, 2, 7, 4, seed=6), normal(2, 2, 7, d_v, seed=7)
    mask = (torch.arange(7) < torch.tensor([7, 3])[:, None])[:, None, None, :]
    inputs = [x.requires_grad_() for x in (q, k, v)]
    outputs = plain_attention(q, k, v, mask)[0], fast_attention(q, k, v, mask)
    expected, gradients = (torch.autograd.grad((y**2).sum(), inputs) for y in outputs)
    for one, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(one, other, **TOLERANCE)


def test_causal_mask_allows_current_and_earlier_positions() -> None:
    mask = causal_mask(4, torch.device("cpu"))
    assert mask.tolist() == [[s <= t for s in range(4)] for t in range(4)]
    assert causal_mask(4, torch.device("meta")).device.type == "meta"


@pytest.mark.parametrize("length", [5, 100])
@pytest.mark.parametrize("kind", ["open", "padded", "causal"])
def test_attention_matches_the_formula_for_all_lengths(kind: str, length: int) -> None:
    q, k, v = (normal(2, 2, length, 4, seed=seed) for seed in (5, 6, 7))
    padding = (torch.arange(length) < torch.tensor([length, 3])[:, None])[:, None, None, :]
    masks = {"open": None, "padded": padding, "causal": causal_mask(length, torch.device("cpu"))}
    expected, _ = plain_attention(q, k, v, masks[kind])
    given: dict[str, Any] = {"open": {}, "padded": {"mask": padding}, "causal": {"causal": True}}[kind]
    torch.testing.assert_close(attention(q, k, v, **given), expected, **TOLERANCE)


def test_long_sequences_and_other_devices_use_fast_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, int]] = []

    def watched(q: Tensor, k: Tensor, v: Tensor, *options: Any) -> Tensor:
        shapes.append((q.shape[2], k.shape[2]))
        return fast_attention(q, k, v, *options)

    monkeypatch.setattr(attention_module, "fast_attention", watched)
    for T, S in ((96, 96), (97, 96), (96, 97), (1, 9_216), (1, 9_217)):
        attention(normal(1, 2, T, 3), normal(1, 2, S, 3), normal(1, 2, S, 3))
    assert shapes == [(97, 96), (96, 97), (1, 9_217)]
    attention(*(torch.zeros(1, 2, 5, 3, device="meta") for _ in range(3)))
    assert shapes[3:] == [(5, 5)]


def test_gradient_of_plain_attention_by_finite_differences() -> None:
    inputs = [normal(1, 2, 3, 4, seed=seed).requires_grad_() for seed in (1, 2, 3)]
    mask = causal_mask(3, torch.device("cpu"))
    assert torch.autograd.gradcheck(lambda q, k, v: plain_attention(q, k, v, mask)[0], inputs)


@pytest.mark.parametrize("T", [10, 100])
@pytest.mark.parametrize("function", [plain_attention, fast_attention, attention])
def test_dropout_on_the_weights_preserves_their_mean(
    function: Callable[..., Tensor | tuple[Tensor, Tensor]], T: int
) -> None:
    torch.manual_seed(0)
    B = 4_000 // T
    ones = torch.ones(B, 4, T, 1, dtype=torch.float64)
    found = function(normal(B, 4, T, 3), normal(B, 4, T, 3, seed=1), ones, dropout=0.3)
    dropped = found[0] if isinstance(found, tuple) else found
    assert dropped.std() > 0.05
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)
    if isinstance(found, tuple):  # the weights that are shown are those before dropout
        torch.testing.assert_close(found[1].sum(-1), ones[..., 0])


@pytest.mark.parametrize("d_v", [2, 4, 9])
def test_fast_attention_pads_to_one_width(d_v: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All three are padded to the larger of d_k and d_v: otherwise torch stores all weights."""
    widths: list[int] = []
    original = F.scaled_dot_product_attention

    def watched(*qkv: Tensor, **options: Any) -> Tensor:
        widths.extend(x.shape[-1] for x in qkv)
        return original(*qkv, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    fast_attention(normal(1, 2, 5, 4), normal(1, 2, 6, 4), normal(1, 2, 6, d_v))
    assert widths == [max(4, d_v)] * 3


@pytest.mark.parametrize("want_weights", [False, True], ids=["fast", "plain"])
@pytest.mark.parametrize("kind", ["self", "cross", "padded", "causal"])
def test_multi_head_attention_matches_torch(kind: str, want_weights: bool) -> None:
    ours = randomised(MultiHeadAttention(small()), seed=1)
    x = normal(3, 5, 12, seed=2)
    memory = normal(3, 7, 12, seed=3) if kind in ("cross", "padded") else x
    real = torch.arange(7) < torch.tensor([7, 4, 1])[:, None]
    expected, expected_weights = twin_attention(ours)(
        x,
        memory,
        memory,
        key_padding_mask=~real if kind == "padded" else None,
        attn_mask=causal(5) if kind == "causal" else None,
        average_attn_weights=False,
    )
    mask = real[:, None, None, :] if kind == "padded" else None
    output, weights = ours(x, ours.keys_values(memory), mask=mask, causal=kind == "causal", want_weights=want_weights)
    torch.testing.assert_close(output, expected, **TOLERANCE)
    assert (weights is not None) == want_weights
    if want_weights:
        torch.testing.assert_close(weights, expected_weights, **TOLERANCE)


def test_matches_torch_functional_with_separate_projections() -> None:
    ours = randomised(MultiHeadAttention(small()), seed=4)
    x, memory = normal(2, 4, 12, seed=5), normal(2, 6, 12, seed=6)
    expected, _ = F.multi_head_attention_forward(
        *(t.transpose(0, 1) for t in (x, memory, memory)),
        embed_dim_to_check=12,
        num_heads=3,
        in_proj_weight=None,
        in_proj_bias=torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]),
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=ours.output.weight,
        out_proj_bias=ours.output.bias,
        use_separate_proj_weight=True,
        q_proj_weight=ours.query.weight,
        k_proj_weight=ours.key.weight,
        v_proj_weight=ours.value.weight,
    )
    output, weights = ours(x, ours.keys_values(memory))
    torch.testing.assert_close(output, expected.transpose(0, 1), **TOLERANCE)
    assert weights is None  # unless they are asked for


def test_causal_mask_is_on_the_device_of_the_states() -> None:
    """As on a GPU: torch refuses a mask on another device."""
    ours, x = MultiHeadAttention(small()).to("meta"), torch.zeros(2, 5, 12, device="meta", dtype=torch.float64)
    _, weights = ours.double()(x, ours.keys_values(x), causal=True, want_weights=True)
    assert weights is not None
    assert (weights.shape, weights.device.type) == ((2, 3, 5, 5), "meta")


@pytest.mark.parametrize(("h", "d_k", "d_v"), [(3, 2, 5), (5, 4, 1), (1, 7, 12)])
def test_arbitrary_head_widths_match_section_3_2_2(h: int, d_k: int, d_v: int) -> None:
    """Concat(head_1, …, head_h) W^O, head_i = Attention(QW_i^Q, KW_i^K, VW_i^V)."""
    ours = randomised(MultiHeadAttention(small(h=h, d_k=d_k, d_v=d_v)), seed=h)
    x, memory = normal(1, 4, 12, seed=5), normal(1, 6, 12, seed=6)
    heads = []
    for i in range(h):
        own = slice(i * d_k, (i + 1) * d_k), slice(i * d_k, (i + 1) * d_k), slice(i * d_v, (i + 1) * d_v)
        q, k, v = (
            data[0] @ linear.weight[part].T + linear.bias[part]
            for data, linear, part in zip((x, memory, memory), (ours.query, ours.key, ours.value), own, strict=True)
        )
        heads.append(by_loops(q.detach(), k.detach(), v.detach(), torch.ones(4, 6, dtype=torch.bool))[0])
    expected = torch.cat(heads, dim=1) @ ours.output.weight.T + ours.output.bias
    output, _ = ours(x, ours.keys_values(memory))
    torch.testing.assert_close(output[0], expected, **TOLERANCE)


@pytest.mark.parametrize("want_weights", [False, True])
def test_attention_dropout_is_for_training_only(want_weights: bool) -> None:
    plain, dropping = (randomised(MultiHeadAttention(small(attention_dropout=p))) for p in (0.0, 0.5))
    x = normal(2, 6, 12)
    expected, _ = plain(x, plain.keys_values(x), want_weights=want_weights)
    in_training, _ = dropping(x, dropping.keys_values(x), want_weights=want_weights)
    assert not torch.allclose(in_training, expected)
    in_use, _ = dropping.eval()(x, dropping.keys_values(x), want_weights=want_weights)
    torch.testing.assert_close(in_use, expected, **TOLERANCE)
