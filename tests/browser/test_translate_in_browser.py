"""The page of `heedful serve` as a person uses it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import uvicorn

from engines import Shouting
from heedful.decoding.translator import Translator
from heedful.serving.app import create_app
from heedful.serving.engine import ServedModel
from heedful.serving.limits import Limits
from heedful.serving.service import TranslationService
from heedful.storage.model_directory import Model
from heedful.text.profiles import profile

pytestmark = pytest.mark.browser


class Site:
    """Serves en ↔ de in a thread; `engine` may be made to fail."""

    def __init__(self, models: list[ServedModel]) -> None:
        self.engine = Shouting(models[0].translator.model.tokenizer)
        for one in models:
            one.engine = self
        app = create_app(TranslationService(models, Limits(characters=200)))
        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.address = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}/"

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        if "fail" in [self.engine.tokenizer.decode(source[:-1]) for source in sources]:
            raise ValueError("broken")
        return self.engine.search(sources, n_best)

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()


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
    """Waits until it stands there."""
    page.wait_for_function("text => document.getElementById('translation').textContent === text", arg=text)


def test_it_translates_while_one_types(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).type("a b. C d.")
    translation(page, "A B. C D.")
    assert page.locator("#alternatives li").all_text_contents() == ["A B.! C D.!", "A B.!! C D.!!"]
    assert "9 of 200" in page.locator("#count").text_content()
    page.get_by_label("Text", exact=True).fill("")
    translation(page, "")
    assert not page.locator("#others").is_visible()


def test_the_other_way_round(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).fill("abc")
    translation(page, "ABC")
    page.get_by_label("the other way round").click()
    assert page.locator("#source").input_value() == "de"
    assert page.locator("#target").input_value() == "en"
    assert page.get_by_label("Text", exact=True).input_value() == "ABC"


def test_it_says_which_language_it_found(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("from").select_option("auto")
    page.get_by_label("Text", exact=True).fill("der Hund und die Katze")
    page.get_by_label("to", exact=True).select_option("en")
    translation(page, "DER HUND UND DIE KATZE")
    assert page.locator("#detected").text_content().startswith("German, ")
    assert page.locator("#attend").is_disabled()


def test_too_long_is_said_before_it_is_sent(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).fill("x" * 201)
    page.wait_for_selector("#error:not([hidden])")
    assert "too long" in page.locator("#error").text_content()
    assert "over" in page.locator("#count").get_attribute("class")


def test_an_error_of_the_server_is_shown_and_goes(chromium: Any, site: Site) -> None:
    page = chromium.new_page()
    page.goto(site.address)
    page.get_by_label("Text", exact=True).fill("fail")
    page.wait_for_selector("#error:not([hidden])")
    assert "ValueError" in page.locator("#error").text_content()
    page.get_by_label("Text", exact=True).fill("fine")
    translation(page, "FINE")
    assert not page.locator("#error").is_visible()
    page.close()


def test_what_is_written_is_text_and_not_tags(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).fill("<b>x</b>")
    translation(page, "<B>X</B>")
    assert page.locator("#translation b").count() == 0


def test_attention_opens_beside_it(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.get_by_label("Text", exact=True).fill("ba bo")
    translation(page, "BA BO")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="what every head attends to").click()
    assert opened.value.locator("h1").text_content() == "What every head attends to"


def test_a_narrow_window_has_one_column(open_page: Any, site: Site) -> None:
    page = open_page(site.address)
    page.set_viewport_size({"width": 400, "height": 800})
    boxes = [page.locator(one).bounding_box() for one in ("#text", "#translation")]
    assert boxes[1]["y"] > boxes[0]["y"] + boxes[0]["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
