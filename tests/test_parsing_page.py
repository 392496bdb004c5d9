"""docs/results/parsing.md says exactly what its benchmark measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

import parsing_page

DATA, PAGE = ROOT / "docs" / "results" / "parsing.json", ROOT / "docs" / "results" / "parsing.md"


def test_the_page_is_drawn_from_the_figures() -> None:
    content = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else None
    page = PAGE.read_text(encoding="utf-8")
    assert parsing_page.fill_results(page, content) == page


def test_figures_make_a_table_and_a_picture(tmp_path: Path) -> None:
    rows = [made_up(424, 40.0), made_up(3_396, 70.5)]
    (tmp_path / "parsing.json").write_text(json.dumps({"together": 2, "rows": rows}))
    (tmp_path / "parsing.md").write_text(f"before\n{parsing_page.BEGIN}\nold\n{parsing_page.END}\nafter\n")
    parsing_page.write(tmp_path)
    text = (tmp_path / "parsing.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| 424 | 17 | 5.0 min | 41.00 | **40.00** | 39.00 | 42.00 | 43.00 | 12.0% | 80.0% |" in text
    assert "| 3,396 | 17 | 5.0 min | 71.50 | **70.50** |" in text
    assert (tmp_path / "images" / "parsing.png").stat().st_size > 1_000
    parsing_page.write(tmp_path)
    assert (tmp_path / "parsing.md").read_text() == text


def made_up(trees: int, f1: float) -> dict[str, Any]:
    scores = {
        "sentences": 9,
        "well_formed": 80.0,
        "all": {"f1": f1, "precision": 39.0, "recall": 42.0, "complete_match": 12.0},
        "up_to_40_words": {"f1": 43.0},
    }
    valid = {**scores, "all": {"f1": f1 + 1}}
    curve = [{"step": 1, "nll": 2.0, "bleu": 0.0}, {"step": 2, "nll": 1.0, "bleu": 3.0}]
    row = {"trees": trees, "parameters": 1_000, "steps": 2, "epochs": 17.2, "seconds": 300.0, "validation": curve}
    return {**row, "valid": valid, "test": scores}
