"""The frame of every page: one self-contained file, in light and dark mode."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5d6b7a; --line: #d5dde5; --paper: #fff; --train: #7f9fc0;
        --valid: #1f588c }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa7b4; --line: #35414d; --paper: #12181f; --train: #5b7a99; --valid: #7ab8f5 }
}
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 1.5rem auto; padding: 0 1rem; color: var(--ink);
       background: var(--paper) }
h1 { font-size: 1.35rem; margin: 0 0 1rem; overflow-wrap: anywhere } h2 { font-size: 1.05rem; margin: 2rem 0 .6rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: 0 }
dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; gap: 0 } dd { margin-bottom: .5rem } }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .2rem 1.4rem .2rem 0; text-align: right; border-bottom: 1px solid var(--line) }
th { color: var(--soft); font-weight: 400 }
"""


def page(title: str, style: str, body: Iterable[str]) -> str:
    """Return a whole page; `body` is HTML, `title` is text."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{STYLE}{style}</style></head><body>",
            f"<h1>{html.escape(title)}</h1>",
            *body,
            "</body></html>\n",
        ]
    )


def facts_list(facts: Sequence[tuple[str, str]]) -> list[str]:
    """Return names and texts as a list of HTML lines."""
    rows = [f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in facts]
    return ["<dl>", *rows, "</dl>"]
