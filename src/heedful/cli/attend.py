"""`heedful attend`: every head of every layer of the three attentions, for one sentence."""

from __future__ import annotations

import argparse
from pathlib import Path

from heedful.decoding.load import load
from heedful.errors import UsageError
from heedful.views.attention_page import attended, write_attention_data, write_attention_page
from heedful.views.figure import require_matplotlib
from heedful.views.heads_figure import draw_heads

_KINDS = (".html", ".png", ".svg", ".json")


def attend(arguments: argparse.Namespace) -> None:
    out = Path(arguments.out)
    if out.suffix not in _KINDS:
        raise UsageError(f'--out must end in {", ".join(_KINDS)}, not "{out.name}": a page, a picture or the numbers.')
    if out.suffix in (".png", ".svg"):
        require_matplotlib()  # before the work, not after it
    translator = load(arguments.model)
    attention, pair = attended(translator, arguments.text, arguments.target)
    if out.suffix == ".html":
        write_attention_page(attention, pair, out)
    elif out.suffix == ".json":
        write_attention_data(attention, pair, out)
    else:
        draw_heads(attention, out)
    print(out)
