"""`heedful train --dry-run` prints the cost of training and writes nothing."""

from __future__ import annotations

import functools
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful as api
import synthetic_tasks as tasks
from heedful import presets, recipes
from heedful.config import Recipe
from heedful.model.transformer import Transformer
from heedful.training import hardware, precision
from synthetic_tasks import Outcome, Program

RECIPES = Path(__file__).parents[2] / "recipes"
CHOICE = re.compile(r"((?:data|model|training|decoding)\.\w+) = .+ — .+")
PAPERS = ("wmt14-en-de-base", "wmt14-en-de-big", "wmt14-en-fr-base", "wmt14-en-fr-big")


measured = hardware.flops_per_second


@pytest.fixture(autouse=True)
def fast_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Assume 1 GFLOP/s instead of measuring; one test measures."""
    monkeypatch.setattr(hardware, "flops_per_second", lambda *_: 1e9)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory for temporary files, and the working directory."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def figures(outcome: Outcome) -> dict[str, str]:
    """Name → rest of each line of the report."""
    assert outcome.err.count("Traceback") == 0
    return dict(line.split(": ", 1) for line in outcome.out.splitlines() if not CHOICE.fullmatch(line))


def contents(directory: Path) -> dict[str, tuple[int, bytes]]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def count(text: str) -> int:
    return int(re.sub(r"[^\d].*", "", text.replace(",", "")))


def with_memory(monkeypatch: pytest.MonkeyPatch, available: float) -> None:
    monkeypatch.setattr(hardware, "available_memory", lambda *_: int(available))


def with_native_bf16(monkeypatch: pytest.MonkeyPatch, native: bool) -> None:
    """Pretend to be a processor with or without bf16, which decides `training.precision`."""
    monkeypatch.setattr(precision, "has_native_bf16", lambda _: native)


def test_four_files_without_other_settings(heedful: Program, corpus: dict[str, str], scratch: Path) -> None:
    """Settings and model are those of `heedful train`; --out is optional, no file is left."""
    before = contents(scratch.parent)
    outcome = heedful("train", *tasks.file_options(corpus), "--dry-run", "--set", "training.steps=1")
    assert outcome.code == 0, outcome.err
    assert (contents(scratch.parent), list(scratch.parent.iterdir())) == (before, [scratch])
    assert list(scratch.iterdir()) == []
    chosen = {match[1] for line in outcome.out.splitlines() if (match := CHOICE.fullmatch(line))}
    assert {"data.vocab_size", "model.N", "model.d_model", "training.batch_tokens"} <= chosen
    assert "training.steps" not in chosen
    found = figures(outcome)
    run = api.train(out=scratch.parent / "run", overrides={**corpus, "training.steps": 1, "training.threads": 1})
    assert count(found["parameters"]) == api.load(run.path).model.transformer.parameter_count()
    assert count(found["target tokens per step"]) == run.progress.tokens  # the corpus is a single batch
    assert "from the batches of the corpus" in found["FLOPs per step, counted"]


def test_existing_run_is_not_modified(heedful: Program, tiny_run: Path) -> None:
    before = contents(tiny_run)
    outcome = heedful("train", "--out", tiny_run, "--dry-run", "--set", "training.steps=1000000000")
    assert outcome.code == 0, outcome.err
    assert contents(tiny_run) == before
    assert count(figures(outcome)["parameters"]) == api.load(tiny_run).model.transformer.parameter_count()
    assert "1,000,000,000 steps" in outcome.out
    refused = heedful("train", "--out", tiny_run, "--dry-run", "--set", "model.d_ff=64")
    assert (refused.code, refused.out) == (2, "")
    assert "was started with different settings: model.d_ff was 32, now 64" in refused.err


def test_fine_tuning_uses_the_shape_of_the_initial_model(
    heedful: Program, model: Path, corpus: dict[str, str], scratch: Path
) -> None:
    outcome = heedful("train", *tasks.file_options(corpus), "--init", model, "--dry-run")
    assert outcome.code == 0, outcome.err
    assert count(figures(outcome)["parameters"]) == api.load(model).model.transformer.parameter_count()


def test_preset_with_files(heedful: Program, corpus: dict[str, str], scratch: Path) -> None:
    options = ("--preset", "base", "--set", "data.vocab_size=300")
    outcome = heedful("train", *tasks.file_options(corpus), *options, "--dry-run")
    assert outcome.code == 0, outcome.err
    with torch.device("meta"):
        whole = Transformer(presets.base(vocab_size=300)).parameter_count()
    assert count(figures(outcome)["parameters"]) == pytest.approx(whole, rel=0.001)  # the text may have fewer tokens
    assert "FLOPs of the run, the paper's estimate" in outcome.out


GONE = {f"data.{key}": "/nowhere/text" for key in ("source", "target", "valid_source", "valid_target")}


def test_missing_data_with_complete_settings(heedful: Program, scratch: Path) -> None:
    options = tasks.set_options({**tasks.TINY, **GONE})
    outcome = heedful("train", "--dry-run", "--source", "/nowhere/text", *options)
    assert outcome.code == 0, outcome.err
    found = figures(outcome)
    assert found["data not found here"] == "/nowhere/text and 3 more"
    with torch.device("meta"):
        expected = Transformer(presets.ModelConfig(vocab_size=300, N=1, d_model=16, d_ff=32, h=2)).parameter_count()
    assert count(found["parameters"]) == expected
    assert found["target tokens per step"] == "64 at most (1 × 64 padded)"


@pytest.mark.parametrize("key", ["data.vocab_size", "model.d_model", "training.steps", "training.batch_tokens"])
@pytest.mark.parametrize("tokenizer", [{}, {"data.tokenizer": "/nowhere/tokenizer.model"}])
def test_missing_data_with_settings_left_to_autoconfig(
    heedful: Program, scratch: Path, key: str, tokenizer: dict[str, str]
) -> None:
    given = {name: value for name, value in {**tasks.TINY, **GONE, **tokenizer}.items() if name != key}
    outcome = heedful("train", "--dry-run", "--source", "/nowhere/text", *tasks.set_options(given))
    assert (outcome.code, outcome.out) == (3, "")
    assert f"File /nowhere/text does not exist. {key} would be chosen from the text." in outcome.err


def test_invalid_settings_are_rejected_by_dry_run(heedful: Program, scratch: Path) -> None:
    options = tasks.set_options({**tasks.TINY, **GONE, "model.h": 5})
    outcome = heedful("train", "--dry-run", "--source", "/nowhere/text", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert "does not divide" in outcome.err
    assert heedful("train", "--dry-run").code == 2
    assert heedful("train", RECIPES / "wmt14-en-de-bse.toml", "--dry-run").code == 2


def settings_in(message: str) -> list[str]:
    """Return the first change that the error message suggests, as options."""
    first = message.split("To make it fit, set ")[1].split("; or ")[0]
    found = re.findall(r'((?:training|data|model)\.\w+) = ("?\w+"?)', first)
    assert found, message
    return tasks.set_options(dict(found))


FLOAT32 = ("--set", "training.precision=fp32")  # the automatic choice depends on the processor


@pytest.mark.parametrize("available", [17e9, 8e9, 4.5e9])
def test_run_beyond_memory_is_rejected_with_advice(
    heedful: Program, scratch: Path, monkeypatch: pytest.MonkeyPatch, available: float
) -> None:
    """The base model in float32 with batches of 25,000 tokens: the suggested change fits."""
    with_memory(monkeypatch, available)
    monkeypatch.setattr(hardware, "flops_per_second", lambda *_: pytest.fail("measured for nothing"))
    whole = ("--set", "training.batch_tokens=25000", "--set", "training.accumulate=1", *FLOAT32)
    refused = heedful("train", RECIPES / "wmt14-en-de-base.toml", "--dry-run", *whole)
    assert refused.code == 4
    needed = figures(refused)["memory, total"]
    assert float(needed.split()[0]) * 1e9 > available
    assert f"{needed} needed, {available / 1e9:.2f} GB available (cpu)" in refused.err
    assert "estimated time" not in refused.out
    monkeypatch.setattr(hardware, "flops_per_second", lambda *_: 1e9)
    advice = settings_in(refused.err)
    fitting = heedful("train", RECIPES / "wmt14-en-de-base.toml", "--dry-run", *whole, *advice)
    assert fitting.code == 0, fitting.err
    parts = dict(option.split("=") for option in advice[1::2])
    assert int(parts["training.batch_tokens"]) * int(parts["training.accumulate"]) == pytest.approx(25_000, rel=0.01)


def test_model_too_large_for_any_batch_is_rejected(
    heedful: Program, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_memory(monkeypatch, 1.1e9)
    refused = heedful("train", RECIPES / "wmt14-en-de-base.toml", "--dry-run", *FLOAT32)
    assert refused.code == 4
    assert "Weights, gradients and Adam's moments alone take 1.01 GB" in refused.err
    assert "Choose a smaller model" in refused.err


def test_unknown_memory_size(heedful: Program, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "available_memory", lambda *_: None)
    outcome = heedful("train", RECIPES / "wmt14-en-de-base.toml", "--dry-run")
    assert outcome.code == 0
    assert "memory available" not in outcome.out


def recipe_of(name: str) -> Recipe:
    return recipes.build(recipes.read(RECIPES / f"{name}.toml"))


@pytest.mark.parametrize("name", PAPERS)
def test_paper_recipes_match_presets_and_sections_5_and_6_1(name: str) -> None:
    recipe, (_, _, languages, size) = recipe_of(name), name.split("-")
    preset = presets.named(size)
    dropout = 0.3 if (languages, size) == ("de", "big") else 0.1
    assert recipe.model == replace(preset.model(37_000), dropout=dropout)
    assert recipe.data.vocab_size == {"de": 37_000, "fr": 32_000}[languages]
    training: dict[str, Any] = {**preset.training, "learning_rate": 1.0, "clip_norm": 0.0, "precision": "auto"}
    tokens = training.pop("batch_tokens")
    assert recipe.training.batch_tokens * recipe.training.accumulate == tokens == 25_000
    assert {key: getattr(recipe.training, key) for key in training} == training
    assert (recipe.training.save_every, recipe.training.keep) == ((1_500, 5) if size == "base" else (600, 20))
    assert (recipe.decoding.beam, recipe.decoding.alpha, recipe.decoding.max_extra) == (4, 0.6, 50)
    assert len(recipe.data.source) == len(recipe.data.target) == {"de": 3, "fr": 5}[languages]


@pytest.mark.parametrize("native", [False, True], ids=["fp32", "bf16"])
@pytest.mark.parametrize("name", PAPERS)
def test_paper_recipes_dry_run_on_an_ordinary_machine(
    heedful: Program, scratch: Path, monkeypatch: pytest.MonkeyPatch, name: str, native: bool
) -> None:
    with_memory(monkeypatch, 8e9)
    with_native_bf16(monkeypatch, native)
    outcome = heedful("train", RECIPES / f"{name}.toml", "--data-root", scratch, "--dry-run")
    assert outcome.code == 0, outcome.err
    found = figures(outcome)
    recipe = recipe_of(name)
    with torch.device("meta"):
        built = Transformer(replace(recipe.model, vocab_size=recipe.data.vocab_size)).parameter_count()
    assert count(found["parameters"]) == built
    big = name.endswith("big")
    counted = float(found["FLOPs of the run, counted"].split()[0])
    expected = 9.6e18 if big else 0.94e18
    assert counted == pytest.approx(expected, rel=0.02 if "-de-" in name else 0.1)  # French has fewer tokens
    assert found["FLOPs of the run, the paper's estimate"].split()[0] == ("2.3e19" if big else "3.3e18")
    assert found["data not found here"].startswith(f"{scratch}/data/wmt14/")
    seconds = counted / 1e9
    assert found["estimated time"].startswith(f"{seconds / (365 * 86_400):,.0f}"[:2])
    memory = [float(found[f"memory, {part}"].split()[0]) for part in ("weights", "gradients", "Adam's two moments")]
    # In bf16 each weight has a copy of 2 bytes.
    assert memory == pytest.approx([built * size / 1e9 for size in (6 if native else 4, 4, 8)], abs=0.01)
    assert list(scratch.iterdir()) == []


def test_speed_is_measured(heedful: Program, tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "flops_per_second", functools.partial(measured, seconds=0.1))
    outcome = heedful("train", "--out", tiny_run, "--dry-run")
    assert outcome.code == 0, outcome.err
    speed = float(re.search(r"at ([\d.,e+-]+) GFLOP/s", outcome.out).group(1).replace(",", ""))  # type: ignore[union-attr]
    assert speed > 0


def test_a_time_budget_is_planned_without_training(heedful: Program, corpus: dict[str, str], scratch: Path) -> None:
    outcome = heedful("train", *tasks.file_options(corpus), "--dry-run", "--time", "90s", "--set", "model.N=1")
    assert outcome.code == 0, outcome.err
    assert re.search(r"^training.steps = \d+ — `--time`: 90 seconds$", outcome.out, re.MULTILINE)
    assert re.search(r"^plan: 1 layer, .*, about \d+ (seconds|minutes) on this machine$", outcome.out, re.MULTILINE)
    assert list(scratch.iterdir()) == []


def test_a_time_budget_needs_the_text(heedful: Program, scratch: Path) -> None:
    recipe = RECIPES / "wmt14-en-de-base.toml"
    outcome = heedful("train", recipe, "--data-root", scratch, "--dry-run", "--time", "2h")
    assert (outcome.code, outcome.out) == (3, "")
    assert "`--time` measures training on the text" in outcome.err


def test_a_time_budget_is_ignored_for_an_existing_run(heedful: Program, tiny_run: Path) -> None:
    outcome = heedful("train", "--out", tiny_run, "--dry-run", "--time", "2h")
    assert outcome.code == 0
    assert "`--time` is ignored" in outcome.err
    assert "12 steps" in outcome.out
