"""Recipes: reading and writing TOML, and the messages for every kind of error."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heedful import recipes
from heedful.config import SECTIONS, DataConfig, DecodingConfig, ModelConfig, Recipe, TrainingConfig, keys_of
from heedful.errors import ConfigError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)
FILES = st.lists(NAMES.map(lambda name: str(Path("/corpora") / name.lstrip("/"))), max_size=3).map(tuple)
SHARE = st.floats(0, 1, exclude_max=True)
COUNT = st.integers(1, 10**12)

RECIPES = st.builds(
    Recipe,
    data=st.builds(
        DataConfig,
        builtin_pairs=COUNT,
        source=FILES,
        target=FILES,
        valid_source=FILES,
        source_language=TEXT,
        target_language=TEXT,
        tokenizer=st.one_of(st.just(""), NAMES.map(lambda name: str(Path("/t") / name.lstrip("/")))),
        vocab_size=st.integers(261, 10**6),
        max_length=st.integers(2, 100),
        max_ratio=st.floats(1.0, allow_nan=False),
        lowercase=st.booleans(),
    ),
    model=st.builds(
        ModelConfig,
        vocab_size=st.just(37_000),
        N=COUNT,
        d_model=COUNT.map(lambda width: 2 * width),
        d_k=COUNT,
        d_v=COUNT,
        dropout=SHARE,
        attention_dropout=SHARE,
        word_dropout=SHARE,
        positions=st.sampled_from(["sinusoidal", "learned"]),
    ),
    training=st.builds(
        TrainingConfig,
        steps=COUNT,
        seed=st.integers(0, 2**64),
        batch_tokens=st.integers(100, 10**6),
        learning_rate=st.floats(0, exclude_min=True, allow_infinity=False),
        label_smoothing=SHARE,
        clip_norm=st.floats(0, allow_nan=False, allow_infinity=False),
        precision=st.sampled_from(["auto", "fp32", "bf16", "fp16"]),
        average=st.integers(1, 30),
        threads=st.integers(0, 64),
    ),
    decoding=st.builds(
        DecodingConfig,
        beam=COUNT,
        alpha=st.floats(0, allow_nan=False, allow_infinity=False),
        max_extra=st.integers(0, 99),
    ),
)


@settings(max_examples=150)
@given(RECIPES)
def test_recipe_survives_a_toml_round_trip(tmp_path_factory, recipe):
    path = tmp_path_factory.getbasetemp() / "config.toml"
    path.write_bytes(recipes.to_toml(recipe).encode("utf-8"))
    assert recipes.build(recipes.read(path)) == recipe


@settings(max_examples=100)
@given(RECIPES)
def test_written_toml_has_every_key(recipe):
    written = tomllib.loads(recipes.to_toml(recipe))
    assert {section: list(entries) for section, entries in written.items()} == {
        section: list(keys_of(section)) for section in SECTIONS
    }
    assert recipes.build(recipes.as_settings(recipe)) == recipe


@settings(max_examples=50)
@given(RECIPES, RECIPES)
def test_differences_lists_the_unequal_keys(first, second):
    assume(first != second)
    assert recipes.differences(first, first) == {}
    settings = recipes.as_settings(first)
    for name, (before, after) in recipes.differences(first, second).items():
        section, key = name.split(".")
        assert settings[section][key] == before != after
        settings[section][key] = after
    assert recipes.build(settings) == second


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        recipes.build(recipes.read(path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[trainig]\nsteps = 3\n", '{path}: unknown section "trainig". Did you mean "training"?'),
        ("[zzz]\n", '{path}: unknown section "zzz". Allowed: data, decoding, model, training.'),
        ("steps = 3\n", '{path}: unknown section "steps". Allowed: data, decoding, model, training.'),
        ("training = 3\n", "{path}: training must be a section. Write [training] and its keys below it."),
        ("[[training]]\nsteps = 3\n", "{path}: training must be a section. Write [training] and its keys below it."),
        ("[training]\nwarmup = 3\n", '{path}: unknown key "warmup" in [training]. Did you mean "warmup_steps"?'),
        ("[model]\nn = 3\n", '{path}: unknown key "n" in [model]. Allowed: N, N_decoder, activation, '),
        (
            "[model]\nvocab_size = 300\n",
            '{path}: unknown key "vocab_size" in [model]. It belongs in [data]: "data.vocab_size".',
        ),
        (
            "[training]\nalpha = 1.0\n",
            '{path}: unknown key "alpha" in [training]. It belongs in [decoding]: "decoding.alpha".',
        ),
        ("[model]\ndmodel = 300\n", '{path}: unknown key "dmodel" in [model]. Did you mean "d_model"?'),
        ("[training.adam]\nbeta = 1\n", '{path}: unknown key "adam" in [training]. '),
        ("[training]\nsteps = 1.5\n", "{path}: training.steps must be an integer, not 1.5."),
        ('[training]\nsteps = "10"\n', '{path}: training.steps must be an integer, not "10".'),
        ("[training]\nsteps = true\n", "{path}: training.steps must be an integer, not true."),
        ('[model]\ndropout = "0.1"\n', '{path}: model.dropout must be a number, not "0.1".'),
        ("[model]\ndropout = false\n", "{path}: model.dropout must be a number, not false."),
        ("[model]\npositions = 3\n", "{path}: model.positions must be a string, not 3."),
        ("[data]\nlowercase = 1\n", "{path}: data.lowercase must be true or false, not 1."),
        ("[data]\nsource = 3\n", "{path}: data.source must be a string or a list of strings, not 3."),
        ('[data]\nsource = ["a", 3]\n', '{path}: data.source must be a string or a list of strings, not ["a", 3].'),
        ("[training]\nsteps = 0\n", "training.steps must be at least 1, not 0."),
        ("[training]\nsteps = \n", "Recipe {path} is not valid TOML: "),
        ("[training]\nsteps = 1\nsteps = 2\n", "Recipe {path} is not valid TOML: "),
        ("not a recipe", "Recipe {path} is not valid TOML: "),
    ],
)
def test_invalid_recipes_are_rejected(write_text, text, message):
    path = write_text("recipe.toml", text)
    assert refusal(path).startswith(message.format(path=path))


def test_toml_error_names_the_line(write_text):
    assert "line 2" in refusal(write_text("recipe.toml", "[training]\nsteps = = 3\n"))


def test_rules_between_keys(write_text):
    path = write_text("recipe.toml", "[data]\nmax_length = 500\n[training]\nbatch_tokens = 400\n")
    assert refusal(path).startswith("data.max_length = 500 is above training.batch_tokens = 400")


def test_unreadable_recipes_are_rejected(tmp_path, write_text):
    assert refusal(tmp_path / "none.toml") == f"Recipe {tmp_path / 'none.toml'} does not exist. Check the path."
    assert refusal(tmp_path).startswith(f"Cannot read recipe {tmp_path}: ")
    path = write_text("latin.toml", b'[data]\nsource = "Gr\xf6\xdfe"\n')
    assert refusal(path).startswith(f"Cannot read recipe {path}: ")


def test_an_empty_recipe_is_the_defaults(write_text):
    assert recipes.build(recipes.read(write_text("recipe.toml", ""))) == Recipe()


def test_whole_numbers_count_as_numbers(write_text):
    read = recipes.read(write_text("recipe.toml", "[training]\nlearning_rate = 2\n"))
    assert read == {"training": {"learning_rate": 2.0}}
    assert type(read["training"]["learning_rate"]) is float


PATHS = """
[data]
source = ["data/a.en", "/elsewhere/b.en"]
target = "data/a.de"
tokenizer = "t.model"
source_language = "en"
[training]
init = "model"
"""


def test_files_are_named_from_the_recipes_folder(write_text, tmp_path):
    path = write_text("recipes/my.toml", PATHS)
    root = tmp_path / "recipes"
    assert recipes.read(path) == {
        "data": {
            "source": (str(root / "data/a.en"), "/elsewhere/b.en"),
            "target": (str(root / "data/a.de"),),
            "tokenizer": str(root / "t.model"),
            "source_language": "en",
        },
        "training": {"init": str(root / "model")},
    }


def test_files_are_named_from_the_data_root(write_text, tmp_path, monkeypatch):
    path = write_text("recipes/my.toml", PATHS)
    monkeypatch.chdir(tmp_path)
    read = recipes.read(Path("recipes/my.toml"), Path("store"))
    assert read["data"]["source"] == (str(tmp_path / "store/data/a.en"), "/elsewhere/b.en")
    assert recipes.read(Path("recipes/my.toml")) == recipes.read(path)


def test_absolute_paths_do_not_change_what_was_given():
    given = {"data": {"source": ("a",), "tokenizer": ""}}
    absolute = recipes.with_absolute_paths(given, Path("/root"))
    assert absolute == {"data": {"source": ("/root/a",), "tokenizer": ""}}
    assert given == {"data": {"source": ("a",), "tokenizer": ""}}


def test_file_name_that_is_not_utf8_is_rejected():
    """A recipe is UTF-8; a name of other bytes could not be written to config.toml."""
    name = os.fsdecode(b"Gr\xf6\xdfe.en")
    with pytest.raises(ConfigError, match=r"The file name '/root/Gr.*\.en' is not UTF-8.*Rename"):
        recipes.with_absolute_paths({"data": {"source": (name,)}}, Path("/root"))


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("training.steps=20", {"training": {"steps": 20}}),
        (" training.steps = 20 ", {"training": {"steps": 20}}),
        ("training.steps=20_000", {"training": {"steps": 20_000}}),
        ("training.learning_rate=2", {"training": {"learning_rate": 2.0}}),
        ("model.dropout=1e-1", {"model": {"dropout": 0.1}}),
        ("data.lowercase=true", {"data": {"lowercase": True}}),
        ("model.positions=learned", {"model": {"positions": "learned"}}),
        ('model.positions="learned"', {"model": {"positions": "learned"}}),
        ("data.source=a.en", {"data": {"source": ("a.en",)}}),
        ('data.source=["a.en", "b.en"]', {"data": {"source": ("a.en", "b.en")}}),
        ("data.source=a=b.en", {"data": {"source": ("a=b.en",)}}),
        ("data.tokenizer=", {"data": {"tokenizer": ""}}),
        ("data.source_language=en\nx = 1", {"data": {"source_language": "en\nx = 1"}}),
    ],
)
def test_set(assignment, expected):
    assert recipes.overrides([assignment]) == expected


def test_later_settings_win():
    assert recipes.overrides(["model.N=1", "training.steps=5", "model.h=2", "model.N=3"]) == {
        "model": {"N": 3, "h": 2},
        "training": {"steps": 5},
    }


@pytest.mark.parametrize("assignment", ["", "steps=3", "training.steps", "training.=3", "training", "=3", "steps 3"])
def test_set_without_its_parts(assignment):
    with pytest.raises(ConfigError) as caught:
        recipes.overrides([assignment])
    assert str(caught.value) == (
        f'`--set` takes section.key=value, for example training.steps=2000, not "{assignment}".'
    )


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("trainng.steps=3", '`--set`: unknown section "trainng". Did you mean "training"?'),
        (".steps=3", '`--set`: unknown section "". Allowed: data, decoding, model, training.'),
        ("training.step=3", '`--set`: unknown key "step" in [training]. Did you mean "steps"?'),
        ("model.d.k=3", '`--set`: unknown key "d.k" in [model]. '),
        ("training.steps=2k", '`--set`: training.steps must be an integer, not "2k".'),
        ("training.steps=1e3", "`--set`: training.steps must be an integer, not 1000.0."),
        ("training.steps=1\nseed = 2", '`--set`: training.steps must be an integer, not "1\\nseed = 2".'),
        ("data.lowercase=yes", '`--set`: data.lowercase must be true or false, not "yes".'),
        ("data.source=3", "`--set`: data.source must be a string or a list of strings, not 3."),
    ],
)
def test_invalid_set_assignments_are_rejected(assignment, message):
    with pytest.raises(ConfigError) as caught:
        recipes.overrides([assignment])
    assert str(caught.value).startswith(message)


def test_mapping():
    given = {"training.steps": 10, "model.dropout": 0, "data.source": ["a", "b"]}
    assert recipes.from_mapping(given) == {
        "training": {"steps": 10},
        "model": {"dropout": 0.0},
        "data": {"source": ("a", "b")},
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("training.step", 'overrides: unknown key "step" in [training]. Did you mean "steps"?'),
        ("steps", 'overrides: unknown section "steps"'),
        ("training", 'overrides: unknown key "" in [training]'),
    ],
)
def test_invalid_mappings_are_rejected(name, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        recipes.from_mapping({name: 1})


def test_merged_copies_both_mappings():
    first, second = {"model": {"N": 1, "h": 2}}, {"model": {"N": 3}, "data": {"lowercase": True}}
    assert recipes.merged(first, second) == {"model": {"N": 3, "h": 2}, "data": {"lowercase": True}}
    assert first == {"model": {"N": 1, "h": 2}}
    assert second == {"model": {"N": 3}, "data": {"lowercase": True}}


def test_paths_are_keys_of_recipes():
    for section, key in recipes.PATHS:
        assert keys_of(section)[key] in ("str", "tuple[str, ...]")
    listed = {key for section, key in recipes.PATHS if section == "data"}
    assert listed == {key for key, kind in keys_of("data").items() if kind == "tuple[str, ...]"} | {"tokenizer"}
