"""Figure of all attention heads: one row of matrices per layer and attention type."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.atomic_files import write_durably
from heedful.decoding.translator import Attention
from heedful.views.cross_attention_figure import require_matplotlib

_TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention (masked)",
    "cross": "cross-attention (translation → source)",
}
_DPI, _LONGEST = 110, 8_000  # pixels; long sentences are drawn at a lower resolution instead of a larger size


def draw_heads(attention: Attention, path: Path) -> None:
    """Draw all heads as .png or .svg.

    Rows attend to columns; token labels are on the left and lower edges.
    """
    require_matplotlib()
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    h = attention.cross.shape[1]
    layers = [len(getattr(attention, kind)) for kind in _TITLES]
    longest = max(len(attention.source), len(attention.target))
    side = max(1.3, 0.13 * longest) + 0.15  # inches per matrix, so that token labels are readable
    heights = [0.9 + side * N for N in layers]
    size = (1.2 + side * h, sum(heights))
    figure = pyplot.figure(figsize=size, layout="constrained")
    read = ["<s>", *attention.target[:-1]]  # the decoder's input tokens
    names = {
        "encoder": (attention.source, attention.source),
        "decoder": (attention.target, read),
        "cross": (attention.target, attention.source),
    }
    parts: Any = figure.subfigures(3, 1, height_ratios=heights)
    for part, N, (kind, title) in zip(parts, layers, _TITLES.items(), strict=True):
        part.suptitle(title, x=0.01, ha="left", fontsize=11)
        _draw(part.subplots(N, h, squeeze=False), getattr(attention, kind), *names[kind])
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:], dpi=min(_DPI, _LONGEST / max(size)))
    pyplot.close(figure)
    write_durably(path, drawn.getvalue())


def _draw(places: Any, weights_NHTS: Tensor, rows: list[str], columns: list[str]) -> None:
    """Draw a matrix per layer and head, with row labels on the left, column labels below."""
    plain = {"fontsize": 6, "parse_math": False}  # "$" is a token, not the start of a formula
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
