"""Eq. 3."""

from __future__ import annotations

from itertools import pairwise

import pytest

from heedful.training.schedule import learning_rate


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4_000), (1024, 4_000), (128, 1), (256, 300)])
def test_against_the_equation(d_model: int, warmup: int) -> None:
    for step in (1, 2, 10, warmup - 1, warmup, warmup + 1, 10 * warmup, 300_000):
        if step < 1:
            continue
        rising, falling = step / (warmup * warmup**0.5), 1 / step**0.5
        expected = min(rising, falling) / d_model**0.5
        assert learning_rate(step, d_model, warmup) == pytest.approx(expected, rel=1e-12)
        assert learning_rate(step, d_model, warmup, factor=2.5) == pytest.approx(2.5 * expected, rel=1e-12)


def test_the_base_models_peak() -> None:
    """512^-0.5 · 4000^-0.5."""
    assert learning_rate(4_000, 512, 4_000) == pytest.approx(6.98771e-4, rel=1e-5)


def test_it_rises_linearly_to_its_peak_at_the_end_of_the_warm_up_and_then_falls() -> None:
    rates = [learning_rate(step, 512, 100) for step in range(1, 400)]
    assert rates.index(max(rates)) + 1 == 100
    assert rates[49] == pytest.approx(rates[99] / 2)
    assert all(a < b for a, b in pairwise(rates[:100]))
    assert all(a > b for a, b in pairwise(rates[99:]))
    assert rates[395 - 1] == pytest.approx(rates[99] * (100 / 395) ** 0.5)
