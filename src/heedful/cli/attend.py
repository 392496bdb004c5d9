"""`heedful attend`: attention of every head and layer, for each sentence of a text."""

from __future__ import annotations

import argparse
from pathlib import Path

from heedful.cli.output_file import require_not_in_a_model
from heedful.engines.load import load
from heedful.errors import UsageError
from heedful.inspection.inspector import Inspector
from heedful.views.app_page import write_app_page
from heedful.views.attended_sentence import AttendedSentence, attended
from heedful.views.attention_heads_figure import draw_heads
from heedful.views.cross_attention_figure import require_matplotlib
from heedful.views.sentence_data import write_attention_data

_KINDS = (".html", ".png", ".svg", ".json")


def attend(arguments: argparse.Namespace) -> None:
    out = Path(arguments.out)
    if out.suffix not in _KINDS:
        raise UsageError(f'`--out` must end in one of {", ".join(_KINDS)}, not "{out.name}".')
    require_not_in_a_model(out, "--out")
    if out.suffix in (".png", ".svg"):
        require_matplotlib()  # fail early
    inspector = Inspector(load(arguments.model))
    sentences = attended(inspector, arguments.text, arguments.target, sentence=arguments.sentence)
    if arguments.sentence is not None:
        sentences = [sentences[arguments.sentence - 1]]
    if out.suffix == ".html":
        write_app_page(inspector, sentences, out)
        print(out)
    elif out.suffix == ".json":
        write_attention_data(sentences, out)
        print(out)
    else:
        _draw(sentences, out)


def _draw(sentences: list[AttendedSentence], out: Path) -> None:
    """Draw one figure per sentence; several are numbered: figure-1.png, figure-2.png."""
    numbered = [out.with_stem(f"{out.stem}-{number}") for number in range(1, len(sentences) + 1)]
    if len(sentences) > 1 and (taken := next((path for path in numbered if path.exists()), None)):
        raise UsageError(
            f"{taken} already exists. Move it, choose another `--out`, or plot one sentence with `--sentence N`."
        )
    for path, sentence in zip(numbered if len(sentences) > 1 else [out], sentences, strict=True):
        assert sentence.attention is not None, "attention of all sentences was requested"
        draw_heads(sentence.attention, path)
        print(path)
