"""`heedful attend`: every head of every layer of the three attentions, for one sentence."""

from __future__ import annotations

import argparse
from pathlib import Path

from heedful.decoding.load import load
from heedful.decoding.translator import Attention, Translator
from heedful.errors import InputError, UsageError
from heedful.text.lines import check_text
from heedful.views.attention_page import Sentences, write_attention_data, write_attention_page
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


def attended(translator: Translator, source: str, target: str | None) -> tuple[Attention, Sentences]:
    """Attention of a sentence and its translation: the model's own, or the one that is given."""
    source_ids = _ids(translator, source, "TEXT")
    if target is None:
        translation = translator.translate(source, attention=True)
        attention, target = translation.attention, translation.text
    else:
        attention = translator.attention(source_ids, _ids(translator, target, "--target"))
    assert attention is not None, "neither empty nor in parts"
    text = translator.model.text
    return attention, Sentences(source, target, text.source_language, text.target_language)


def _ids(translator: Translator, text: str, name: str) -> list[int]:
    ids = translator.ids(check_text(text, name))
    longest = translator.model.text.max_length
    if len(ids) == 1:
        raise InputError(f"{name} is empty: there is nothing to attend to.")
    if len(ids) > longest:
        raise InputError(f"{name} has {len(ids)} pieces, more than the {longest} that this model was trained on.")
    return ids
