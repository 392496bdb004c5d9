"""Browser tests with Debian's chromium and Playwright; skipped if either is missing."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from heedful.decoding.translator import Translator
from heedful.serving.app import create_app
from heedful.serving.limits import Limits
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from heedful.storage.model_directory import Model

Open = Callable[[Path | str], Any]
OURS = ("file:", "http://127.0.0.1:", "data:")


class Server:
    """A server in a thread."""

    def __init__(self, models: list[ServedModel], limits: Limits) -> None:
        app = create_app(TranslationService(models, limits))
        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.address = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}/"

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture(scope="session")
def inspected(random_model: Callable[..., Model]) -> Translator:
    """The translator behind `inspected_site`."""
    return Translator(random_model())


@pytest.fixture
def inspected_site(inspected: Translator) -> Iterator[str]:
    """The address of a server with a random en → de model, N = 2, h = 3."""
    server = Server([ServedModel(inspected)], Limits(attended=20))
    yield server.address
    server.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed: make browser")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Open]:
    """Return `open_page(path)`; any console error or network request fails the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(OURS) else complaints.append(request.url))

    def opened(path: Path | str, fragment: str = "") -> Any:
        page.goto(path if isinstance(path, str) else path.absolute().as_uri() + fragment)
        return page

    yield opened
    context.close()
    assert complaints == []
