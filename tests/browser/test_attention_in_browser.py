"""The attention page in a browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.decoding.translator import Attention, Translator
from heedful.inspection.inspector import Inspector
from heedful.views.app_page import write_app_page
from heedful.views.attended_sentence import AttendedSentence

pytestmark = pytest.mark.browser

SOURCE = ["▁the", "▁ha", "t", "</s>"]
TARGET = ["▁der", "▁Hut", "</s>"]
N, H = 2, 3


def attention() -> Attention:
    """Attention where layer 1, head 2 attends to the second token; the rest is uniform."""
    cross = torch.full((N, H, 3, 4), 0.25)
    cross[0, 1] = torch.eye(4)[1]
    return Attention(SOURCE, TARGET, torch.full((N, H, 4, 4), 0.25), torch.eye(3).expand(N, H, 3, 3), cross)


Write = Callable[..., Path]


@pytest.fixture
def write(inspected: Translator, tmp_path: Path) -> Write:
    """`write((source, target, attention), …)` writes a page with this attention."""
    inspector = Inspector(inspected)

    def written(*pairs: tuple[str, str, Attention]) -> Path:
        sentences = [
            AttendedSentence(source, target, replace(inspector.inspect([7, 8, 9, 3], [11, 12, 3]), attention=found))
            for source, target, found in pairs
        ]
        write_app_page(inspector, sentences, tmp_path / "page.html")
        return tmp_path / "page.html"

    return written


@pytest.fixture
def path(write: Write) -> Path:
    return write(("the hat", "der Hut", attention()))


def labels(page: Any, which: str) -> list[str]:
    texts: list[str] = page.locator(f"#lines g[data-{which}] text").all_text_contents()
    return texts


def spaced(tokens: list[str]) -> list[str]:
    """The tokens as the page writes them."""
    return [token.replace("▁", "␣") for token in tokens]


def test_every_head_has_a_matrix(open_page: Any, path: Path) -> None:
    page = open_page(path)
    assert page.locator("#grid .thumb").count() == N * (H + 1)
    assert page.locator("#grid .thumb[aria-pressed=true]").count() == 1
    assert page.locator("#pair-source").input_value() == "the hat"
    assert page.locator("#pair-target").input_value() == "der Hut"
    assert labels(page, "row") == ["der", "Hut", "</s>"]
    assert labels(page, "column") == ["the", "hat", "</s>"]


def test_head_is_selected_by_click_and_keyboard(open_page: Any, path: Path) -> None:
    page = open_page(path)
    page.get_by_label("Layer 1 of 2, head 2 of 3").click()
    assert page.locator("#chosen").text_content() == "Layer 1 of 2, head 2 of 3"
    assert page.url.endswith("#cross/words/1/2")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")  # there is no third layer
    assert page.locator("#chosen").text_content() == "Layer 2 of 2, head 3 of 3"


def test_weights_are_drawn(open_page: Any, path: Path) -> None:
    page = open_page(path, "#cross/tokens/1/2")
    links = page.locator("#lines .link")
    assert links.count() == 3  # one from each row, to the second token
    drawn = [(link.get_attribute("data-column"), link.get_attribute("stroke-opacity")) for link in links.all()]
    assert drawn == [("1", "1")] * 3
    cells = page.locator("#heat .cell")
    assert cells.count() == 12
    assert [cell.get_attribute("fill-opacity") for cell in cells.all()[:4]] == ["0.0000", "1.0000", "0.0000", "0.0000"]


def test_word_weights_are_sums_of_token_weights(open_page: Any, path: Path) -> None:
    page = open_page(path, "#cross/words/1/1")
    assert [cell.get_attribute("fill-opacity") for cell in page.locator("#heat .cell").all()[:3]] == [
        "0.2500",
        "0.5000",
        "0.2500",
    ]


def test_attention_type_and_unit_can_be_switched(open_page: Any, path: Path) -> None:
    page = open_page(path)
    page.get_by_role("radio", name="encoder self-attention").check()
    page.get_by_role("radio", name="tokens").check()
    assert labels(page, "row") == labels(page, "column") == spaced(SOURCE)
    page.get_by_role("radio", name="decoder self-attention").check()
    assert labels(page, "row") == spaced(TARGET)
    assert labels(page, "column") == spaced(["<s>", "▁der", "▁Hut"])  # what each position reads
    assert "masked" in page.locator("#about").text_content()


def test_attended_words_are_listed(open_page: Any, path: Path) -> None:
    page = open_page(path, "#cross/words/1/2")
    page.locator("#lines g[data-row='1']").hover()
    assert page.locator("#reading").text_content() == "“Hut” attends to: hat 1.00"
    page.locator("#lines g[data-column='1']").focus()
    assert page.locator("#reading").text_content().startswith("“hat” is attended to by: der 1.00")


def test_sentence_is_selected(open_page: Any, path: Path, write: Write) -> None:
    assert not open_page(path).locator("#sentence").is_visible()  # there is only one
    other = attention()._replace(source=["▁a", "▁ca", "p", "</s>"])
    page = open_page(write(("the hat", "der Hut", attention()), ("a cap", "die Kappe", other)), "?two#cross/words/1/2")
    assert page.locator("#sentence option").all_text_contents() == ["1. the hat", "2. a cap"]
    assert labels(page, "column") == ["the", "hat", "</s>"]
    page.locator("#sentence").select_option("2")
    assert labels(page, "column") == ["a", "cap", "</s>"]
    assert page.locator("#pair-target").input_value() == "die Kappe"
    assert page.url.endswith("#cross/words/1/2")  # the same head of another sentence


@pytest.mark.parametrize(
    "address", ["#", "#nonsense", "#constructor/toString", "#cross/words/9/9", "#encoder/letters/0/x", "#//1/mean"]
)
def test_invalid_url_fragment_shows_the_default_view(open_page: Any, path: Path, address: str) -> None:
    page = open_page(path, address)
    assert page.locator("#lines .unit").count() > 0
    assert page.locator("#grid .thumb[aria-pressed=true]").count() == 1


def test_text_is_never_executed_as_script(open_page: Any, write: Write) -> None:
    text = "</script><img src=x onerror=document.title='run'><script>document.title='run'</script>"
    tokens = attention()._replace(source=["▁the", text, "t", "</s>"])
    page = open_page(write((text, text, tokens)))
    assert page.title() == f"Attention: {text}"
    for panel in ("steps", "beam", "next", "why"):
        page.evaluate(f"location.hash = 'inside/{panel}'")
        page.wait_for_function(f"!document.getElementById('panel-{panel}').hidden")
    assert page.locator("img").count() == 0
    assert page.locator("#pair-source").input_value() == text
    assert page.title() == f"Inside: {text}"
