"""Automatic choices: sensible at every size, and never against what was given."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from heedful import recipes
from heedful.config import Recipe
from heedful.errors import ConfigError
from heedful.recipes import Settings
from heedful.training.autoconfig import CorpusSize, apply, choose, from_preset, vocabulary

SIZES = [1, 100, 1_000, 5_000, 11_999, 12_000, 30_000, 99_999, 100_000, 200_000, 1_000_000, 5_000_000]
EVERY_KEY = {
    "model": ("N", "d_model", "d_ff", "h", "dropout"),
    "training": (
        "batch_tokens",
        "steps",
        "warmup_steps",
        "learning_rate",
        "validate_every",
        "save_every",
        "patience",
        "optimizer",
        "cooldown_steps",
        "dropout_warmup_steps",
        "select_final",
    ),
    "decoding": ("alpha", "power_alpha", "select_alpha"),
}


def corpus(pairs: int, tokens: int = 15) -> CorpusSize:
    return CorpusSize(pairs, pairs * tokens)


def chosen(pairs: int, gpu: bool = False, given: Settings | None = None, tokens: int = 15) -> Recipe:
    given = given or {}
    return recipes.build(apply(given, choose(given, corpus(pairs, tokens), gpu)))


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("pairs", SIZES)
def test_makes_a_whole_recipe_at_every_size(pairs: int, gpu: bool) -> None:
    recipe = chosen(pairs, gpu)
    training = recipe.training
    assert 200 <= training.steps <= 100_000
    assert training.warmup_steps <= training.steps / 10
    assert training.validate_every <= training.steps / 10
    assert training.save_every <= training.validate_every
    assert 0 < training.learning_rate <= 1
    assert training.patience > 0


@pytest.mark.parametrize("steps", [10, 99, 1_000, 12_345, 1_000_000])
def test_warm_up_is_at_most_a_tenth_of_given_steps(steps: int) -> None:
    recipe = chosen(30_000, given={"training": {"steps": steps}})
    assert recipe.training.steps == steps
    assert recipe.training.warmup_steps <= min(steps / 10, 4_000)


@pytest.mark.parametrize("steps", range(1, 10))
def test_very_few_steps_still_make_a_recipe(steps: int) -> None:
    recipe = chosen(1_000, given={"training": {"steps": steps}})
    assert recipe.training.warmup_steps == 1


@pytest.mark.parametrize("gpu", [False, True])
def test_the_larger_the_corpus_the_larger_everything(gpu: bool) -> None:
    found = [chosen(pairs, gpu) for pairs in SIZES]
    for less, more in pairwise(found):
        for key in ("N", "d_model", "d_ff", "h"):
            assert getattr(less.model, key) <= getattr(more.model, key), key
        assert less.model.dropout >= more.model.dropout
        assert less.training.batch_tokens <= more.training.batch_tokens
        seen = [one.training.steps * one.training.batch_tokens for one in (less, more)]
        assert seen[0] <= 1.06 * seen[1]  # steps are rounded to hundreds


def test_the_larger_the_corpus_the_fewer_epochs() -> None:
    sizes = [1_000, 10_000, 30_000, 200_000, 1_000_000]
    trainings = [chosen(pairs).training for pairs in sizes]
    epochs = [one.steps * one.batch_tokens / corpus(n).tokens for one, n in zip(trainings, sizes, strict=True)]
    assert epochs == sorted(epochs, reverse=True)


def test_the_vocabulary_grows_with_the_corpus_within_limits() -> None:
    sizes = [vocabulary(pairs).value for pairs in [0, *SIZES, 10**9]]
    assert sizes == sorted(sizes)
    assert sizes[0] >= 300
    assert sizes[-1] == 37_000
    assert vocabulary(1_000).value == 1_000
    assert 4_000 <= vocabulary(30_000).value <= 6_000


@pytest.mark.parametrize("gpu", [False, True])
def test_the_peak_of_the_learning_rate_stays_where_training_is_stable(gpu: bool) -> None:
    for pairs in SIZES:
        recipe = chosen(pairs, gpu)
        width, warmup = recipe.model.d_model, recipe.training.warmup_steps
        peak = recipe.training.learning_rate * (width * warmup) ** -0.5
        assert peak <= 0.0025 * 1.01 * min(1, (192 / width) ** 0.5)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.N", 1),
        ("model.d_model", 64),
        ("model.d_ff", 100),
        ("model.h", 1),
        ("model.dropout", 0.0),
        ("training.batch_tokens", 333),
        ("training.steps", 77),
        ("training.warmup_steps", 5),
        ("training.learning_rate", 2.5),
        ("training.validate_every", 3),
        ("training.save_every", 9),
        ("training.patience", 0),
    ],
)
def test_what_was_given_is_respected_and_not_announced(key: str, value: Any) -> None:
    section, name = key.split(".")
    given: Settings = {section: {name: value}}
    choices = choose(given, corpus(30_000), gpu=False)
    assert (section, name) not in {(choice.section, choice.key) for choice in choices}
    assert apply(given, choices)[section][name] == value
    recipes.build(apply(given, choices))


def test_all_given_leaves_nothing_to_choose() -> None:
    recipe = recipes.as_settings(Recipe())
    given = {section: {key: recipe[section][key] for key in keys} for section, keys in EVERY_KEY.items()}
    assert choose(given, corpus(1_000), gpu=False) == []


def test_every_choice_is_printed_with_its_reason() -> None:
    choices = choose({}, corpus(30_000), gpu=False)
    assert {(one.section, one.key) for one in choices} == {
        (section, key) for section, keys in EVERY_KEY.items() for key in keys
    }
    for choice in choices:
        assert str(choice) == f"{choice.section}.{choice.key} = {choice.value} — {choice.why}"
        assert choice.why
    assert any("30,000 pairs" in choice.why for choice in choices)


def test_a_batch_holds_the_longest_sentence_that_was_asked_for() -> None:
    recipe = chosen(1_000, given={"data": {"max_length": 5_000}})
    assert recipe.training.batch_tokens >= 5_000


def test_choices_follow_from_what_was_given() -> None:
    few, many = (chosen(30_000, given={"training": {"batch_tokens": n}}).training for n in (1_000, 4_000))
    assert few.steps == pytest.approx(4 * many.steps, rel=0.1)
    accumulated = chosen(30_000, given={"training": {"batch_tokens": 1_000, "accumulate": 4}}).training
    assert accumulated.steps == many.steps
    assert chosen(30_000, given={"training": {"steps": 400}}).training.validate_every == 34


def test_a_preset_gives_its_shape_and_the_paper_its_training() -> None:
    base = from_preset("base", {})
    assert (base["model"]["N"], base["model"]["d_model"], base["model"]["d_ff"]) == (6, 512, 2048)
    assert base["training"]["warmup_steps"] == 4_000
    assert from_preset("big", {})["training"]["steps"] == 300_000
    assert from_preset("tiny", {})["training"] == {}
    with pytest.raises(ConfigError, match=r'Unknown preset "bse"\. Did you mean "base"'):
        from_preset("bse", {})


@pytest.mark.parametrize("given", [{"d_model": 300}, {"d_model": 512}, {"h": 6}, {"h": 5}, {"h": 16, "d_model": 64}])
def test_the_rest_of_the_shape_follows_what_was_given(given: dict[str, int]) -> None:
    for size in (CorpusSize(1_000, 18_000), CorpusSize(30_000, 500_000), CorpusSize(200_000, 5_000_000)):
        settings: dict[str, dict[str, Any]] = {"model": dict(given)}
        shape = recipes.build(apply(settings, choose(settings, size, gpu=False))).model
        assert {key: getattr(shape, key) for key in given} == given
        assert shape.d_k * shape.h == shape.d_model
        assert shape.d_ff == 4 * shape.d_model


def test_the_heads_of_a_preset_follow_what_was_given() -> None:
    settings = recipes.merged(from_preset("base", {}), {"model": {"h": 16}})
    assert recipes.build(settings).model.d_k == 32
    varied = recipes.merged(from_preset("table3-b-dk16", {}), {"training": {"steps": 5}})
    assert recipes.build(varied).model.d_k == 16
    assert recipes.build(varied).model.d_v == 64


def test_the_papers_warm_up_belongs_to_the_papers_steps() -> None:
    assert from_preset("base", {})["training"]["warmup_steps"] == 4_000
    assert from_preset("base", {})["training"]["save_every"] * 0.4 == 600  # seconds: ten minutes, section 6.1
    assert from_preset("big", {})["training"]["save_every"] * 1.0 == 600
    assert not {"warmup_steps", "save_every"} & from_preset("base", {"training": {"steps": 1_000}})["training"].keys()


@pytest.mark.parametrize(
    "own",
    [
        {"optimizer": "adam"},
        {"warmup_steps": 100},
        {"learning_rate": 0.5},
        {"cooldown_steps": 0},
    ],
)
def test_a_schedule_of_ones_own_is_not_mixed_with_a_chosen_one(own: dict[str, Any]) -> None:
    choices = choose({"training": own}, corpus(1_000), gpu=False)
    keys = {choice.key for choice in choices}
    assert not keys & {"optimizer", "cooldown_steps", "word_dropout", "bidirectional_steps", "select_alpha"}


GENERAL: Settings = {"training": {"init": "runs/general"}, "model": {"N": 6, "d_model": 512, "d_ff": 2048, "h": 8}}


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("pairs", SIZES)
def test_fine_tuning_is_gentle_and_short(pairs: int, gpu: bool) -> None:
    """A tenth of the peak learning rate, and at most as many epochs as from scratch."""
    recipe, from_scratch = chosen(pairs, gpu, GENERAL), chosen(pairs, gpu, {"model": GENERAL["model"]})
    training = recipe.training
    peaks = [one.training.learning_rate * (512 * one.training.warmup_steps) ** -0.5 for one in (recipe, from_scratch)]
    assert peaks[0] <= 1.1 * 0.1 * 0.0025 * (192 / 512) ** 0.5
    assert peaks[0] < peaks[1]
    assert 100 <= training.steps <= from_scratch.training.steps
    assert training.cooldown_steps == training.steps // 3
    assert (training.optimizer, training.select_final, training.bidirectional_steps) == ("adam", True, 0)
    assert recipe.model.word_dropout == 0


def test_more_text_gets_fewer_epochs_and_less_dropout() -> None:
    recipes_by_size = [chosen(pairs, given=GENERAL) for pairs in (5_000, 50_000, 500_000)]
    epochs = [
        recipe.training.steps * recipe.training.batch_tokens / (15 * pairs)
        for recipe, pairs in zip(recipes_by_size, (5_000, 50_000, 500_000), strict=True)
    ]
    assert [round(value) for value in epochs] == [10, 5, 3]
    dropout = [recipe.model.dropout for recipe in recipes_by_size]
    assert dropout == sorted(dropout, reverse=True)


@pytest.mark.parametrize("own", [{"optimizer": "muon"}, {"learning_rate": 0.5}, {"cooldown_steps": 0}])
def test_a_given_schedule_of_fine_tuning_is_kept(own: dict[str, Any]) -> None:
    given = {**GENERAL, "training": {**GENERAL["training"], **own}}
    keys = {choice.key for choice in choose(given, corpus(1_000), gpu=False)}
    assert not keys & {"select_final", "cooldown_steps", "optimizer"}


@pytest.mark.parametrize("name", ["base", "big", "table3-c-n2"])
def test_a_preset_of_the_paper_trains_as_in_the_paper(name: str) -> None:
    given = from_preset(name, {"training": {"steps": 500}})
    recipe = recipes.build(apply(given, choose(given, corpus(30_000), gpu=False)))
    assert recipe.training.optimizer == "adam"
    assert recipe.training.cooldown_steps == 0
    assert recipe.decoding.alpha == 0.6


def test_only_a_text_that_is_repeated_often_gets_word_dropout() -> None:
    assert chosen(1_000).model.word_dropout > 0
    assert chosen(1_000).training.bidirectional_steps > 0
    assert chosen(200_000).model.word_dropout == 0
    assert chosen(200_000).training.bidirectional_steps == 0


def test_a_given_alpha_or_average_is_final() -> None:
    recipe = chosen(30_000, given={"training": {"average": 3}, "decoding": {"alpha": 1.0}})
    assert (recipe.training.average, recipe.decoding.alpha) == (3, 1.0)
    assert not recipe.training.select_final
    assert not recipe.decoding.select_alpha
