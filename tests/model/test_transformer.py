"""The model against `torch.nn.Transformer` with the same weights, and Figure 1's rules."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_oracle import causal, randomised, small, twin_transformer

from heedful import presets
from heedful.config import BOS, PAD, ModelConfig
from heedful.model.attention import MultiHeadAttention
from heedful.model.embeddings import sinusoids
from heedful.model.transformer import Transformer, padding_mask

TOLERANCE = {"rtol": 0.0, "atol": 1e-9}


def sentences(*lengths: int, seed: int = 0) -> Tensor:
    """Random tokens, right-padded, without special symbols."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, 13, (len(lengths), max(lengths)), generator=generator)
    ids[torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]] = PAD
    return ids


def shifted(target: Tensor) -> Tensor:
    return torch.cat([torch.full((len(target), 1), BOS), target[:, :-1]], dim=1)


def by_torch(model: Transformer, source: Tensor, target_in: Tensor) -> Tensor:
    """Embeddings and projection by hand, the stacks by torch."""
    weight, d_model = model.embedding.weight_VD, model.config.d_model
    x, y = (
        weight[ids] * math.sqrt(d_model) + sinusoids(ids.shape[1], d_model).to(weight) for ids in (source, target_in)
    )
    states = twin_transformer(model).train(model.training)(
        x,
        y,
        tgt_mask=causal(target_in.shape[1]),
        src_key_padding_mask=source == PAD,
        memory_key_padding_mask=source == PAD,
    )
    return states @ weight.T


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("depths", [{"N": 3}, {"N": 3, "N_decoder": 1}, {"N": 1, "N_decoder": 2}], ids=str)
@pytest.mark.parametrize(
    ("source_lengths", "target_lengths"),
    [
        ((1,), (1,)),
        ((6, 6), (4, 4)),
        ((3, 3, 3), (9, 9, 9)),
        ((7, 2, 5), (6, 6, 1)),
        ((2, 8), (5, 3)),
        ((100, 100), (110, 110)),  # long enough for our fast attention, in all three uses
        ((120, 30), (20, 100)),
    ],
)
def test_logits_match_torch(source_lengths: Any, target_lengths: Any, depths: Any, training: bool) -> None:
    model = randomised(Transformer(small(**depths))).train(training)
    source, target = sentences(*source_lengths), sentences(*target_lengths, seed=1)
    target_in = shifted(target)
    real = target != PAD
    logits, expected = model(source, target_in), by_torch(model, source, target_in)
    torch.testing.assert_close(logits[real], expected[real], **TOLERANCE)


def test_the_depths_of_the_stacks() -> None:
    """The same depth twice is the paper's model, with the same weights."""
    deep = Transformer(small(N=4, N_decoder=2))
    assert (len(list(deep.encoder)), len(list(deep.decoder))) == (4, 2)
    assert small(N=3, N_decoder=3) == small(N=3)
    torch.manual_seed(1)
    plain = Transformer(small(N=3))
    torch.manual_seed(1)
    explicit = Transformer(small(N=3, N_decoder=3))
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), explicit.parameters(), strict=True))


def test_head_width_may_differ_from_d_model_over_h() -> None:
    model = randomised(Transformer(small(d_k=5, d_v=2)))
    assert model(sentences(3, 2), shifted(sentences(4, 1))).shape == (2, 4, 13)


def test_no_position_sees_a_later_one() -> None:
    model = randomised(Transformer(small()))
    source, target = sentences(5), sentences(6, seed=1)
    before = model(source, target)
    changed = target.clone()
    changed[0, 3] = 4 if target[0, 3] != 4 else 5
    after = model(source, changed)
    torch.testing.assert_close(after[:, :3], before[:, :3], **TOLERANCE)
    assert not torch.allclose(after[:, 3], before[:, 3])


def test_padding_does_not_change_the_output() -> None:
    model = randomised(Transformer(small()))
    source, target = sentences(5, 3), shifted(sentences(6, 2, seed=1))
    together = model(source, target)
    alone = model(source[1:, :3], target[1:, :2])
    torch.testing.assert_close(together[1:, :2], alone, **TOLERANCE)


def test_padding_mask() -> None:
    assert padding_mask(sentences(3, 3)) is None
    mask = padding_mask(sentences(3, 1))
    assert mask is not None
    assert mask.tolist() == [[[[True, True, True]]], [[[True, False, False]]]]


def captured_weights(model: Transformer, source: Tensor, target: Tensor) -> list[Tensor]:
    """Return softmax(QKᵀ/√d_k) of each attention on the fast path, in layer order."""
    found = []

    def watch(module: MultiHeadAttention, arguments: Any, named: Any) -> None:
        x, memory = arguments[0], arguments[1]
        mask = arguments[2] if len(arguments) > 2 else named.get("mask")
        assert not named.get("want_weights")
        q = module.query(x).unflatten(2, (module.h, -1)).transpose(1, 2)
        scores = torch.einsum("bhtk,bhsk->bhts", q, memory.k_BHSK) / math.sqrt(q.shape[-1])
        if named.get("causal"):
            scores = scores.masked_fill(causal(scores.shape[-1]), -math.inf)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        found.append(scores.softmax(dim=-1))

    hooks = [
        module.register_forward_pre_hook(watch, with_kwargs=True)
        for module in model.modules()
        if isinstance(module, MultiHeadAttention)
    ]
    model(source, target)
    for hook in hooks:
        hook.remove()
    return found


def test_attention_weights_are_those_of_the_fast_path() -> None:
    model = randomised(Transformer(small(N=3))).eval()
    source, target = sentences(5, 3), shifted(sentences(6, 4, seed=1))
    weights = model.attention_weights(source, target)
    captured = captured_weights(model, source, target)
    assert weights.encoder_NBHSS.shape == (3, 2, 3, 5, 5)
    assert weights.decoder_NBHTT.shape == (3, 2, 3, 6, 6)
    assert weights.cross_NBHTS.shape == (3, 2, 3, 6, 5)
    torch.testing.assert_close(weights.encoder_NBHSS, torch.stack(captured[:3]), **TOLERANCE)
    torch.testing.assert_close(weights.decoder_NBHTT, torch.stack(captured[3::2]), **TOLERANCE)
    torch.testing.assert_close(weights.cross_NBHTS, torch.stack(captured[4::2]), **TOLERANCE)
    for kind in weights:
        torch.testing.assert_close(kind.sum(-1), torch.ones_like(kind.sum(-1)))
    assert (weights.decoder_NBHTT[..., causal(6)] == 0).all()
    assert (weights.encoder_NBHSS[:, 1, :, :, 3:] == 0).all()
    assert (weights.cross_NBHTS[:, 1, :, :, 3:] == 0).all()


@torch.no_grad()
def test_gradient_of_the_whole_model_by_finite_differences() -> None:
    model = randomised(Transformer(small()))
    source, target = sentences(5, 3), shifted(sentences(4, 2, seed=1))

    def value() -> Tensor:
        return model(source, target).sin().sum()

    with torch.enable_grad():
        value().backward()
    generator = torch.Generator().manual_seed(9)
    for name, parameter in model.named_parameters():
        step = 1e-6 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if name == "embedding.weight_VD":
            step[PAD] = 0  # as an input it teaches nothing, by intent
        parameter += step
        above = value()
        parameter -= 2 * step
        below = value()
        parameter += step
        assert parameter.grad is not None
        slope = (parameter.grad * step).sum().item()
        assert slope == pytest.approx((above - below).item() / 2, rel=1e-4, abs=1e-10), name


def test_initialisation() -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(vocab_size=2_000, N=1, d_model=64, d_ff=256, h=4, positions="learned"))
    embedding = model.embedding
    assert embedding.weight_VD.std().item() == pytest.approx(64**-0.5, rel=0.02)
    assert embedding.positions_TD is not None
    assert embedding.positions_TD.std().item() == pytest.approx(1.0, rel=0.02)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif ".norm." in name:
            assert (parameter == 1).all(), name
        elif not name.startswith("embedding"):
            limit = math.sqrt(6 / sum(parameter.shape)) * (0.1 if name.endswith("feed_forward.outer.weight") else 1.0)
            assert parameter.abs().max().item() == pytest.approx(limit, rel=0.02), name
            assert parameter.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.05), name


def test_initial_loss_is_about_log_v() -> None:
    """The initial loss is about log V, because logits have size 1 at any width."""
    torch.manual_seed(0)
    model = Transformer(presets.tiny(vocab_size=500)).eval()
    ids = torch.randint(4, 500, (16, 12))
    loss = torch.nn.functional.cross_entropy(model(ids, shifted(ids)).flatten(0, 1), ids.flatten())
    assert loss.item() == pytest.approx(math.log(500) + 0.5, abs=0.5)
