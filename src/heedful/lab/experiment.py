"""What an experiment is, and what it finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from heedful.files import write_durably
from heedful.version import __version__


class Setting(NamedTuple):
    out: Path  # a directory of its own
    quick: bool  # to see that it runs: what is trained is too small to judge by


class Curve(NamedTuple):
    name: str
    x: Sequence[float]
    y: Sequence[float]


class Picture(NamedTuple):
    curves: Sequence[Curve]
    x_label: str
    y_label: str
    logarithmic: bool = False  # both axes


@dataclass(frozen=True)
class Finding:
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    held: bool | None  # whether it came out as the paper says; None: not judged
    verdict: str
    picture: Picture


@dataclass(frozen=True)
class Experiment:
    name: str
    section: str  # of the paper
    claim: str
    run: Callable[[Setting], Finding]


def report(experiment: Experiment, found: Finding) -> str:
    """As a person reads it, in Markdown."""
    outcome = {True: "as the paper says", False: "not as the paper says", None: "not judged"}[found.held]
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
    """report.md, result.json and figure.svg."""
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
    _draw(found.picture, directory / "figure.svg")


def _draw(picture: Picture, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.8))
    for curve in picture.curves:
        axes.plot(curve.x, curve.y, "-o", markersize=3, label=curve.name)
    if picture.logarithmic:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
    axes.set_xlabel(picture.x_label)
    axes.set_ylabel(picture.y_label)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=9)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
