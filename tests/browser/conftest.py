"""Browser tests with Debian's chromium and Playwright; skipped with a message if either is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Open = Callable[[Path | str], Any]
OURS = ("file:", "http://127.0.0.1:", "data:")


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
    """Return `open_page(path)` for a file or URL; any console error or network request fails the test."""
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
