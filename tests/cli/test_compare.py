"""`heedful compare`: models and files, as text, JSON and a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from synthetic_tasks import Program


@pytest.fixture
def test_set(corpus: dict[str, str]) -> tuple[str, ...]:
    return ("--source", corpus["data.valid_source"], "--reference", corpus["data.valid_target"])


@pytest.fixture
def worse(corpus: dict[str, str], tmp_path: Path) -> Path:
    """A file of translations, all the same, with characters that mean something in HTML."""
    path = tmp_path / "worse"
    lines = len(Path(corpus["data.valid_target"]).read_text().splitlines())
    path.write_text("<script>alert(1)</script> & a b\n" * lines)
    return path


def test_a_model_is_compared_by_what_it_translates(
    heedful: Program, tiny_run: Path, worse: Path, test_set: tuple[str, ...], tmp_path: Path
) -> None:
    """A RUN beside a file is the same as its output beside this file."""
    mixed = heedful("compare", tiny_run, worse, *test_set, "--json")
    assert mixed.code == 0
    assert mixed.err.splitlines() == [f"translating 6 lines with {tiny_run}", "running significance tests"]
    translated = heedful("translate", tiny_run, "--input", test_set[1]).out
    (tmp_path / "output").write_text(translated)
    files = heedful("compare", tmp_path / "output", worse, *test_set, "--json")
    first, second = json.loads(mixed.out), json.loads(files.out)
    assert (first.pop("a"), second.pop("a")) == (str(tiny_run), str(tmp_path / "output"))
    assert first == second
    evaluated = json.loads(heedful("evaluate", tiny_run, *test_set, "--json").out)
    assert first["scores"][0]["a"]["value"] == evaluated["BLEU"]["value"]
    assert first["scores"][1]["a"]["value"] == evaluated["chrF"]["value"]


def test_as_text(heedful: Program, corpus: dict[str, str], worse: Path, test_set: tuple[str, ...]) -> None:
    outcome = heedful("compare", worse, corpus["data.valid_target"], *test_set)
    lines = outcome.out.splitlines()
    assert outcome.code == 0
    assert lines[0] == f"A  {worse}"
    assert any(line.startswith("  BLEU  ") and "100.00 ± 0.00" in line for line in lines)
    assert "chrF: B is better by" in outcome.out
    assert "6 sentences: A has the higher chrF in 0, B in 6; 0 equal." in lines
    assert outcome.out.count("seed:12345") == 4


def test_as_a_page(heedful: Program, corpus: dict[str, str], worse: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    outcome = heedful(
        "compare", worse, corpus["data.valid_target"], "--reference", corpus["data.valid_target"], "--out", page
    )
    assert (outcome.code, outcome.out) == (0, f"{page}\n")
    text = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; a b" in text
    assert "<script" not in text
    assert "http" not in text  # works offline
    assert "prefers-color-scheme: dark" in text
