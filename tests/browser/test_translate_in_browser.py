"""The web app of `heedful serve` in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from conftest import Server
from fake_engine import UppercaseEngine
from heedful.decoding.translator import Translator
from heedful.serving.limits import Limits
from heedful.serving.served_model import ServedModel
from heedful.storage.model_directory import Model
from heedful.text.language_detection import profile

pytestmark = pytest.mark.browser


class Site(Server):
    """Serves en ↔ de; `engine` may be made to fail."""

    def __init__(self, models: list[ServedModel]) -> None:
        self.engine = UppercaseEngine(models[0].translator.model.tokenizer)
        for one in models:
            one.engine = self
        super().__init__(models, Limits(characters=200))

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        if "fail" in [self.engine.tokenizer.decode(source[:-1]) for source in sources]:
            raise ValueError("broken")
        return self.engine.search(sources, n_best)


@pytest.fixture
def site(random_model: Callable[..., Model]) -> Iterator[Site]:
    model = random_model()
    english, german = profile(["the dog and the cat"]), profile(["der Hund und die Katze"])
    there = replace(model.text, source_profile=english, target_profile=german)
    back = replace(there, source_language="de", target_language="en", source_profile=german, target_profile=english)
    one = Site([ServedModel(Translator(replace(model, text=text))) for text in (there, back)])
    yield one
    one.close()


def translation(page: Any, text: str) -> None:
    """Wait until the text is shown."""
    page.wait_for_function("text => document.getElementById('translation').textContent === text", arg=text)


def test_translates_while_typing(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).type("a b. C d.")
    translation(page, "A B. C D.")
    assert page.locator("#alternatives li").all_text_contents() == ["A B.! C D.!", "A B.!! C D.!!"]
    assert "9 of 200" in page.locator("#count").text_content()
    page.get_by_label("Text", exact=True).fill("")
    translation(page, "")
    assert not page.locator("#others").is_visible()


def test_swap_languages(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).fill("abc")
    translation(page, "ABC")
    page.get_by_label("swap languages").click()
    assert page.locator("#source").input_value() == "de"
    assert page.locator("#target").input_value() == "en"
    assert page.get_by_label("Text", exact=True).input_value() == "ABC"


def test_detected_language_is_shown(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("from").select_option("auto")
    page.get_by_label("Text", exact=True).fill("der Hund und die Katze")
    page.get_by_label("to", exact=True).select_option("en")
    translation(page, "DER HUND UND DIE KATZE")
    assert "German" in page.locator("#detected").text_content()
    assert "source=de&target=en" in page.locator("#attend").get_attribute("href")  # the language that was found


def is_cleared(page: Any) -> bool:
    """Check that translation, alternatives, copy button and link are empty or hidden."""
    shown = [page.locator(one).is_visible() for one in ("#others", "#attend")]
    return page.locator("#translation").text_content() == "" and not any(shown) and page.locator("#copy").is_disabled()


def test_too_long_text_is_not_sent(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).fill("short")
    translation(page, "SHORT")
    page.get_by_label("Text", exact=True).fill("x" * 201)
    page.wait_for_selector("#error:not([hidden])")
    assert "too long: at most 200 characters" in page.locator("#error").text_content()
    assert "over" in page.locator("#count").get_attribute("class")
    assert is_cleared(page)


def test_server_error_is_shown_and_cleared(chromium: Any, site: Site) -> None:
    page = chromium.new_page()
    page.goto(site.address)
    page.get_by_label("Text", exact=True).fill("before")
    translation(page, "BEFORE")
    page.get_by_label("Text", exact=True).fill("fail")
    page.wait_for_selector("#error:not([hidden])")
    assert is_cleared(page)  # no old translation beside the new text
    page.get_by_label("Text", exact=True).fill("fine")
    translation(page, "FINE")
    assert not page.locator("#error").is_visible()
    page.close()


def test_non_json_response_shows_its_status(chromium: Any, site: Site) -> None:
    """A proxy in front of the server responds with its own HTML page."""
    page = chromium.new_page()
    page.goto(site.address)
    page.route("**/translate", lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"))
    page.get_by_label("Text", exact=True).fill("word")
    page.wait_for_selector("#error:not([hidden])")
    assert page.locator("#error").text_content() == "The server answered with status 502."
    page.close()


@pytest.mark.parametrize("secure", [True, False], ids=["clipboard", "plain HTTP"])
def test_copy_button(chromium: Any, site: Site, secure: bool) -> None:
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    if not secure:  # as on http://server:5000; 127.0.0.1 counts as secure
        page.add_init_script("Object.defineProperty(Navigator.prototype, 'clipboard', { value: undefined })")
    page.goto(site.address)
    box = page.get_by_label("Text", exact=True)
    box.fill("abc")
    translation(page, "ABC")
    page.get_by_role("button", name="copy").click()
    page.wait_for_function("() => document.getElementById('state').textContent === 'copied'")
    box.fill("")
    box.press("Control+V")
    assert box.input_value() == "ABC"
    assert errors == []
    context.close()


def test_refused_copy_is_reported(chromium: Any, site: Site) -> None:
    page = chromium.new_page()
    page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    page.goto(site.address)
    page.get_by_label("Text", exact=True).fill("abc")
    translation(page, "ABC")
    page.get_by_role("button", name="copy").click()
    page.wait_for_function("() => document.getElementById('state').textContent.includes('did not allow')")
    page.close()


def test_url_restores_text_and_languages(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("from").select_option("de")
    page.get_by_label("Text", exact=True).fill("a & b?")
    translation(page, "A & B?")
    page.reload()
    translation(page, "A & B?")
    assert page.get_by_label("Text", exact=True).input_value() == "a & b?"
    assert (page.locator("#source").input_value(), page.locator("#target").input_value()) == ("de", "en")
    open_page(f"{site.address}?source=xx&target=yy&q=c")  # languages that are not there
    translation(page, "C")


def test_text_is_not_interpreted_as_html(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).fill("<b>x</b>")
    translation(page, "<B>X</B>")
    assert page.locator("#translation b").count() == 0


def test_attention_link_shows_the_same_sentence(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).fill("ba & bo")
    translation(page, "BA & BO")
    page.get_by_role("link", name="show attention").click()
    page.wait_for_selector("#attend-view:not([hidden])")
    for _ in range(2):
        asked = parse_qs(urlsplit(page.url).query)
        assert urlsplit(page.url).path == "/attend"
        assert asked == {"q": ["ba & bo"], "source": ["en"], "target": ["de"]}
        assert page.locator("h1").text_content() == "Attention of every head"
        page.reload()
    page.go_back()
    translation(page, "BA & BO")
    assert page.locator("h1").text_content() == "Translate"


def test_examples_on_an_empty_page(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_role("button", name="The old man").click()
    translation(page, "THE OLD MAN IS LOOKING FOR HIS RED HAT.")
    assert not page.locator("#examples").is_visible()
    page.get_by_role("button", name="clear").click()
    translation(page, "")
    assert page.locator("#examples").is_visible()
    assert page.get_by_role("button", name="clear").is_disabled()
    page.get_by_label("from").select_option("de")
    assert page.get_by_role("button", name="Der alte Mann").is_visible()


def test_swap_says_why_it_is_disabled(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    assert page.locator("#swap-note").text_content() == ""
    page.get_by_label("from").select_option("auto")
    assert page.get_by_label("swap languages").is_disabled()
    assert page.locator("#swap-note").text_content() == "To swap, choose the source language."


def test_differences_between_alternatives_are_marked(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).fill("a b")
    translation(page, "A B")
    assert page.locator("#alternatives li").all_text_contents() == ["A B!", "A B!!"]
    assert page.locator("#alternatives mark").all_text_contents() == ["B!", "B!!"]


@pytest.mark.parametrize(
    ("confidence", "said"),
    [
        (98.2, "German (detected)"),
        (80.4, "probably German (80%)"),
        (51.0, "perhaps German (51%); choose the language if that is wrong"),
        (0.0, "language unknown; read as German"),
    ],
)
def test_wording_of_a_detected_language(open_page: Any, site: Site, confidence: float, said: str) -> None:
    page = open_page(site.address)
    page.wait_for_selector("#source option", state="attached")  # the names of the languages have arrived
    found = page.evaluate(f"detection({{language: 'de', confidence: {confidence}}})")
    assert found == said


def test_narrow_window_has_one_column(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.set_viewport_size({"width": 400, "height": 800})
    boxes = [page.locator(one).bounding_box() for one in ("#text", "#translation")]
    assert boxes[1]["y"] > boxes[0]["y"] + boxes[0]["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
