"""Experiments, their findings, and the reports and figures made from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from heedful.atomic_files import write_durably
from heedful.version import __version__


class Setting(NamedTuple):
    out: Path  # the experiment's own directory
    quick: bool  # only check that it runs; the models are too small to judge


class Curve(NamedTuple):
    name: str
    x: Sequence[float]
    y: Sequence[float]


class Curves(NamedTuple):
    """A line plot over a numeric x axis."""

    curves: Sequence[Curve]
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False


class Bars(NamedTuple):
    """A bar chart with one labelled bar per name."""

    values: Mapping[str, float]
    x_label: str
    y_label: str


@dataclass(frozen=True)
class Finding:
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    held: bool | None  # whether the result agrees with the paper; None: not judged
    verdict: str
    figure: Curves | Bars


@dataclass(frozen=True)
class Experiment:
    name: str
    section: str  # of the paper
    claim: str
    run: Callable[[Setting], Finding]


def report(experiment: Experiment, found: Finding) -> str:
    """Return the report in Markdown."""
    outcome = {True: "agrees with the paper", False: "disagrees with the paper", None: "not judged"}[found.held]
    return "\n".join(
        [
            f"# {experiment.name} ({experiment.section})",
            "",
            experiment.claim,
            "",
            "| " + " | ".join(found.columns) + " |",
            "|---" * len(found.columns) + "|",
            *("| " + " | ".join(row) + " |" for row in found.rows),
            "",
            f"{outcome}: {found.verdict}",
        ]
    )


def write_finding(experiment: Experiment, found: Finding, directory: Path) -> None:
    """Write report.md, result.json and figure.svg."""
    directory.mkdir(parents=True, exist_ok=True)
    text = f"{report(experiment, found)}\n\n![{experiment.name}](figure.svg)\n"
    write_durably(directory / "report.md", text.encode("utf-8"))
    content: dict[str, Any] = {
        "experiment": experiment.name,
        "section": experiment.section,
        "held": found.held,
        "verdict": found.verdict,
        "columns": list(found.columns),
        "rows": [list(row) for row in found.rows],
        "heedful": __version__,
    }
    write_durably(directory / "result.json", (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8"))
    _draw(found.figure, directory / "figure.svg")


def _draw(content: Curves | Bars, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")
    if isinstance(content, Bars):
        _draw_bars(axes, content)
    else:
        _draw_curves(axes, content)
    axes.set_xlabel(content.x_label)
    axes.set_ylabel(content.y_label)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _draw_bars(axes: Any, bars: Bars) -> None:
    drawn = axes.bar(list(bars.values), list(bars.values.values()), width=0.5)
    axes.bar_label(drawn, [f"{value:.3g}" for value in bars.values.values()], padding=3)
    axes.set_ylim(bottom=0)
    axes.margins(x=0.3, y=0.15)
    axes.grid(axis="y", alpha=0.25)


def _draw_curves(axes: Any, content: Curves) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    for curve in content.curves:
        axes.plot(curve.x, curve.y, "-o", markersize=3, label=curve.name)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if content.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(sorted({x for curve in content.curves for x in curve.x})))
        axes.xaxis.set_minor_locator(NullLocator())
    if content.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9))
        axes.yaxis.set_minor_formatter(NullFormatter())
    plain = FuncFormatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(plain)
    axes.grid(alpha=0.25)
    if len(content.curves) > 1:
        axes.legend(fontsize=9, frameon=False)
