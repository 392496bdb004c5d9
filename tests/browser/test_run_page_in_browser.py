"""The run page on a wide screen, on a phone and in dark mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heedful.views.run_page import write_run_page

pytestmark = pytest.mark.browser


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pytest.importorskip("matplotlib")
    log: list[dict[str, Any]] = []
    for step in range(100, 1_100, 100):
        log.append({"step": step, "kind": "train", "loss": 4.0, "lr": 1e-3, "tokens_per_second": 1e4})
        log.append({"step": step, "kind": "valid", "loss": 4.1, "perplexity": 1e6 / step, "bleu": step / 40})
    write_run_page(log, "Run mine", [("sha256", "0123456789abcdef" * 4), ("beam", "4")], tmp_path / "page.html")
    return tmp_path / "page.html"


def test_phone_layout_scrolls_only_vertically(open_page: Any, path: Path) -> None:
    page = open_page(path)
    boxes = [one.bounding_box() for one in page.locator("figure").all()[:2]]
    assert boxes[0]["y"] == boxes[1]["y"]  # side by side where there is room
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    boxes = [one.bounding_box() for one in page.locator("figure").all()[:2]]
    assert boxes[1]["y"] > boxes[0]["y"]


def test_columns_are_aligned(open_page: Any, path: Path) -> None:
    page = open_page(path)
    for column in range(4):
        cells = page.locator(f"tr > :nth-child({column + 1})").all()
        assert {one.evaluate("cell => getComputedStyle(cell).textAlign") for one in cells} == {"right"}


def colours(page: Any) -> tuple[str, str, str]:
    read = "one => getComputedStyle(one)"
    curve = page.locator("svg path[style*='--valid']").first.evaluate(f"{read}.stroke")
    text = page.locator("svg text").first.evaluate(f"{read}.fill")
    return page.locator("body").evaluate(f"{read}.backgroundColor"), curve, text


def test_dark_mode_has_dark_background_and_light_curves(open_page: Any, path: Path) -> None:
    page = open_page(path)
    page.emulate_media(color_scheme="light")
    light = colours(page)
    page.emulate_media(color_scheme="dark")
    dark = colours(page)
    brightness = [[sum(map(int, one[4:-1].split(","))) for one in scheme] for scheme in (light, dark)]
    paper, *drawn = zip(*brightness, strict=True)
    assert paper[0] > 600 > 200 > paper[1]
    assert all(one[0] < 400 < one[1] for one in drawn)
