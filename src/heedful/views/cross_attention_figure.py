"""Figure of cross-attention between the words of a translation and its source."""

from __future__ import annotations

import io
from pathlib import Path

from torch import Tensor

from heedful.atomic_files import write_durably
from heedful.decoding.translator import Attention
from heedful.errors import UsageError
from heedful.views.word_attention import group_tokens, word_weights


def require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("Figures require the package matplotlib. Run: pip install 'heedful[plot]'") from None


def sharpest_layer(cross_NHTS: Tensor) -> int:
    """Return the layer with the sharpest attention: the highest mean of row maxima."""
    return int(cross_NHTS.mean(dim=1).amax(dim=-1).mean(dim=-1).argmax())


def draw_cross_attention(attention: Attention, path: Path) -> None:
    """Draw the sharpest layer's mean over heads, words on both axes, as .png or .svg."""
    require_matplotlib()
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    source, source_owners = group_tokens(attention.source)
    target, target_owners = group_tokens(attention.target)
    layer = sharpest_layer(attention.cross)
    weights = word_weights(attention.cross[layer].mean(dim=0), target_owners, source_owners)
    figure, axes = pyplot.subplots(figsize=(1.6 + 0.55 * len(source), 1.4 + 0.42 * len(target)))
    image = axes.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    # "$" is a word, not the start of a formula.
    axes.set_xticks(range(len(source)), source, rotation=45, ha="left", parse_math=False)
    axes.set_yticks(range(len(target)), target, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xlabel(f"attention over the source, layer {layer + 1} of {len(attention.cross)}, mean of its heads")
    axes.set_ylabel("translation")
    figure.colorbar(image, ax=axes, shrink=0.8, label="weight")
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:], dpi=120, bbox_inches="tight")
    write_durably(path, drawn.getvalue())
    pyplot.close(figure)
