"""The step-by-step forward pass, compared with the real one."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from heedful.config import BOS, EOS
from heedful.inspection.trace import Trace, decode_steps, embed, encode_steps, trace
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model

SOURCE, TARGET = [7, 8, 9, 10, EOS], [BOS, 11, 12]


@pytest.fixture(params=[{}, {"d_k": 4, "d_v": 6}, {"positions": "learned"}], ids=["base", "d_k ≠ d_v", "learned"])
def model(random_model: Callable[..., Model], request: pytest.FixtureRequest) -> Transformer:
    return random_model(**request.param).transformer


@pytest.fixture
def steps(model: Transformer) -> Trace:
    with torch.no_grad():
        return trace(model, torch.tensor(SOURCE), torch.tensor(TARGET))


@torch.no_grad()
def test_logits_and_weights_are_those_of_the_model(model: Transformer, steps: Trace) -> None:
    source, target = torch.tensor([SOURCE]), torch.tensor([TARGET])
    torch.testing.assert_close(steps.logits_TV, model(source, target)[0])
    weights = model.attention_weights(source, target)
    for number, layer in enumerate(steps.encoder):
        torch.testing.assert_close(layer.self_attention.weights_HTS, weights.encoder_NBHSS[number, 0])
    for number, layer in enumerate(steps.decoder):
        assert layer.cross_attention is not None
        torch.testing.assert_close(layer.self_attention.weights_HTS, weights.decoder_NBHTT[number, 0])
        torch.testing.assert_close(layer.cross_attention.weights_HTS, weights.cross_NBHTS[number, 0])


@torch.no_grad()
def test_each_step_follows_from_the_one_before(model: Transformer, steps: Trace) -> None:
    """One row, one head, in plain loops."""
    embedded, layer = steps.source, steps.encoder[0]
    own, d_k = layer.self_attention, model.config.d_k
    assert embedded.scaled_TD[1, 3] == pytest.approx(float(embedded.embedding_TD[1, 3]) * math.sqrt(24))
    torch.testing.assert_close(embedded.input_TD, embedded.scaled_TD + embedded.position_TD)
    products = [sum(float(a * b) for a, b in zip(own.q_HTK[1, 2], k, strict=True)) for k in own.k_HSK[1]]
    assert own.products_HTS[1, 2].tolist() == pytest.approx(products, rel=1e-4, abs=1e-5)
    scores = [product / math.sqrt(d_k) for product in products]
    total = sum(math.exp(score) for score in scores)
    weights = [math.exp(score) / total for score in scores]
    assert own.weights_HTS[1, 2].tolist() == pytest.approx(weights, rel=1e-3, abs=1e-6)
    head = [
        sum(w * float(v[column]) for w, v in zip(weights, own.v_HSK[1], strict=True))
        for column in range(model.config.d_v)
    ]
    d_v = model.config.d_v
    assert own.concatenated_TE[2, d_v : 2 * d_v].tolist() == pytest.approx(head, rel=1e-3, abs=1e-4)


@torch.no_grad()
def test_decoder_scores_are_masked(steps: Trace) -> None:
    scores = steps.decoder[0].self_attention.scores_HTS
    ahead = torch.ones(3, 3, dtype=torch.bool).triu(1)
    assert bool(scores[:, ahead].isinf().all())
    assert bool(scores[:, ~ahead].isfinite().all())


@torch.no_grad()
def test_hidden_source_values(model: Transformer, steps: Trace) -> None:
    """Hiding a position zeroes its values and leaves the first layer's weights as they are."""
    read = torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0])
    memory = encode_steps(model, embed(model, torch.tensor(SOURCE)).input_TD)[-1].output_TD
    hidden = decode_steps(model, embed(model, torch.tensor(TARGET)).input_TD, memory, read)[0].cross_attention
    plain = steps.decoder[0].cross_attention
    assert hidden is not None
    assert plain is not None
    torch.testing.assert_close(hidden.weights_HTS, plain.weights_HTS)
    expected = plain.heads_HTK - plain.weights_HTS[:, :, 1:2] * plain.v_HSK[:, 1:2]
    torch.testing.assert_close(hidden.heads_HTK, expected)
