"""The run page: curves match the log, and the page is self-contained."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from heedful.views.run_page import PANELS, Curve, panel_as_svg, points, write_run_page


def entries(steps: int = 40) -> list[dict[str, Any]]:
    log: list[dict[str, Any]] = [{"step": 0, "kind": "start", "parameters": 1}]
    for step in range(10, steps + 1, 10):
        figures = {"loss": 8 / step, "perplexity": 100 / step, "lr": 1e-3, "gradient_norm": 1.0, "tokens_per_second": 9}
        log.append({"step": step, "kind": "train", **figures})
        log.append({"step": step, "kind": "valid", "loss": 9 / step, "perplexity": 110 / step, "bleu": step / 2})
    return log


def written(tmp_path: Path, log: list[dict[str, Any]], title: str = "Run", facts: Any = ()) -> str:
    path = tmp_path / "new" / "page.html"
    write_run_page(log, title, facts, path)
    return path.read_text(encoding="utf-8")


def test_curve_has_the_values_of_its_kind() -> None:
    log = entries(20)
    log.append({"step": 25, "kind": "train", "loss": None})  # was not finite
    assert points(log, Curve("train", "loss")) == ([10, 20], [0.8, 0.4])
    assert points(log, Curve("valid", "bleu")) == ([10, 20], [5.0, 10.0])
    assert points([], Curve("valid", "bleu")) == ([], [])


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
@pytest.mark.parametrize("steps", [10, 40, 100_000])
def test_a_panel_has_titles_and_its_curves(panel: Any, steps: int) -> None:
    log = [entry | {"step": entry["step"] * steps // 40} for entry in entries(40)]
    drawing = ElementTree.fromstring(panel_as_svg(panel, log))
    texts = [one.text for one in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert {"step", panel.unit} <= set(texts)
    strokes = "".join(one.get("style", "") for one in drawing.iter("{http://www.w3.org/2000/svg}path"))
    for curve in panel.curves:
        assert f"var(--{curve.kind})" in strokes


def test_colours_are_the_page_s_so_that_curves_follow_dark_mode() -> None:
    for panel in PANELS:
        assert set(re.findall(r"#[0-9a-f]{6}\b", panel_as_svg(panel, entries()))) <= {"#ffffff"}  # of hidden patches
        assert "currentColor" in panel_as_svg(panel, entries())


def test_steps_are_whole_numbers() -> None:
    log = [{"step": step, "kind": "train", "lr": 1_000.0} for step in (1, 2, 3)]
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", panel_as_svg(PANELS[3], log))
    assert {"0", "1", "2", "3"} <= set(texts)
    assert not any(text in ("0.5", "1.5", "2.5") for text in texts)


def test_the_same_log_gives_the_same_picture() -> None:
    assert panel_as_svg(PANELS[0], entries()) == panel_as_svg(PANELS[0], entries())
    assert panel_as_svg(PANELS[0], entries()) != panel_as_svg(PANELS[0], entries(30))


@pytest.mark.parametrize(("log", "drawn"), [(entries(), 6), ([{"step": 0, "kind": "start"}], 0), ([], 0)])
def test_panel_without_values_says_so(tmp_path: Path, log: list[dict[str, Any]], drawn: int) -> None:
    page = written(tmp_path, log)
    assert page.count("<svg") == drawn
    assert page.count("nothing logged yet") == len(PANELS) - drawn


def test_ids_are_unique(tmp_path: Path) -> None:
    ids = re.findall(r'\bid="([^"]*)"', written(tmp_path, entries()))
    assert len(ids) == len(set(ids))


def test_the_page_is_whole_and_text_stays_text(tmp_path: Path) -> None:
    page = written(tmp_path, entries(), "Run <b>&", [("model", "<script>alert(1)</script>"), ("beam", "4")])
    assert "<h1>Run &lt;b&gt;&amp;</h1>" in page
    assert "<script" not in page
    assert "<dt>beam</dt><dd>4</dd>" in page
    assert set(re.findall(r"https?://[\w.]+", page)) <= {"http://www.w3.org"}  # names of XML, never fetched
    best = page[page.index('<tr class="best">') :]
    assert best.index("20.00") < best.index("</tr>")
    rows = re.findall(r"<tr.*?</tr>", page)
    assert len({len(re.findall("<t[dh]>", row)) for row in rows}) == 1  # as many cells in each row
