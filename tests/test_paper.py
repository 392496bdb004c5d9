"""The paper, equation by equation and row by row; each test is one statement of it.

The parts are tested against other implementations where they live (tests/model, tests/training, tests/decoding).
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful import presets
from heedful.config import BOS, DecodingConfig, ModelConfig, TrainingConfig
from heedful.decoding.search import length_penalty
from heedful.model.attention import causal_mask, fast_attention, plain_attention
from heedful.model.embeddings import Embedding, sinusoids
from heedful.model.layers import AddAndNorm, FeedForward
from heedful.model.transformer import Transformer
from heedful.training.loss import smoothed_cross_entropy
from heedful.training.optimizer import adam
from heedful.training.schedule import learning_rate

SMALL = ModelConfig(vocab_size=11, N=2, d_model=8, d_ff=12, h=2, dropout=0.0)
EXACT = {"rtol": 0.0, "atol": 1e-12}


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(SMALL).double().eval()


def test_eq_1_scaled_dot_product_attention() -> None:
    q, k, v = normal(1, 1, 3, 4), normal(1, 1, 5, 4, seed=1), normal(1, 1, 5, 6, seed=2)
    exponentials = (q[0, 0] @ k[0, 0].T / 2.0).exp()  # √d_k = 2
    expected = exponentials / exponentials.sum(dim=1, keepdim=True) @ v[0, 0]
    torch.testing.assert_close(plain_attention(q, k, v)[0][0, 0], expected, **EXACT)
    torch.testing.assert_close(fast_attention(q, k, v)[0, 0], expected, **EXACT)


def test_section_3_2_2_widths_of_the_projections() -> None:
    attention = next(iter(Transformer(ModelConfig(vocab_size=9, N=1, d_model=10, h=4, d_k=3, d_v=5)).encoder))
    shapes = {name: tuple(p.shape) for name, p in attention.self_attention.named_parameters() if p.ndim == 2}
    assert shapes == {
        "query.weight": (12, 10),
        "key.weight": (12, 10),
        "value.weight": (20, 10),
        "output.weight": (10, 20),
    }


def test_section_3_2_3_the_decoder_does_not_look_ahead(model: Transformer) -> None:
    assert causal_mask(3, torch.device("cpu")).tolist() == [[True, False, False], [True, True, False], [True] * 3]
    source, target = torch.tensor([[4, 5, 6, 3]]), torch.tensor([[BOS, 7, 8, 9, 10]])
    whole = model(source, target)
    for t in range(1, 6):
        torch.testing.assert_close(model(source, target[:, :t]), whole[:, :t], rtol=0.0, atol=1e-10)


def test_eq_2_feed_forward() -> None:
    layer = FeedForward(SMALL).double()
    x = normal(3, 8)
    inner = x @ layer.inner.weight.T + layer.inner.bias
    expected = torch.maximum(inner, torch.zeros_like(inner)) @ layer.outer.weight.T + layer.outer.bias
    torch.testing.assert_close(layer(x), expected, **EXACT)


def test_section_3_1_post_norm_residual() -> None:
    """LayerNorm(x + Sublayer(x)): after it every position has mean 0 and variance 1."""
    layer = AddAndNorm(SMALL).double()
    x, sublayer = normal(2, 3, 8), normal(2, 3, 8, seed=1)
    total = x + sublayer
    deviation = (total.var(dim=-1, unbiased=False, keepdim=True) + layer.norm.eps).sqrt()
    expected = (total - total.mean(dim=-1, keepdim=True)) / deviation
    torch.testing.assert_close(layer(x, sublayer), expected, **EXACT)


def test_section_3_1_a_stack_ends_with_the_norm_of_its_last_sub_layer(model: Transformer) -> None:
    states = model.encode(torch.tensor([[4, 5, 6]])).states_BSD
    torch.testing.assert_close(states.mean(-1), torch.zeros(1, 3, dtype=torch.float64), rtol=0.0, atol=1e-6)
    torch.testing.assert_close(
        states.var(-1, unbiased=False), torch.ones(1, 3, dtype=torch.float64), rtol=0.0, atol=1e-3
    )
    names = {name.split(".")[0] for name, _ in model.named_parameters()}
    assert names == {"embedding", "encoder", "decoder"}  # no norm of its own after a stack


def test_section_3_4_one_matrix_scaled(model: Transformer) -> None:
    assert sum(p.shape[0] == SMALL.vocab_size for p in model.parameters()) == 1
    ids = torch.tensor([[4, 4, 9]])
    embedded = model.embedding(ids) - sinusoids(3, 8)
    torch.testing.assert_close(embedded, math.sqrt(8) * model.embedding.weight_VD[ids], **EXACT)
    states = normal(1, 3, 8)
    torch.testing.assert_close(model.embedding.logits(states), states @ model.embedding.weight_VD.T, **EXACT)


def test_section_3_5_positions_are_interleaved() -> None:
    table = sinusoids(50, 512)
    for pos, i in [(0, 0), (1, 0), (7, 3), (49, 100), (49, 255)]:
        angle = pos / 10_000 ** (2 * i / 512)
        assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
        assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


def test_table_3_e_learned_positions() -> None:
    embedding = Embedding(ModelConfig(vocab_size=9, d_model=8, h=2, positions="learned", dropout=0.0)).double()
    with torch.no_grad():
        embedding.weight_VD.copy_(normal(9, 8))
        embedding.positions_TD.copy_(normal(512, 8, seed=1))  # type: ignore[union-attr]
    expected = math.sqrt(8) * embedding.weight_VD[[4, 5]] + embedding.positions_TD[:2]  # type: ignore[index]
    torch.testing.assert_close(embedding(torch.tensor([[4, 5]]))[0], expected, **EXACT)


@pytest.mark.parametrize("step", [1, 100, 3_999, 4_000, 4_001, 100_000])
def test_eq_3_learning_rate(step: int) -> None:
    expected = 512**-0.5 * min(step**-0.5, step * 4_000**-1.5)
    assert learning_rate(step, d_model=512, warmup_steps=4_000) == pytest.approx(expected, rel=1e-12)


def test_section_5_3_adam() -> None:
    """β₁ = 0.9, β₂ = 0.98 and ε = 1e-9 by their effects.

    The first moment keeps 0.9 of itself, the second 0.98, and a gradient as small as ε moves a weight by half the rate.
    """
    weight = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = adam([weight])
    optimizer.param_groups[0]["lr"] = 1.0
    weight.grad = torch.tensor([1e-9, 1.0], dtype=torch.float64)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.tensor([-0.5, -1.0], dtype=torch.float64), rtol=0.0, atol=1e-8)
    torch.testing.assert_close(optimizer.state[weight]["exp_avg"], 0.1 * weight.grad, **EXACT)
    torch.testing.assert_close(optimizer.state[weight]["exp_avg_sq"], 0.02 * weight.grad**2, **EXACT)


def test_section_5_4_label_smoothing() -> None:
    """(1 - ε) on the label and ε spread uniformly over the whole vocabulary."""
    logits, label = normal(1, 7), torch.tensor([2])
    wanted = torch.full((7,), 0.1 / 7, dtype=torch.float64)
    wanted[2] += 0.9
    expected = -(wanted * logits[0].log_softmax(dim=0)).sum()
    torch.testing.assert_close(smoothed_cross_entropy(logits, label, 0.1).smoothed, expected, **EXACT)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_section_6_1_length_penalty(alpha: float) -> None:
    """GNMT's ((5 + |Y|) / 6)^α: 1 for a single token."""
    assert length_penalty(1, alpha) == 1.0
    for length in (2, 10, 75):
        assert length_penalty(length, alpha) == pytest.approx(math.exp(alpha * math.log((5 + length) / 6)))


def test_sections_5_and_6_1_defaults() -> None:
    training, decoding, shape = TrainingConfig(), DecodingConfig(), presets.base()
    assert (training.steps, training.warmup_steps, training.batch_tokens) == (100_000, 4_000, 25_000)
    assert (training.label_smoothing, training.clip_norm, training.average) == (0.1, 0.0, 5)
    assert (decoding.beam, decoding.alpha, decoding.max_extra) == (4, 0.6, 50)
    assert (shape.N, shape.d_model, shape.d_ff, shape.h, shape.d_k, shape.d_v) == (6, 512, 2048, 8, 64, 64)
    assert (shape.dropout, shape.attention_dropout, shape.positions) == (0.1, 0.0, "sinusoidal")
    big = presets.big()
    assert (big.N, big.d_model, big.d_ff, big.h, big.d_k, big.dropout) == (6, 1024, 4096, 16, 64, 0.3)


def parameters(**shape: Any) -> int:
    return counted(ModelConfig(**shape))


def counted(config: ModelConfig) -> int:
    with torch.device("meta"):  # shapes only
        return Transformer(config).parameter_count()


def counted_by_hand(vocab_size: int, N: int, d_model: int, d_ff: int, h: int, d_k: int, d_v: int) -> int:
    attention = 2 * (d_model + 1) * h * d_k + (d_model + 1) * h * d_v + (h * d_v + 1) * d_model
    feed_forward = (d_model + 1) * d_ff + (d_ff + 1) * d_model
    norm = 2 * d_model
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    return vocab_size * d_model + N * (encoder + decoder)


BASE = {"vocab_size": 41_000, "N": 6, "d_model": 512, "d_ff": 2048, "h": 8, "d_k": 64, "d_v": 64}
TABLE_3 = [
    ("base", {}, 65.13, 65),
    ("A h=1", {"h": 1, "d_k": 512, "d_v": 512}, None, 65),
    ("A h=4", {"h": 4, "d_k": 128, "d_v": 128}, None, 65),
    ("A h=16", {"h": 16, "d_k": 32, "d_v": 32}, None, 65),
    ("A h=32", {"h": 32, "d_k": 16, "d_v": 16}, None, 65),
    ("B d_k=16", {"d_k": 16}, 58.04, 58),
    ("B d_k=32", {"d_k": 32}, 60.40, 60),
    ("C N=2", {"N": 2}, 35.70, 36),
    ("C N=4", {"N": 4}, 50.42, 50),
    ("C N=8", {"N": 8}, 79.84, 80),
    ("C d_model=256", {"d_model": 256, "d_k": 32, "d_v": 32}, 27.86, 28),
    ("C d_model=1024", {"d_model": 1024, "d_k": 128, "d_v": 128}, 167.99, 168),
    ("C d_ff=1024", {"d_ff": 1024}, 52.54, 53),
    ("C d_ff=4096", {"d_ff": 4096}, 90.32, 90),
]


@pytest.mark.parametrize(
    ("changes", "millions", "published"), [row[1:] for row in TABLE_3], ids=[r[0] for r in TABLE_3]
)
def test_table_3_parameters(changes: dict[str, int], millions: float | None, published: int) -> None:
    shape = BASE | changes
    count = parameters(**shape)
    assert count == counted_by_hand(**shape)
    assert round(count / 1e6) == published
    if millions is not None:
        assert round(count / 1e6, 2) == millions


def test_table_3_d_dropout_and_smoothing_have_no_parameters() -> None:
    assert parameters(**BASE, dropout=0.2) == parameters(**BASE, dropout=0.0) == parameters(**BASE)


def test_table_3_e_parameters_of_learned_positions() -> None:
    assert parameters(**BASE, positions="learned", max_positions=306) == parameters(**BASE) + 306 * 512


def test_table_3_a_widths_follow_from_the_number_of_heads() -> None:
    for h in (1, 4, 16, 32):
        shape = ModelConfig(h=h)
        assert (shape.d_k, shape.d_v) == (512 // h, 512 // h)


def test_table_3_base_and_big_with_37000_tokens() -> None:
    assert round(counted(presets.base(vocab_size=37_000)) / 1e6, 2) == 63.08
    assert round(counted(presets.big(vocab_size=37_000)) / 1e6, 2) == 214.25
    assert round(counted(presets.big(vocab_size=36_000)) / 1e6) == 213  # the published figure
