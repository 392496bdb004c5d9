"""The attention page: every head, layer and attention type in one self-contained HTML file.

The template is page/attention.html with its .css and .js; this module adds the data.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heedful.atomic_files import write_durably
from heedful.decoding.translator import Attention, Translator
from heedful.errors import InputError
from heedful.formatting import plural
from heedful.text.text_files import check_text
from heedful.views.cross_attention_figure import sharpest_layer
from heedful.views.word_attention import group_tokens

_PAGE = Path(__file__).parent / "page"
KINDS = ("encoder", "decoder", "cross")


class AttendedSentence(NamedTuple):
    """A sentence and its translation as text, with the attention weights."""

    source: str
    target: str = ""
    attention: Attention | None = None  # None: the sentence is listed but not shown
    source_language: str = ""
    target_language: str = ""


def attended(
    translator: Translator, source: str, target: str | None = None, *, sentence: int | None = None
) -> list[AttendedSentence]:
    """Return the attention of every sentence of a text for its translation, the model's own or a given one.

    `sentence` selects one, counted from 1; the others then have no attention. A text with a given translation is not
    split.
    """
    if target is not None:
        found = [
            _attended(translator, source, _ids(translator, source, "TEXT"), _ids(translator, target, "`--target`"))
        ]
        found[0] = found[0]._replace(target=target)
    else:
        found = _sentences(translator, source, sentence)
    if sentence is not None and not 1 <= sentence <= len(found):
        raise InputError(
            f"`--sentence {sentence}` is out of range: TEXT has {plural(len(found), 'sentence')}, counted from 1."
        )
    return found


def _sentences(translator: Translator, text: str, chosen: int | None) -> list[AttendedSentence]:
    """Return the sentences of a text with the model's translations, or with that of the selected one only."""
    segments = translator.segment(check_text(text, "TEXT")).segments
    if not segments:
        raise InputError("TEXT is empty. Pass at least one word.")
    found = [AttendedSentence(segment.text) for segment in segments]
    shown = [number for number in range(len(segments)) if chosen in (None, number + 1)]
    translations = translator.search([segments[number].ids for number in shown])
    for number, (best, *_) in zip(shown, translations, strict=True):
        found[number] = _attended(translator, segments[number].text, segments[number].ids, list(best.ids))
    return found


def _attended(translator: Translator, source: str, source_ids: list[int], target_ids: list[int]) -> AttendedSentence:
    text, attention = translator.model.text, translator.attention(source_ids, target_ids)
    return AttendedSentence(source, translator.text(target_ids), attention, text.source_language, text.target_language)


def _ids(translator: Translator, text: str, name: str) -> list[int]:
    ids = translator.ids(check_text(text, name))
    longest = translator.model.text.max_length
    if len(ids) == 1:
        raise InputError(f"{name} is empty. Pass at least one word.")
    if len(ids) > longest:
        raise InputError(
            f"{name} has {len(ids)} tokens; this model was trained on at most {longest}. Pass a shorter text."
        )
    return ids


def write_attention_page(sentences: Sequence[AttendedSentence], path: Path, chosen: int = 1) -> None:
    write_durably(path, attention_page(sentences, chosen).encode("utf-8"))


def attention_page(sentences: Sequence[AttendedSentence], chosen: int = 1) -> str:
    """Return the page, which shows one sentence, counted from 1, and lists the others."""
    parts = {
        "TITLE": html.escape(f"Attention: {sentences[chosen - 1].source}"),
        "DATA": _for_script({"chosen": chosen, "sentences": [_content(sentence) for sentence in sentences]}),
    }
    # In one pass, because inserted text may itself contain a placeholder.
    return re.sub("@(TITLE|DATA)@", lambda found: parts[found[1]], attention_template())


@cache
def attention_template() -> str:
    """Return the page with its style and script, but without a sentence."""
    parts = {name: (_PAGE / f"attention.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    return parts["html"].replace("@STYLE@", parts["css"]).replace("@SCRIPT@", parts["js"])


def _content(sentence: AttendedSentence) -> dict[str, Any]:
    attention = sentence.attention
    if attention is None:
        return {"source_text": sentence.source}
    return {
        "layers": {kind: len(getattr(attention, kind)) for kind in KINDS},
        "h": attention.cross.shape[1],
        "first_layer": sharpest_layer(attention.cross),
        "source": _side(attention.source),
        "target": _side(attention.target),
        "source_text": sentence.source,
        "target_text": sentence.target,
        "source_language": sentence.source_language,
        "target_language": sentence.target_language,
        **{kind: _packed(getattr(attention, kind)) for kind in KINDS},
    }


def write_attention_data(sentences: Sequence[AttendedSentence], path: Path) -> None:
    """Write all weights as JSON: `sentences[i].cross[layer][head][row][column]`, with row and column tokens."""
    content = [
        {
            "source_text": sentence.source,
            "target_text": sentence.target,
            "source": sentence.attention.source,
            "target": sentence.attention.target,
            **{kind: _rounded(getattr(sentence.attention, kind)) for kind in KINDS},
        }
        for sentence in sentences
        if sentence.attention is not None
    ]
    write_durably(path, (json.dumps({"sentences": content}, ensure_ascii=False) + "\n").encode("utf-8"))


def _side(tokens: list[str]) -> dict[str, Any]:
    words, owners = group_tokens(tokens)
    return {"tokens": tokens, "words": words, "owners": owners}


def _packed(weights: Tensor) -> str:
    """Pack weights into 16 bits each, finer than a screen shows."""
    steps = (weights.double() * 65_535).round().clamp(0, 65_535).to(torch.int32)
    return base64.b64encode(steps.numpy().astype("<u2").tobytes()).decode("ascii")


def _rounded(weights: Tensor) -> Any:
    return [[[[round(w, 6) for w in row] for row in head] for head in layer] for layer in weights.tolist()]


def _for_script(content: dict[str, Any]) -> str:
    """Return JSON in which no text can close the script element."""
    return json.dumps(content, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
