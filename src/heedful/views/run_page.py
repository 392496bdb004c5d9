"""The run page: facts, training curves and validations in one self-contained HTML file."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.atomic_files import write_durably
from heedful.views.cross_attention_figure import require_matplotlib
from heedful.views.page import facts_list, page

Entry = dict[str, Any]
Fact = tuple[str, str]  # a name and a text

_STYLE = """
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: 1.2rem }
figure { margin: 0; min-width: 0 } figcaption { font-size: .95rem }
svg { display: block; width: 100%; height: auto }
.key { color: var(--soft); font-size: .85rem } .key i { display: inline-block; width: 1.2em; vertical-align: .25em;
       border-top: 2px solid var(--train) } .key i.valid { border-color: var(--valid) }
tr.best { font-weight: 600 } td:last-child { text-align: left }
"""

# Colours that matplotlib writes, replaced by the page's CSS variables for light and dark mode.
_COLOURS = {"#010101": "currentColor", "#020202": "var(--line)", "#030303": "var(--train)", "#040404": "var(--valid)"}
_INK, _LINE, _TRAIN, _VALID = _COLOURS
_STEPS = (1, 2, 5, 10)  # between ticks, and tenfold


class Curve(NamedTuple):
    kind: str  # of the log's entries: "train" or "valid"
    key: str


class Panel(NamedTuple):
    title: str
    unit: str  # of the y axis
    curves: tuple[Curve, ...]
    scale: str = "from zero"  # of the y axis: "from zero", "linear" or "log"


PANELS = (
    Panel("Loss, smoothed", "nats per token", (Curve("train", "loss"), Curve("valid", "loss")), "linear"),
    Panel("Perplexity", "perplexity per token", (Curve("train", "perplexity"), Curve("valid", "perplexity")), "log"),
    Panel("validation BLEU", "BLEU", (Curve("valid", "bleu"),)),
    Panel("Learning rate", "learning rate", (Curve("train", "lr"),)),
    Panel("Speed", "target tokens per second", (Curve("train", "tokens_per_second"),)),
    Panel("Gradient norm", "norm", (Curve("train", "gradient_norm"),), "log"),
)


def write_run_page(entries: Sequence[Entry], title: str, facts: Sequence[Fact], path: Path) -> None:
    require_matplotlib()
    body = [
        *facts_list(facts),
        '<h2>Curves</h2>\n<p class="key"><i></i> training &nbsp; <i class="valid"></i> validation</p>',
        '<div class="curves">',
        *(_panel(panel, entries) for panel in PANELS),
        "</div>",
        *_validations(entries),
    ]
    write_durably(path, page(title, _STYLE, body).encode())


def points(entries: Sequence[Entry], curve: Curve) -> tuple[list[int], list[float]]:
    """Return the steps and values of a curve, without values that were not finite."""
    found = [entry for entry in entries if entry["kind"] == curve.kind and entry.get(curve.key) is not None]
    return [entry["step"] for entry in found], [entry[curve.key] for entry in found]


def _panel(panel: Panel, entries: Sequence[Entry]) -> str:
    has_points = any(points(entries, curve)[0] for curve in panel.curves)
    drawing = panel_as_svg(panel, entries) if has_points else '<p class="key">nothing logged yet</p>'
    return f"<figure><figcaption>{html.escape(panel.title)}</figcaption>\n{drawing}</figure>"


def panel_as_svg(panel: Panel, entries: Sequence[Entry]) -> str:
    """Return an inline SVG with the page's colours, which follows light and dark mode."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # No date and a fixed salt, so that the same log gives the same page; text is kept as text in the page's font.
    look: dict[Any, Any] = {"svg.hashsalt": panel.title, "svg.fonttype": "none", "font.size": 11, "grid.color": _LINE}
    for key in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"):
        look[key] = _INK
    with pyplot.rc_context(look):
        figure, axes = pyplot.subplots(figsize=(5.2, 3.0), layout="constrained")
        for curve in panel.curves:
            training = curve.kind == "train"
            style: dict[str, Any] = {"color": _TRAIN} if training else {"color": _VALID, "marker": "o", "markersize": 4}
            axes.plot(*points(entries, curve), linewidth=1.6, **style)
        _set_axes(axes, panel, max(entry["step"] for entry in entries))
        drawing = io.StringIO()
        figure.savefig(drawing, format="svg", transparent=True, metadata={"Date": None})
        pyplot.close(figure)
    return _for_page(drawing.getvalue())


def _set_axes(axes: Any, panel: Panel, last_step: int) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if panel.scale == "log":
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        # Within two decades, label 1, 2 and 5, because there may be no power of ten among the values.
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=8))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0 if panel.scale == "from zero" else None)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
    plain = FuncFormatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:g}")
    axes.yaxis.set_major_formatter(plain)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=_STEPS))
    axes.xaxis.set_major_formatter(plain)
    axes.set_xlim(0, 1.03 * last_step)
    axes.set_xlabel("step")
    axes.set_ylabel(panel.unit)
    axes.grid()
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _for_page(svg: str) -> str:
    """Return only the drawing, without prologue, metadata and fixed size, with unique ids."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[\w.]+_\d+"', "", svg)
    svg = re.sub(
        r'^<svg [^>]*viewBox="([^"]*)"[^>]*>',
        r'<svg viewBox="\1" xmlns="http://www.w3.org/2000/svg" '
        r'xmlns:xlink="http://www.w3.org/1999/xlink">',
        svg,
    )
    for colour, name in _COLOURS.items():
        svg = svg.replace(colour, name)
    return svg


def _validations(entries: Sequence[Entry]) -> list[str]:
    found = [entry for entry in entries if entry["kind"] == "valid"]
    if not found:
        return []
    best = max(range(len(found)), key=lambda row: found[row].get("bleu") or 0.0)
    rows = []
    for number, entry in enumerate(found):
        figures = [_figure(entry.get(key), digits) for key, digits in (("loss", 3), ("perplexity", 2), ("bleu", 2))]
        cells = [f"{entry['step']:,}", *figures, "best" * (number == best)]
        mark = ' class="best"' * (number == best)
        rows.append(f"<tr{mark}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("step", "loss", "perplexity", "BLEU", ""))
    return ["<h2>Validations</h2>", '<div class="scroll"><table>', f"<tr>{head}</tr>", *rows, "</table></div>"]


def _figure(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
