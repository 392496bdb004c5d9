"""Every head of every layer on one sheet: a row of pictures for each layer of each attention."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.atomic_files import write_durably
from heedful.decoding.translator import Attention
from heedful.views.cross_attention_figure import require_matplotlib

_TITLES = {
    "encoder": "within the source (encoder)",
    "decoder": "within the translation (decoder, masked)",
    "cross": "from the translation to the source",
}
_DPI, _LONGEST = 110, 8_000  # dots: a sheet of a long sentence is drawn coarser, not larger than memory


def draw_heads(attention: Attention, path: Path) -> None:
    """As .png or .svg. Rows look at columns; tokens are named along the left and lower edge of each attention."""
    require_matplotlib()
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    N, h = attention.cross.shape[:2]
    longest = max(len(attention.source), len(attention.target))
    side = max(1.3, 0.13 * longest) + 0.15  # inches of a picture, so that tokens can be read
    size = (1.2 + side * h, 3 * (0.9 + side * N))
    figure = pyplot.figure(figsize=size, layout="constrained")
    read = ["<s>", *attention.target[:-1]]  # what the decoder's positions read
    names = {
        "encoder": (attention.source, attention.source),
        "decoder": (attention.target, read),
        "cross": (attention.target, attention.source),
    }
    parts: Any = figure.subfigures(3, 1)
    for part, (kind, title) in zip(parts, _TITLES.items(), strict=True):
        part.suptitle(title, x=0.01, ha="left", fontsize=11)
        _draw(part.subplots(N, h, squeeze=False), getattr(attention, kind), *names[kind])
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:], dpi=min(_DPI, _LONGEST / max(size)))
    pyplot.close(figure)
    write_durably(path, drawn.getvalue())


def _draw(places: Any, weights_NHTS: Tensor, rows: list[str], columns: list[str]) -> None:
    """A picture for each layer and head; the names of rows on the left, of columns below."""
    plain = {"fontsize": 6, "parse_math": False}  # "$" is a token, not the beginning of a formula
    for layer, heads in enumerate(weights_NHTS):
        for head, weights_TS in enumerate(heads):
            axes = places[layer][head]
            axes.imshow(weights_TS.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
            axes.set_xticks([])
            axes.set_yticks([])
        places[layer][0].set_yticks(range(len(rows)), rows, **plain)
        places[layer][0].set_ylabel(f"layer {layer + 1}", fontsize=8)
    for head, axes in enumerate(places[0]):
        axes.set_title(f"head {head + 1}", fontsize=8)
    for axes in places[-1]:
        axes.set_xticks(range(len(columns)), columns, rotation=90, **plain)
