"""Swagger UI at /docs: it renders and sends requests under its Content-Security-Policy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn

from fake_engine import UppercaseEngine
from heedful.decoding.translator import Translator
from heedful.serving.app import create_app
from heedful.serving.limits import Limits
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from heedful.storage.model_directory import Model

pytestmark = pytest.mark.browser


@pytest.fixture
def address(random_model: Callable[..., Model]) -> Iterator[str]:
    served = ServedModel(Translator(random_model()))
    served.engine = UppercaseEngine(served.translator.model.tokenizer)
    app = create_app(TranslationService([served], Limits()))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("path", ["/docs", "/docs/"])
def test_try_it_out_sends_a_request(open_page: Any, address: str, path: str) -> None:
    """`open_page` fails the test on any console error; a violation of the policy is one."""
    page = open_page(address + path)
    policy = page.request.get(address + path).headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    block = page.locator("#operations-translate-post_translate")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    for name, value in {"q": "hello there", "source": "en", "target": "de"}.items():
        block.locator(f'tr[data-param-name="{name}"] input').fill(value)
    block.get_by_role("button", name="Execute").click()
    answer = block.locator(".live-responses-table")
    answer.wait_for()
    assert "HELLO THERE" in answer.text_content()
    assert page.locator(".opblock").count() == 7


def test_the_policy_is_enforced(chromium: Any, address: str) -> None:
    """Control of the test above: an inline script is blocked and reported."""
    page = chromium.new_page()
    page.goto(f"{address}/docs")
    violated = page.evaluate(
        """() => new Promise(done => {
            document.addEventListener("securitypolicyviolation", event => done(event.violatedDirective));
            const script = document.createElement("script");
            script.textContent = "window.inserted = true";
            document.body.append(script);
            setTimeout(() => done("none"), 5000);
        })"""
    )
    assert violated.startswith("script-src")
    assert page.evaluate("() => window.inserted") is None
    page.close()
