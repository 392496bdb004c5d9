"""Contrastive attribution against finite differences, ablation and known correlations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from heedful.config import BOS, EOS
from heedful.inspection.contrast import contrast, rank_agreement
from heedful.inspection.trace import embed
from heedful.model.attention import MultiHeadAttention
from heedful.model.transformer import Memory, Transformer
from heedful.storage.model_directory import Model

SOURCE, SHIFTED = [7, 8, 9, 10, EOS], [BOS, 11, 12, 13]
CHOSEN, OTHER, POSITION = 30, 31, 2


@pytest.fixture
def model(random_model: Callable[..., Model]) -> Transformer:
    return random_model().transformer.double()


def difference_with(model: Transformer, scaled_SD: torch.Tensor) -> float:
    """Return the logit difference from scaled source embeddings, by the model's layers."""
    x_BSD = (scaled_SD + model.embedding.positions(len(SOURCE)))[None]
    for layer in model.encoder:
        x_BSD, _ = layer(x_BSD, None)
    state_D = model.decode(torch.tensor([SHIFTED]), Memory(x_BSD, None))[0, POSITION]
    logits = model.embedding.logits(state_D)
    return float(logits[CHOSEN] - logits[OTHER])


@torch.no_grad()
def test_difference_is_that_of_the_log_probabilities(model: Transformer) -> None:
    log_p = model(torch.tensor([SOURCE]), torch.tensor([SHIFTED]))[0, POSITION].log_softmax(dim=-1)
    found = contrast(model, SOURCE, SHIFTED, POSITION, CHOSEN, OTHER)
    assert found.difference == pytest.approx(float(log_p[CHOSEN] - log_p[OTHER]))


@torch.no_grad()
def test_input_times_gradient_equals_finite_differences(model: Transformer) -> None:
    found = contrast(model, SOURCE, SHIFTED, POSITION, CHOSEN, OTHER)
    scaled_SD = embed(model, torch.tensor(SOURCE)).scaled_TD
    step = 1e-6
    for token in range(len(SOURCE)):
        changed = [scaled_SD.clone(), scaled_SD.clone()]
        changed[0][token] *= 1 + step
        changed[1][token] *= 1 - step
        slope = (difference_with(model, changed[0]) - difference_with(model, changed[1])) / (2 * step)
        assert found.input_times_gradient[token] == pytest.approx(slope, rel=1e-5, abs=1e-7)


@torch.no_grad()
def test_value_zeroing_equals_hooks_on_the_value_projections(model: Transformer) -> None:
    found = contrast(model, SOURCE, SHIFTED, POSITION, CHOSEN, OTHER)
    scaled_SD = embed(model, torch.tensor(SOURCE)).scaled_TD
    before = difference_with(model, scaled_SD)
    for token in range(len(SOURCE)):

        def zero(_: object, __: object, values: torch.Tensor, token: int = token) -> torch.Tensor:
            values = values.clone()
            values[:, token] = 0
            return values

        modules: list[MultiHeadAttention] = [layer.cross_attention for layer in model.decoder]
        handles = [module.value.register_forward_hook(zero) for module in modules]
        fall = before - difference_with(model, scaled_SD)
        for handle in handles:
            handle.remove()
        assert found.value_zeroing[token] == pytest.approx(fall, rel=1e-6, abs=1e-9)


@torch.no_grad()
def test_attention_is_the_mean_of_the_cross_attention_weights(model: Transformer) -> None:
    found = contrast(model, SOURCE, SHIFTED, POSITION, CHOSEN, OTHER)
    weights = model.attention_weights(torch.tensor([SOURCE]), torch.tensor([SHIFTED])).cross_NBHTS
    assert found.attention == pytest.approx(weights[:, 0, :, POSITION].mean(dim=(0, 1)).tolist())


def test_swapping_the_words_changes_the_sign(model: Transformer) -> None:
    one = contrast(model, SOURCE, SHIFTED, POSITION, CHOSEN, OTHER)
    other = contrast(model, SOURCE, SHIFTED, POSITION, OTHER, CHOSEN)
    assert one.input_times_gradient == pytest.approx([-x for x in other.input_times_gradient])
    assert one.agreement == pytest.approx(other.agreement)


def test_works_in_inference_mode(model: Transformer) -> None:
    expected = contrast(model, SOURCE, SHIFTED, POSITION, CHOSEN, OTHER)
    with torch.inference_mode():
        assert contrast(model, SOURCE, SHIFTED, POSITION, CHOSEN, OTHER) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1.0, 2.0, 3.0], [10.0, 20.0, 90.0], 1.0),
        ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], -1.0),
        ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 4.0, 3.0, 5.0], 0.8),  # 1 - 6 Σd² / n(n² - 1)
        ([1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 5.0, 5.0], 1.0),  # ties
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], 0.0),
    ],
)
def test_rank_agreement(a: list[float], b: list[float], expected: float) -> None:
    assert rank_agreement(torch.tensor(a), torch.tensor(b)) == pytest.approx(expected)
