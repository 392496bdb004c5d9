"""The web app as one HTML document: three views with one style, script and set of data.

`heedful serve` sends it with the data of an address; `heedful attend` writes it with everything a view may ask for.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from heedful.atomic_files import write_durably
from heedful.inspection.inspector import Inspection, Inspector
from heedful.inspection.switched_heads import Head
from heedful.views.attended_sentence import AttendedSentence
from heedful.views.cross_attention_figure import sharpest_layer
from heedful.views.sentence_data import contrast_data, sentence_data, steps_data

_PAGE = Path(__file__).parent / "page"
_SCRIPTS = ("shared", "attention", "inside", "beam_tree", "translate", "app")
VIEWS = ("translate", "attend", "inside")


@cache
def app_template() -> str:
    """Return the page with its style and scripts, but without data."""
    scripts = "\n".join((_PAGE / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    page, style = ((_PAGE / name).read_text(encoding="utf-8") for name in ("app.html", "app.css"))
    return page.replace("@STYLE@", style).replace("@SCRIPT@", scripts)


def app_page(title: str, data: dict[str, Any]) -> str:
    """Return the page with its data. Text in the data cannot become markup."""
    parts = {"TITLE": html.escape(title), "DATA": _for_script(data)}
    # In one pass, because inserted text may itself contain a placeholder.
    return re.sub("@(TITLE|DATA)@", lambda found: parts[found[1]], app_template())


def write_app_page(inspector: Inspector, sentences: Sequence[AttendedSentence], path: Path) -> None:
    """Write the Attention and Inside views of some sentences as a file that needs no server."""
    content = [_offline_data(inspector, sentence) for sentence in sentences]
    data = {"view": "attend", "server": False, "chosen": 1, "sentences": content}
    write_durably(path, app_page(f"Attention: {sentences[0].source}", data).encode("utf-8"))


def _offline_data(inspector: Inspector, sentence: AttendedSentence) -> dict[str, Any]:
    """Return the data of a sentence with what the server would compute on request.

    The steps of all layers and heads would make a file of many megabytes, so it has those of one head.
    """
    data, found = sentence_data(inspector, sentence), sentence.inspection
    if found is None:
        return data
    place = Head("cross", sharpest_layer(found.attention.cross), 0)
    positions = range(len(found.target))
    contrasts = [contrast_data(inspector, found, at, runner_up(found, at)) for at in positions]
    return {**data, "contrasts": contrasts, "steps": steps_data(inspector, found, place, positions)}


def runner_up(found: Inspection, position: int) -> int:
    """Return the likeliest token other than the one at a position of the target."""
    return next(token for token in found.next[-1][position].ids if token != found.target[position])


def _for_script(content: dict[str, Any]) -> str:
    """Return JSON in which no text can close the script element."""
    return json.dumps(content, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
