"""A run's page: its curves, drawn from log.jsonl, above what `heedful info` says of it. One file, nothing to fetch."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.files import write_durably
from heedful.views.figure import require_matplotlib

Entry = dict[str, Any]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222;
       background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
svg { width: 100%; height: auto }
table { border-collapse: collapse } td, th { padding: .15rem .9rem .15rem 0; text-align: left; vertical-align: top }
td { overflow-wrap: anywhere } tr.best { font-weight: 600 } .number { text-align: right }
"""


class Curve(NamedTuple):
    kind: str  # of the log's entries: "train" or "valid"
    key: str


class Panel(NamedTuple):
    title: str
    curves: tuple[Curve, ...]
    logarithmic: bool = False


PANELS = (
    Panel("loss per token (smoothed)", (Curve("train", "loss"), Curve("valid", "loss"))),
    Panel("perplexity", (Curve("train", "perplexity"), Curve("valid", "perplexity")), logarithmic=True),
    Panel("BLEU on the validation text", (Curve("valid", "bleu"),)),
    Panel("learning rate", (Curve("train", "lr"),)),
    Panel("target tokens per second", (Curve("train", "tokens_per_second"),)),
    Panel("norm of the gradient", (Curve("train", "gradient_norm"),), logarithmic=True),
)


def write_run_page(entries: Sequence[Entry], title: str, facts: Sequence[str], path: Path) -> None:
    """The page of a run: `facts` are lines `name: value`."""
    require_matplotlib()
    page = "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>',
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{html.escape(title)}</h1>",
            curves_as_svg(entries),
            *_validations(entries),
            "<h2>What it is</h2>",
            *_facts(facts),
            "</body></html>",
        ]
    )
    write_durably(path, f"{page}\n".encode())


def points(entries: Sequence[Entry], curve: Curve) -> tuple[list[int], list[float]]:
    """Steps and figures of a curve; a figure that was not finite is not in the log, and is left out."""
    found = [entry for entry in entries if entry["kind"] == curve.kind and entry.get(curve.key) is not None]
    return [entry["step"] for entry in found], [entry[curve.key] for entry in found]


def curves_as_svg(entries: Sequence[Entry]) -> str:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, places = pyplot.subplots(3, 2, figsize=(10, 9), layout="constrained")
    for panel, axes in zip(PANELS, places.flat, strict=True):
        drawn = [(curve, *points(entries, curve)) for curve in panel.curves]
        for curve, steps, figures in drawn:
            training = curve.kind == "train"
            colour, mark = ("#8aa9c9", "") if training and len(drawn) > 1 else ("#1f4e79", "" if training else "o")
            name = "training" if training else "validation"
            axes.plot(steps, figures, color=colour, marker=mark, markersize=4, linewidth=1.4, label=name)
        if panel.logarithmic and any(figures for _, _, figures in drawn):
            axes.set_yscale("log")
        if len(drawn) > 1:
            axes.legend(frameon=False)
        axes.set_title(panel.title, loc="left", fontsize=11)
        if panel.title.startswith("target tokens"):
            axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in places[-1]:
        axes.set_xlabel("step")
    drawing = io.StringIO()
    # Without a date and with a fixed salt the same log gives the same page.
    with pyplot.rc_context({"svg.hashsalt": "heedful"}):
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    svg = drawing.getvalue()
    return svg[svg.index("<svg") :]


def _validations(entries: Sequence[Entry]) -> list[str]:
    found = [entry for entry in entries if entry["kind"] == "valid"]
    if not found:
        return []
    best = max(range(len(found)), key=lambda row: found[row].get("bleu") or 0.0)
    rows = []
    for number, entry in enumerate(found):
        cells = [f"{entry['step']:,}", *(_figure(entry.get(key)) for key in ("loss", "perplexity", "bleu"))]
        mark = ' class="best"' if number == best else ""
        rows.append(f"<tr{mark}>" + "".join(f'<td class="number">{cell}</td>' for cell in cells) + "</tr>")
    head = "<tr><th>step</th><th>loss</th><th>perplexity</th><th>BLEU</th></tr>"
    return ["<h2>Validations</h2>", "<table>", head, *rows, "</table>"]


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _facts(facts: Sequence[str]) -> list[str]:
    rows = []
    for fact in facts:
        name, _, value = fact.partition(": ")
        rows.append(f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>")
    return ["<table>", *rows, "</table>"]
