"""Every head of every layer on one sheet: a row of pictures for each layer of each attention."""

from __future__ import annotations

from pathlib import Path

from heedful.decoding.translator import Attention
from heedful.files import disk_errors
from heedful.views.figure import require_matplotlib

_TITLES = {
    "encoder": "within the source (encoder)",
    "decoder": "within the translation (decoder, masked)",
    "cross": "from the translation to the source",
}


def draw_heads(attention: Attention, path: Path) -> None:
    """As .png or .svg. Rows look at columns; pieces are named along the left and lower edge of each attention."""
    require_matplotlib()
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    N, h = attention.cross.shape[:2]
    read = ["<s>", *attention.target[:-1]]  # what the decoder's positions read
    names = {
        "encoder": (attention.source, attention.source),
        "decoder": (attention.target, read),
        "cross": (attention.target, attention.source),
    }
    longest = max(len(attention.source), len(attention.target))
    side = max(1.3, 0.13 * longest)  # inches, so that pieces can be read
    figure = pyplot.figure(figsize=(1.2 + (side + 0.15) * h, 3 * (0.9 + (side + 0.15) * N)), layout="constrained")
    parts = figure.subfigures(3, 1)
    for part, (kind, title) in zip(parts, _TITLES.items(), strict=True):
        part.suptitle(title, x=0.01, ha="left", fontsize=11)
        places = part.subplots(N, h, squeeze=False)
        for layer in range(N):
            for head in range(h):
                axes = places[layer][head]
                weights = getattr(attention, kind)[layer, head]
                axes.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
                axes.set_xticks([])
                axes.set_yticks([])
                if layer == 0:
                    axes.set_title(f"head {head + 1}", fontsize=8)
        rows, columns = names[kind]
        for layer in range(N):
            places[layer][0].set_yticks(range(len(rows)), rows, fontsize=6)
            places[layer][0].set_ylabel(f"layer {layer + 1}", fontsize=8)
        for head in range(h):
            places[-1][head].set_xticks(range(len(columns)), columns, rotation=90, fontsize=6)
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    pyplot.close(figure)
