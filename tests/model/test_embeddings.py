"""Sections 3.4 and 3.5: one matrix, scaled; positions by sines and cosines, or learned."""

from __future__ import annotations

import math

import pytest
import torch
from torch_oracle import randomised, small

from heedful.config import PAD, ModelConfig
from heedful.model.dropout import dropout
from heedful.model.embeddings import Embedding, sinusoids
from heedful.model.transformer import Transformer

IDS = torch.tensor([[4, 7, 4, 12], [5, 3, PAD, PAD]])


@pytest.mark.parametrize("d_model", [2, 6, 512])
def test_sinusoids_match_the_formula(d_model: int) -> None:
    table = sinusoids(40, d_model)
    assert table.shape == (40, d_model)
    for pos in (0, 1, 2, 17, 39):
        for i in range(d_model // 2):
            angle = pos / 10_000 ** (2 * i / d_model)
            assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


def test_a_fixed_offset_is_a_rotation() -> None:
    """PE(pos + k) is a linear function of PE(pos), the same for every pos."""
    table, k = sinusoids(60, 16), 5
    for i in range(8):
        angle = k / 10_000 ** (2 * i / 16)
        turn = torch.tensor(
            [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=torch.float64
        )
        pair = table[:, 2 * i : 2 * i + 2]
        torch.testing.assert_close(pair[:-k] @ turn, pair[k:], rtol=0.0, atol=1e-12)


def test_embedding_is_scaled_and_the_position_added() -> None:
    embedding = randomised(Embedding(small()))
    expected = math.sqrt(12) * embedding.weight_VD[IDS] + sinusoids(4, 12)
    torch.testing.assert_close(embedding(IDS), expected, rtol=0.0, atol=1e-12)


def test_word_dropout_keeps_positions() -> None:
    """Whole embeddings are zeroed at the requested rate, and none in eval mode."""
    embedding = randomised(Embedding(small(word_dropout=0.3, dropout=0.0)))
    plain = randomised(Embedding(small()))
    ids = torch.full((40, 100), 5)
    torch.manual_seed(1)
    read, whole, nothing = embedding(ids), plain(ids), sinusoids(100, 12).expand(40, 100, 12)
    left_out_BT = (read - nothing).abs().amax(-1) < 1e-12
    assert left_out_BT.double().mean().item() == pytest.approx(0.3, abs=0.03)
    torch.testing.assert_close(read[~left_out_BT], whole[~left_out_BT], rtol=0.0, atol=1e-12)
    torch.testing.assert_close(embedding.eval()(ids), whole, rtol=0.0, atol=1e-12)


def test_sinusoids_do_not_limit_the_length() -> None:
    embedding = randomised(Embedding(small(max_positions=8)))
    ids = torch.full((1, 600), 5)
    expected = math.sqrt(12) * embedding.weight_VD[5] + sinusoids(600, 12)
    torch.testing.assert_close(embedding(ids)[0], expected, rtol=0.0, atol=1e-12)
    assert list(embedding.state_dict()) == ["weight_VD"]


def test_learned_positions_are_added_and_limited() -> None:
    embedding = randomised(Embedding(small(positions="learned", max_positions=4)))
    assert embedding.positions_TD is not None
    expected = math.sqrt(12) * embedding.weight_VD[IDS] + embedding.positions_TD
    torch.testing.assert_close(embedding(IDS), expected, rtol=0.0, atol=1e-12)
    with pytest.raises(ValueError, match="5 tokens exceeds the 4 learned positions"):
        embedding(torch.cat([IDS, IDS], dim=1)[:, :5])


def test_dropout_applies_to_the_sum() -> None:
    plain, dropping = (randomised(Embedding(small(dropout=p))) for p in (0.0, 0.25))
    torch.manual_seed(5)
    expected = dropout(plain(IDS), 0.25)
    torch.manual_seed(5)
    torch.testing.assert_close(dropping(IDS), expected, rtol=0.0, atol=1e-12)
    torch.testing.assert_close(dropping.eval()(IDS), plain(IDS), rtol=0.0, atol=0.0)


def test_the_projection_is_the_same_matrix_without_scale_or_bias() -> None:
    embedding = randomised(Embedding(small()))
    states = torch.randn(2, 3, 12, dtype=torch.float64)
    torch.testing.assert_close(embedding.logits(states), states @ embedding.weight_VD.T, rtol=0.0, atol=1e-12)


def test_padding_gets_no_gradient() -> None:
    embedding = randomised(Embedding(small()))
    embedding(IDS).sum().backward()
    assert embedding.weight_VD.grad is not None
    assert (embedding.weight_VD.grad[PAD] == 0).all()
    assert (embedding.weight_VD.grad[5] != 0).all()


def test_position_tables_from_inference_work_in_training() -> None:
    """Tables are cached: one created in inference mode must not break a later backward pass."""
    model = Transformer(ModelConfig(vocab_size=9, N=1, d_model=22, d_ff=8, h=2, dropout=0.1))
    with torch.inference_mode():
        model(IDS % 9, IDS % 9)
    model(IDS % 9, IDS % 9).sum().backward()
    assert model.embedding.weight_VD.grad is not None
