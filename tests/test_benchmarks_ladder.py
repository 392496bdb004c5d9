"""The ladder of variants: it trains each on a corpus part, records it, writes the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import heedful
import synthetic_tasks as tasks
from heedful import recipes

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import ladder

PAGE = ladder.DOCS / "ladder.md"


@pytest.fixture
def climb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`climb("default")`: run the script on a tiny corpus, and return the recorded runs."""
    files = tasks.tiny_corpus(tmp_path / "text")
    automatic = {key: value for key, value in tasks.TINY.items() if "warmup" not in key and "rate" not in key}
    automatic.pop("training.threads")
    # Keys of a variant come last, so they override these.
    monkeypatch.setattr(ladder, "VARIANTS", {"default": automatic, "deep": {**automatic, "model.N": 2}})
    monkeypatch.setattr(ladder, "PAIRS", (40,))
    named = [part for key, path in files.items() for part in (f"--{key.removeprefix('data.').replace('_', '-')}", path)]

    def climb(*variants: str) -> list[ladder.Run]:
        table = tmp_path / "ladder.json"
        options = ["--out", str(tmp_path / "runs"), "--pairs", "40", "--table", str(table), "--threads", "1"]
        monkeypatch.setattr(sys, "argv", ["ladder.py", *named, *options, "--variants", *variants])
        ladder.main()
        found: list[ladder.Run] = json.loads(table.read_text())
        return found

    return climb


def test_each_variant_is_trained_once_and_the_page_says_what_is_missing(
    climb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = climb("default")
    page = (tmp_path / "ladder.md").read_text()
    assert f"| {first['greedy']:.2f} | {first['beam']:.2f} | {first['nll']:.2f} |" in page
    assert "`model.N=2`" in page
    assert page.count("| not run |") == 1
    assert len((tmp_path / "runs" / "text" / "40.source").read_text().splitlines()) == 40
    trained: list[Path] = []
    train = heedful.train
    monkeypatch.setattr(heedful, "train", lambda **given: (trained.append(given["out"]), train(**given))[1])
    runs = climb("default", "deep")
    assert [path.name for path in trained] == ["40-deep"]
    assert runs[0] == first
    assert [run["variant"] for run in runs] == ["default", "deep"]
    assert all(run["steps"] == 12 and run["alpha"] >= 0 and run["measured"]["commit"] for run in runs)
    assert "not run" not in (tmp_path / "ladder.md").read_text()


@pytest.mark.parametrize("name", ladder.VARIANTS)
def test_variants_are_valid_settings(name: str) -> None:
    """With the automatic choices for a small corpus."""
    from heedful.training import autoconfig

    given = recipes.from_mapping(ladder.VARIANTS[name])
    choices = autoconfig.choose(given, autoconfig.CorpusSize(5_000, 80_000), gpu=False)
    recipe = recipes.build(autoconfig.apply(given, choices))
    assert recipe.training.select_final
    for key, value in ladder.VARIANTS[name].items():
        section, _, key_name = key.partition(".")
        assert getattr(getattr(recipe, section), key_name) == value


def test_the_page_matches_the_recorded_runs() -> None:
    assert PAGE.read_text(encoding="utf-8") == ladder.page(ladder.read(ladder.DOCS / "ladder.json"))
