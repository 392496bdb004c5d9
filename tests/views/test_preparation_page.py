"""The page of `heedful prepare --report`: its figures add up, and text stays text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from heedful.text.cleaning import RULES
from heedful.views.preparation_page import write_preparation_page


@pytest.fixture
def report() -> dict[str, Any]:
    rules: dict[str, Any] = {rule: {"count": 0, "examples": []} for rule in RULES}
    rules["urls"] = {"count": 3, "examples": [[7, "<b>www.example.org</b>", "nichts"]]}
    lengths = {"source": [0] + [2] * 100, "target": [0] * 40 + [200]}
    return {"read": 203, "kept": 200, "rules": rules, "lengths": lengths}


def test_figures_and_escaped_examples(report: dict[str, Any], tmp_path: Path) -> None:
    write_preparation_page(report, "corpus <i>", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<dd>200 (98.5%)</dd>" in text
    assert "<td>urls</td><td>3</td><td>1.48%</td>" in text
    assert "&lt;b&gt;www.example.org&lt;/b&gt;" in text
    assert "corpus &lt;i&gt;" in text
    assert text.count("<section>") == 1


def test_the_histogram_has_every_sentence(report: dict[str, Any], tmp_path: Path) -> None:
    write_preparation_page(report, "corpus", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for side in ("source", "target"):
        counts = re.findall(rf"<title>{side}, (\d+) to (\d+) tokens: ([\d,]+)</title>", text)
        assert sum(int(count) for *_, count in counts) == 200
        assert counts[0][0] == "1"
    assert re.search(r"target, 37 to 40 tokens: 200<", text)
