"""The attention page: every head of every layer of the three attentions, in one file with nothing to fetch.

The page itself is in `page/`: attention.html, .css and .js, put together here with the data.
"""

from __future__ import annotations

import base64
import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heedful.decoding.translator import Attention, Translator
from heedful.errors import InputError
from heedful.files import write_durably
from heedful.text.lines import check_text
from heedful.views.figure import sharpest_layer
from heedful.views.words import group_tokens

_PAGE = Path(__file__).parent / "page"
KINDS = ("encoder", "decoder", "cross")


class Sentences(NamedTuple):
    """The pair that attention is of, as it was written."""

    source: str
    target: str
    source_language: str = ""
    target_language: str = ""


def attended(translator: Translator, source: str, target: str | None = None) -> tuple[Attention, Sentences]:
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
        raise InputError(f"{name} has {len(ids)} tokens, more than the {longest} that this model was trained on.")
    return ids


def write_attention_page(attention: Attention, pair: Sentences, path: Path) -> None:
    write_durably(path, attention_page(attention, pair).encode("utf-8"))


def attention_page(attention: Attention, pair: Sentences) -> str:
    content: dict[str, Any] = {
        "N": attention.cross.shape[0],
        "h": attention.cross.shape[1],
        "first_layer": sharpest_layer(attention.cross),
        "source": _side(attention.source),
        "target": _side(attention.target),
        "source_text": pair.source,
        "target_text": pair.target,
        "source_language": pair.source_language,
        "target_language": pair.target_language,
        **{kind: _packed(getattr(attention, kind)) for kind in KINDS},
    }
    parts = {"TITLE": html.escape(f"Attention: {pair.source}"), "DATA": _for_script(content)}
    # In one pass: what is put in may hold anything, a placeholder too.
    return re.sub("@(TITLE|DATA)@", lambda found: parts[found[1]], attention_template())


@cache
def attention_template() -> str:
    """Return the page with its style and script, but without a sentence."""
    parts = {name: (_PAGE / f"attention.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    return parts["html"].replace("@STYLE@", parts["css"]).replace("@SCRIPT@", parts["js"])


def write_attention_data(attention: Attention, pair: Sentences, path: Path) -> None:
    """Every weight as a number: `cross[layer][head][row][column]`, rows and columns named by tokens."""
    content = {
        "source_text": pair.source,
        "target_text": pair.target,
        "source": attention.source,
        "target": attention.target,
        **{kind: _rounded(getattr(attention, kind)) for kind in KINDS},
    }
    write_durably(path, (json.dumps(content, ensure_ascii=False) + "\n").encode("utf-8"))


def _side(tokens: list[str]) -> dict[str, Any]:
    words, owners = group_tokens(tokens)
    return {"tokens": tokens, "words": words, "owners": owners}


def _packed(weights: Tensor) -> str:
    """16 bits a weight, which is finer than anyone sees."""
    steps = (weights.double() * 65_535).round().clamp(0, 65_535).to(torch.int32)
    return base64.b64encode(steps.numpy().astype("<u2").tobytes()).decode("ascii")


def _rounded(weights: Tensor) -> Any:
    return [[[[round(w, 6) for w in row] for row in head] for head in layer] for layer in weights.tolist()]


def _for_script(content: dict[str, Any]) -> str:
    """JSON that no text can end early: "</script>" and comments stay what they are, text."""
    return json.dumps(content, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
