"""Sections 3.1 and 3.3 against torch's post-norm ReLU layers with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_oracle import causal, randomised, small, twin_decoder_layer, twin_encoder_layer

from heedful.model.dropout import dropout
from heedful.model.layers import AddAndNorm, DecoderLayer, EncoderLayer, FeedForward

TOLERANCE = {"rtol": 0.0, "atol": 1e-10}
REAL = torch.arange(7) < torch.tensor([7, 4, 1])[:, None]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_feed_forward_is_the_same_at_every_position() -> None:
    layer = randomised(FeedForward(small()))
    x = normal(2, 3, 12)
    alone = torch.stack([torch.stack([layer(x[b, t]) for t in range(3)]) for b in range(2)])
    torch.testing.assert_close(layer(x), alone, **TOLERANCE)


def test_add_and_norm_is_layer_norm_of_the_sum() -> None:
    layer = randomised(AddAndNorm(small()))
    x, sublayer = normal(2, 3, 12), normal(2, 3, 12, seed=1)
    total = x + sublayer
    centred = total - total.mean(dim=-1, keepdim=True)
    expected = centred / ((centred**2).mean(dim=-1, keepdim=True) + 1e-5).sqrt() * layer.norm.weight + layer.norm.bias
    torch.testing.assert_close(layer(x, sublayer), expected, **TOLERANCE)


def test_dropout_applies_to_the_sublayer_before_the_sum() -> None:
    layer = randomised(AddAndNorm(small(dropout=0.5)))
    x, sublayer = normal(2, 3, 12), normal(2, 3, 12, seed=1)
    torch.manual_seed(3)
    kept = dropout(sublayer, 0.5)
    torch.manual_seed(3)
    torch.testing.assert_close(layer(x, sublayer), layer.norm(x + kept), **TOLERANCE)
    torch.testing.assert_close(layer(x, 0 * sublayer), layer.norm(x), **TOLERANCE)  # never on x itself
    torch.testing.assert_close(layer.eval()(x, sublayer), layer.norm(x + sublayer), **TOLERANCE)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_encoder_layer_matches_torch(padded: bool, training: bool) -> None:
    ours = randomised(EncoderLayer(small())).train(training)
    theirs = twin_encoder_layer(ours).train(training)
    x = normal(3, 7, 12, seed=1).requires_grad_()
    mask = REAL[:, None, None, :] if padded else None
    output, weights = ours(x, mask)
    expected = theirs(x, src_key_padding_mask=~REAL if padded else None)
    assert weights is None
    compared = REAL if padded else torch.ones_like(REAL)
    torch.testing.assert_close(output[compared], expected[compared], **TOLERANCE)
    gradient, expected_gradient = (torch.autograd.grad((y[compared] ** 2).sum(), x)[0] for y in (output, expected))
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_decoder_layer_matches_torch(padded: bool, training: bool) -> None:
    ours = randomised(DecoderLayer(small()), seed=2).train(training)
    theirs = twin_decoder_layer(ours).train(training)
    x, memory = normal(3, 5, 12, seed=3).requires_grad_(), normal(3, 7, 12, seed=4).requires_grad_()
    mask = REAL[:, None, None, :] if padded else None
    output, *_ = ours(x, memory, mask)
    expected = theirs(x, memory, tgt_mask=causal(5), memory_key_padding_mask=~REAL if padded else None)
    torch.testing.assert_close(output, expected, **TOLERANCE)
    for gradient, expected_gradient in zip(
        *(torch.autograd.grad((y**2).sum(), (x, memory)) for y in (output, expected)), strict=True
    ):
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-9)


def test_returning_weights_does_not_change_the_output() -> None:
    ours = randomised(DecoderLayer(small()), seed=2)
    x, memory = normal(3, 5, 12, seed=3), normal(3, 7, 12, seed=4)
    silent, no_self, no_cross = ours(x, memory, None)
    shown, self_weights, cross_weights = ours(x, memory, None, want_weights=True)
    assert no_self is None
    assert no_cross is None
    assert self_weights.shape == (3, 3, 5, 5)
    assert cross_weights.shape == (3, 3, 5, 7)
    torch.testing.assert_close(shown, silent, **TOLERANCE)
