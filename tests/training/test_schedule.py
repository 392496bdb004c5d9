"""Eq. 3, and the cooldown after it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from heedful.training.schedule import cooldown, dropout_share, learning_rate, word_dropout_share


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4_000), (1024, 4_000), (128, 1), (256, 300)])
def test_matches_eq_3(d_model: int, warmup: int) -> None:
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


def test_rate_rises_linearly_during_warmup_and_then_falls() -> None:
    rates = [learning_rate(step, 512, 100) for step in range(1, 400)]
    assert rates.index(max(rates)) + 1 == 100
    assert rates[49] == pytest.approx(rates[99] / 2)
    assert all(a < b for a, b in pairwise(rates[:100]))
    assert all(a > b for a, b in pairwise(rates[99:]))
    assert rates[395 - 1] == pytest.approx(rates[99] * (100 / 395) ** 0.5)


def test_cooldown_is_linear_and_ends_with_the_last_step() -> None:
    factors = [cooldown(step, steps=100, cooldown_steps=20) for step in range(1, 101)]
    assert factors[:81] == [1.0] * 81
    assert factors[80:] == pytest.approx([(20 - n) / 20 for n in range(20)])
    assert factors[-1] > 0  # the last update still counts


def test_no_cooldown_changes_nothing() -> None:
    assert {cooldown(step, steps=10, cooldown_steps=0) for step in range(1, 30)} == {1.0}


def test_cooldown_longer_than_the_run_starts_below_1() -> None:
    assert cooldown(1, steps=10, cooldown_steps=40) == 0.25


def test_dropout_warmup_is_linear() -> None:
    assert [dropout_share(step, warmup_steps=4) for step in range(1, 8)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0]


def test_dropout_is_full_without_warmup() -> None:
    assert {dropout_share(step, warmup_steps=0) for step in range(1, 30)} == {1.0}


def test_word_dropout_warms_up_and_ends_with_the_cooldown() -> None:
    shares = [word_dropout_share(step, steps=8, warmup_steps=2, cooldown_steps=3) for step in range(1, 9)]
    assert shares == [0.5, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert [word_dropout_share(step, 3, 0, cooldown_steps=0) for step in (1, 2, 3)] == [1.0, 1.0, 1.0]
