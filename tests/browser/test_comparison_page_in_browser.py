"""The comparison page on a phone and in the dark, with text that looks like HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heedful.evaluation.comparison import compare_translations
from heedful.views.comparison_page import write_comparison_page

pytestmark = pytest.mark.browser

REFERENCES = [f"Satz <b>{number}</b> & <script>document.title = 'changed'</script> ." for number in range(12)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    worse = ["Satz " + "wort" * 60 for _ in REFERENCES]
    found = compare_translations(worse, REFERENCES, REFERENCES, REFERENCES, ("runs/" + "a" * 200, "<i>b</i>"))
    write_comparison_page(found, tmp_path / "page.html")
    return tmp_path / "page.html"


def test_text_stays_text(open_page: Any, path: Path) -> None:
    page = open_page(path)
    assert page.title() == "Comparison of two translation systems"
    assert page.locator("b, i, script").count() == 0
    assert page.locator("section").count() == 10
    assert REFERENCES[0] in page.locator("body").inner_text()


def test_phone_layout_scrolls_only_vertically(open_page: Any, path: Path) -> None:
    page = open_page(path)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_dark_mode_has_a_dark_background(open_page: Any, path: Path) -> None:
    page = open_page(path)
    brightness = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colour = page.locator("body").evaluate("one => getComputedStyle(one).backgroundColor")
        brightness.append(sum(map(int, colour[4:-1].split(","))))
    assert brightness[0] > 600 > 200 > brightness[1]
