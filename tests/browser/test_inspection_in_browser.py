"""The Attention and Inside views in a browser, compared with Python's numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from heedful.decoding.translator import Translator
from heedful.inspection.inspector import Inspection, Inspector
from heedful.inspection.switched_heads import Head
from heedful.views.app_page import write_app_page
from heedful.views.attended_sentence import attended

pytestmark = pytest.mark.browser

TEXT = "ba bo lu"
QUERY = "q=ba+bo+lu&source=en&target=de"
AXE = Path(__file__).parent / "axe" / "axe.min.js"


@pytest.fixture(scope="module")
def inspector(inspected: Translator) -> Inspector:
    return Inspector(inspected)


@pytest.fixture(scope="module")
def plain(inspector: Inspector) -> Inspection:
    return inspector.inspect(inspector.translator.ids(TEXT))


def query(page: Any) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def written(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")


def test_probability_of_the_translation(
    open_page: Any, inspected_site: str, inspector: Inspector, plain: Inspection
) -> None:
    page = open_page(f"{inspected_site}attend?{QUERY}")
    assert page.locator("#pair-target").input_value() == inspector.translator.text(plain.own)
    assert f"log-probability {written(plain.log_probability)}" in page.locator("#probability").text_content()


def test_weights_in_the_matrix_are_those_of_the_model(open_page: Any, inspected_site: str, plain: Inspection) -> None:
    page = open_page(f"{inspected_site}attend?{QUERY}#cross/tokens/2/3")
    found = [float(cell.get_attribute("fill-opacity")) for cell in page.locator("#heat .cell").all()]
    assert found == pytest.approx(plain.attention.cross[1, 2].flatten().tolist(), abs=1e-4)


def test_head_is_switched_off_and_on(open_page: Any, inspected_site: str, inspector: Inspector) -> None:
    page = open_page(f"{inspected_site}attend?{QUERY}")
    for name in ("Layer 2, head 1: on", "Layer 2, head 3: on"):
        page.get_by_label(name).click()
        page.get_by_label(name.replace("on", "off")).wait_for()
    off = {Head("cross", 1, 0), Head("cross", 1, 2)}
    source = inspector.translator.ids(TEXT)
    expected = inspector.inspect(source, off=off)
    assert query(page)["off"] == "cross.2.1,cross.2.3"
    said = page.locator("#effect-text").text_content()
    assert f"{written(expected.all_on_log_probability)} → {written(expected.log_probability)}" in said
    now = inspector.translator.text(expected.tree.ids(expected.tree.best))
    assert page.locator("#translation-now").text_content() == now
    page.reload()
    assert page.locator("#translation-now").text_content() == now
    page.get_by_role("button", name="switch all on").click()
    page.get_by_label("Layer 2, head 1: on").wait_for()
    assert "off" not in query(page)


def test_source_is_edited_live(open_page: Any, inspected_site: str, inspector: Inspector) -> None:
    page = open_page(f"{inspected_site}attend?{QUERY}")
    page.locator("#pair-source").fill("Ka lu")
    expected = inspector.translator.translate("Ka lu").text
    page.wait_for_function("text => document.getElementById('pair-target').value === text", arg=expected)
    assert query(page)["q"] == "Ka lu"
    page.reload()
    assert page.locator("#pair-target").input_value() == expected


def test_translation_is_forced(open_page: Any, inspected_site: str, inspector: Inspector, plain: Inspection) -> None:
    page = open_page(f"{inspected_site}attend?{QUERY}")
    page.locator("#pair-target").fill("lu bo")
    page.get_by_text("Given translation").wait_for()
    ((expected, tokens),) = inspector.translator.score([TEXT], ["lu bo"])
    said = page.locator("#probability").text_content()
    assert f"log-probability {written(expected)}" in said
    assert f"{tokens} tokens" in said
    assert query(page)["translation"] == "lu bo"
    page.get_by_role("button", name="use the model’s own").click()
    own = inspector.translator.text(plain.own)
    page.wait_for_function("text => document.getElementById('pair-target').value === text", arg=own)


def test_rejected_sentence_shows_the_reason(chromium: Any, inspected_site: str) -> None:
    page = chromium.new_page()
    page.goto(f"{inspected_site}attend?{QUERY}")
    page.locator("#pair-source").fill("ba " * 60)
    page.wait_for_selector("#pair-error:not([hidden])")
    assert "the limit is 20. Send a shorter sentence." in page.locator("#pair-error").text_content()
    page.close()


def test_order_and_threshold_are_in_the_address(open_page: Any, inspected_site: str, plain: Inspection) -> None:
    page = open_page(f"{inspected_site}attend?{QUERY}#cross/tokens/1/1")
    before = page.locator("#lines .link").count()
    page.locator("#threshold").fill("30")
    weights = plain.attention.cross[0, 0]
    assert page.locator("#lines .link").count() == int((weights >= 0.3).sum()) < before
    page.locator("#order").select_option("entropy")
    assert page.url.endswith("#cross/tokens/1/1/30/entropy")
    page.reload()
    assert page.locator("#threshold").input_value() == "30"
    assert page.locator("#grid .thumb").count() == 6  # no mean


def test_hovering_over_a_cell_marks_its_row_and_column(open_page: Any, inspected_site: str) -> None:
    page = open_page(f"{inspected_site}attend?{QUERY}#cross/tokens/1/1")
    page.locator("#heat .cell[data-row='1'][data-column='2']").hover()
    assert page.locator("#heat .band[visibility=visible]").count() == 2
    assert {one.get_attribute("data-row") for one in page.locator("#heat .unit.on[data-row]").all()} == {"1"}
    assert {one.get_attribute("data-column") for one in page.locator("#heat .unit.on[data-column]").all()} == {"2"}


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_drawings_are_saved(open_page: Any, inspected_site: str, tmp_path: Path, kind: str) -> None:
    page = open_page(f"{inspected_site}inside?{QUERY}#inside/beam")
    with page.expect_download() as saved:
        page.get_by_role("button", name=f"save {kind.upper()}").last.click()
    saved.value.save_as(tmp_path / "file")
    start = (tmp_path / "file").read_bytes()[:8]
    assert saved.value.suggested_filename == f"heedful-inside-tree.{kind}"
    assert start.startswith(b"<svg" if kind == "svg" else b"\x89PNG")


def test_steps_are_walked_through(open_page: Any, inspected_site: str, plain: Inspection) -> None:
    page = open_page(f"{inspected_site}inside?{QUERY}#inside/steps/cross/2/3/1/1")
    page.wait_for_selector("#step-list li")
    assert page.locator("#step-count").text_content().startswith("Step 1 of 19: Embedding")
    page.get_by_role("button", name="next step").click()
    page.keyboard.press("ArrowRight")
    assert page.locator("#step-count").text_content() == "Step 3 of 19: Position"
    card = page.locator("#step-list li", has_text="softmax(scores); each row sums to 1")
    numbers = [float(text) for text in card.locator(".bars > span:nth-child(3n)").all_text_contents()]
    assert numbers == pytest.approx(plain.attention.cross[1, 2, 1].tolist(), rel=1e-3)
    page.locator("#place [name=layer]").select_option("0")
    page.wait_for_function("() => !document.getElementById('step-list').textContent.includes('Logits')")
    page.reload()
    page.wait_for_selector("#step-list li")
    assert page.locator("#place [name=layer]").input_value() == "0"
    assert page.locator("#step-count").text_content() == "Step 3 of 17: Position"


def test_beam_is_drawn_with_its_winner(
    open_page: Any, inspected_site: str, inspector: Inspector, plain: Inspection
) -> None:
    page = open_page(f"{inspected_site}inside?{QUERY}#inside/beam")
    assert page.locator("#tree .node").count() == len(plain.tree.nodes)
    assert page.locator("#tree .node.pruned").count() == sum(node.fate == "pruned" for node in plain.tree.nodes)
    best = plain.tree.nodes[plain.tree.best]
    assert page.locator("#tree .node.best").count() == best.step
    row = page.locator("#hypotheses tr.best td").all_text_contents()
    assert best.score is not None
    assert (row[1], row[5]) == (
        inspector.translator.text(plain.own) or "(empty)",
        f"{best.score:.3f}".replace("-", "−"),
    )
    page.locator("#beam").select_option("1")
    page.wait_for_function("() => document.getElementById('beam-note').textContent.startsWith('1 ')")
    greedy = inspector.inspect(plain.source, beam=1)
    assert page.locator("#tree .node").count() == len(greedy.tree.nodes)
    assert query(page)["beam"] == "1"


def test_next_tokens_after_every_layer(open_page: Any, inspected_site: str, plain: Inspection) -> None:
    page = open_page(f"{inspected_site}inside?{QUERY}#inside/next/1/1")
    assert page.locator("#lens button").count() == 2 * len(plain.target)
    assert page.locator("#candidates-title").text_content() == "Position 2, after layer 1"
    one = plain.next[0][1]
    said = page.locator("#candidates p").text_content()
    assert f"rank {one.rank:,} of" in said
    page.get_by_label(re.compile("^position 1, layer 2: ")).click()
    assert page.url.endswith("#inside/next/0/2")


def test_why_this_word(open_page: Any, inspected_site: str, inspector: Inspector, plain: Inspection) -> None:
    page = open_page(f"{inspected_site}inside?{QUERY}#inside/why/1")
    page.wait_for_selector("#why-table tbody tr")
    other = next(token for token in plain.next[-1][1].ids if token != plain.target[1])
    expected = inspector.contrast(plain.source, plain.target, 1, other)
    cells = [text.replace("−", "-") for text in page.locator("#why-table td small").all_text_contents()]
    found = [[float(text) for text in cells[column::3]] for column in range(3)]
    assert found[0] == pytest.approx(expected.attention, abs=1e-3)
    assert found[1] == pytest.approx(expected.input_times_gradient, abs=1e-3)
    assert found[2] == pytest.approx(expected.value_zeroing, abs=1e-3)
    assert f"ρ = {written(expected.agreement)}" in page.locator("#why-text").text_content()
    second = page.locator("#contrast-form [name=other] option").nth(1).get_attribute("value")
    page.locator("#contrast-form [name=other]").select_option(second)
    assert page.url.endswith(f"#inside/why/1/{second}")


def test_views_share_the_sentence(open_page: Any, inspected_site: str) -> None:
    page = open_page(f"{inspected_site}?{QUERY}")
    for view, heading in (("Attention", "Attention of every head"), ("Inside", "Inside the Transformer")):
        page.get_by_role("navigation").get_by_role("link", name=view).click()
        page.wait_for_function("text => document.querySelector('h1').textContent === text", arg=heading)
        page.wait_for_function("() => document.getElementById('pair-target').value !== ''")
        assert page.locator("#pair-source").input_value() == TEXT
    page.go_back()
    assert page.locator("h1").text_content() == "Attention of every head"


def test_a_view_without_a_sentence_asks_for_one(open_page: Any, inspected_site: str) -> None:
    page = open_page(f"{inspected_site}inside")
    page.locator("#pair-source").fill("ba bo")
    page.wait_for_selector("#inside-view:not([hidden])")
    assert query(page) == {"q": "ba bo", "source": "en", "target": "de"}


def test_keyboard_alone_switches_a_head_off(open_page: Any, inspected_site: str) -> None:
    page = open_page(f"{inspected_site}attend?{QUERY}")
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == "Layer 1, head 1: on":
            break
    page.keyboard.press("Enter")
    page.get_by_label("Layer 1, head 1: off").wait_for()
    page.wait_for_function("() => document.activeElement.getAttribute('aria-label') === 'Layer 1, head 1: off'")


ADDRESSES = [
    "",
    f"?{QUERY}",
    f"attend?{QUERY}&off=cross.1.1",
    f"attend?{QUERY}#encoder/tokens/1/2/10/label",
    *(f"inside?{QUERY}#inside/{panel}" for panel in ("steps", "beam", "next", "why")),
]


def settled(page: Any) -> None:
    """Wait until the page has asked for everything it shows."""
    page.wait_for_load_state("networkidle")
    page.wait_for_function("() => document.querySelector('main > section:not([hidden])') !== null")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_no_accessibility_violations(chromium: Any, inspected_site: str, address: str, scheme: str) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    context.add_init_script(path=AXE)
    page = context.new_page()
    page.goto(inspected_site + address)
    settled(page)
    found = page.evaluate("axe.run()")
    context.close()
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found["violations"]] == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_phones_do_not_scroll_sideways(chromium: Any, inspected_site: str, address: str) -> None:
    context = chromium.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto(inspected_site + address)
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


def test_dark_mode_has_a_dark_background(chromium: Any, inspected_site: str) -> None:
    context = chromium.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(f"{inspected_site}attend?{QUERY}")
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(number) for number in re.findall(r"\d+", colour)) < 60
    context.close()


def test_offline_file_has_all_views(open_page: Any, inspector: Inspector, plain: Inspection, tmp_path: Path) -> None:
    """The context of `open_page` fails the test for any request or console error."""
    write_app_page(inspector, attended(inspector, TEXT), tmp_path / "page.html")
    page = open_page(tmp_path / "page.html")
    assert page.get_by_label("Layer 1, head 1: on").is_disabled()
    assert "heedful serve" in page.locator("#effect-text").text_content()
    assert page.locator("#pair-source").get_attribute("readonly") is not None
    page.get_by_role("navigation").get_by_role("link", name="Inside").click()
    page.wait_for_selector("#step-list li")
    assert page.locator("#place [name=head]").is_disabled()
    assert page.locator("#place [name=position] option").count() == len(plain.target)
    for panel, content in (
        ("beam search", "#tree .node"),
        ("next words", "#lens button"),
        ("why this word", "#why-table td"),
    ):
        page.get_by_role("radio", name=panel).check()
        assert page.locator(content).count() > 0
    assert page.locator("#contrast-form [name=other]").is_disabled()
    page.get_by_role("navigation").get_by_role("link", name="Attention").click()
    assert page.locator("#grid .thumb").count() == 8


def test_embedded_text_cannot_run(open_page: Any, inspected_site: str) -> None:
    text = "<b>ba</b>"
    page = open_page(f"{inspected_site}attend?q={text}&source=en&target=de")
    assert page.locator("#pair-source").input_value() == text
    assert page.locator("main b", has_text="ba").count() == 0
    data = json.loads(page.locator("#data").text_content())
    assert data["sentences"][0]["source_text"] == text
