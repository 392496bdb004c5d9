"""A run's page: the curves are the log's figures, and nothing has to be fetched to see them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from heedful.views.run_page import PANELS, Curve, curves_as_svg, points, write_run_page


def entries(steps: int = 40) -> list[dict[str, Any]]:
    log: list[dict[str, Any]] = [{"step": 0, "kind": "start", "parameters": 1}]
    for step in range(10, steps + 1, 10):
        figures = {"loss": 8 / step, "perplexity": 100 / step, "lr": 1e-3, "gradient_norm": 1.0, "tokens_per_second": 9}
        log.append({"step": step, "kind": "train", **figures})
        log.append({"step": step, "kind": "valid", "loss": 9 / step, "perplexity": 110 / step, "bleu": step / 2})
    return log


def test_a_curve_is_the_figures_of_its_kind() -> None:
    log = entries(20)
    log.append({"step": 25, "kind": "train", "loss": None})  # was not finite
    assert points(log, Curve("train", "loss")) == ([10, 20], [0.8, 0.4])
    assert points(log, Curve("valid", "bleu")) == ([10, 20], [5.0, 10.0])
    assert points([], Curve("valid", "bleu")) == ([], [])


@pytest.mark.parametrize("log", [entries(), entries(10), []])
def test_every_panel_is_drawn_whatever_the_log_has(log: list[dict[str, Any]]) -> None:
    drawing = ElementTree.fromstring(curves_as_svg(log))
    assert len([group for group in drawing.iter() if group.get("id", "").startswith("axes_")]) == len(PANELS)


def test_the_same_log_gives_the_same_picture() -> None:
    assert curves_as_svg(entries()) == curves_as_svg(entries())
    assert curves_as_svg(entries()) != curves_as_svg(entries(30))


def test_the_page_is_whole_and_text_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    write_run_page(entries(), "Run <b>&", ["model: <script>alert(1)</script>", "beam: 4"], path)
    page = path.read_text(encoding="utf-8")
    assert "<h1>Run &lt;b&gt;&amp;</h1>" in page
    assert "<script" not in page
    assert "<td>beam</td><td>4</td>" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    ).replace("https://matplotlib.org", "")
    best = page[page.index('<tr class="best">') :]
    assert best.index("20.000") < best.index("</tr>")
