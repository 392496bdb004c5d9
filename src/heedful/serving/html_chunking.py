"""HTML splitting between blocks, so that a long page is translated in several requests."""

from __future__ import annotations

import html
from collections.abc import Iterator

from heedful.serving.html_runs import html_runs


def split_html(page: str) -> Iterator[tuple[str, bool]]:
    """Yield (part, whether it is text to translate) in order."""
    for group in html_runs(page):
        texts = [token.text for token in group.tokens if token.kind == "text"]
        # "<" is escaped like in a request, because an unclosed comment hides what follows.
        has_words = any("<" in text or any(map(str.isalpha, html.unescape(text))) for text in texts)
        is_text = group.is_run and has_words
        yield group.source() if is_text else group.written(), is_text
