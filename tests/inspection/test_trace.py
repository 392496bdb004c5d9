"""The step-by-step forward pass, compared with the real one."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import heedful
from heedful.config import BOS, EOS
from heedful.inspection.step_by_step import step_by_step
from heedful.inspection.switched_heads import KINDS, Head
from heedful.inspection.trace import Trace, decode_steps, embed, encode_steps, trace
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model

SOURCES = Path(heedful.__file__).parent.parent
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


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_each_step_names_the_line_that_computes_it(model: Transformer, steps: Trace, kind: str) -> None:
    tokens = {"source": [*"abcd", "</s>"], "target": ["x", "y", "</s>"]}
    found = step_by_step(steps, Head(kind, 1, 2), 1, tokens, lambda ids: [str(one) for one in ids])
    assert len(found) == (17 if kind == "encoder" else 19)
    for step in found:
        file, line, text = step.code
        assert (SOURCES / file).read_text(encoding="utf-8").splitlines()[line - 1].strip() == text


@torch.no_grad()
def test_steps_have_the_values_of_their_position(model: Transformer, steps: Trace) -> None:
    tokens = {"source": [*"abcd", "</s>"], "target": ["x", "y", "</s>"]}
    found = {
        step.name: step
        for step in step_by_step(steps, Head("cross", 1, 2), 1, tokens, lambda ids: [str(one) for one in ids])
    }
    cross = steps.decoder[1].cross_attention
    assert cross is not None
    assert found["Weights"].values == pytest.approx(cross.weights_HTS[2, 1].tolist(), rel=1e-4)
    assert found["Weights"].labels == tokens["source"]
    assert found["Keys"].shape == f"3 × 5 × {model.config.d_k}"
    assert found["Output of the layer"].values == pytest.approx(steps.decoder[1].output_TD[1].tolist(), rel=1e-4)
    assert found["Probabilities"].values == pytest.approx(
        sorted(steps.logits_TV[1].softmax(dim=-1).tolist(), reverse=True)[:12], rel=1e-3
    )
