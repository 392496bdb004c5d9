"""Write the tables and figures of docs/results/performance.md from the benchmarks' JSON files.

python benchmarks/performance_page.py

The text between `<!-- fill: NAME -->` and `<!-- end -->` is replaced by the tables of NAME's file; the rest is written
by hand. A missing file is reported as not measured.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from pathlib import Path
from typing import Any

from benchmark_tables import DOCS, Table, markdown
from processor import require_one_processor

FILES = {
    "training": "performance.json",
    "end-to-end": "performance-end-to-end.json",
    "decoding": "performance-decoding.json",
    "growth": "performance-growth.json",
    "startup": "performance-startup.json",
    "precision": "performance-precision.json",
    "threads": "performance-threads.json",
    "serving": "performance-serving.json",
}
NOT_RUN = "Not measured yet."
PICTURES = {
    "training": [("images/performance.png", "Training speed of each contender and the upper bound")],
    "end-to-end": [("images/performance-end-to-end.png", "Validation loss over time, one line per run")],
    "growth": [
        ("images/growth-lengths.svg", "Time and memory of a step by sentence length"),
        ("images/growth-corpus.svg", "Time and memory of preparation and first step by corpus size"),
    ],
}
# Names of training_peers.py, which is not imported, so that the page can be made without torch.
OURS, CEILING = "heedful", "matrix products only"
OUR_COLOUR, PEER_COLOUR, CEILING_COLOUR = "#1f4e9c", "#9aa5b1", "#c1272d"
_PLACE = re.compile(r"(<!-- fill: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def filled(page: str, found: dict[str, list[Table]]) -> str:
    """Return the page with every marked place filled from the available tables."""
    return _PLACE.sub(lambda place: f"{place[1]}{block(place[2], found.get(place[2], []))}\n{place[4]}", page)


def places(page: str) -> list[str]:
    return [place[2] for place in _PLACE.finditer(page)]


def block(name: str, tables: list[Table]) -> str:
    """Return the content of a place: its figures, and each table under its title."""
    if not tables:
        return NOT_RUN
    require_one_processor(tables)
    parts = [f"### {table['title']}\n\n{markdown(table)}" for table in tables]
    pictures = [f"![{words}]({picture})" for picture, words in PICTURES.get(name, [])]
    return "\n\n".join([*pictures, *parts])


def draw_training(tables: list[Table], path: Path) -> None:
    from matplotlib import pyplot

    tables = [table for table in tables if "raw" in table]
    figure, panels = pyplot.subplots(1, len(tables), figsize=(6.8 * len(tables), 4.4), squeeze=False)
    for axes, table in zip(panels[0], tables, strict=True):
        _bars(axes, table["raw"])
        axes.set_title(table["title"], loc="left", fontsize=11)
    figure.tight_layout(w_pad=3)
    _save(figure, path)


def _bars(axes: Any, raw: dict[str, Any]) -> None:
    """Draw a bar per contender with a line from its slowest to its fastest round, and a line per upper bound."""
    tokens = raw["tokens"]
    seconds = {name: result["seconds"] for name, result in raw["results"].items()}
    speed = {name: tokens / statistics.median(times) for name, times in seconds.items()}
    names = sorted((name for name in speed if not name.startswith("matrix products")), key=lambda name: speed[name])
    spread = [
        [speed[name] - tokens / max(seconds[name]) for name in names],
        [tokens / min(seconds[name]) - speed[name] for name in names],
    ]
    colours = [OUR_COLOUR if name.startswith(OURS) else PEER_COLOUR for name in names]
    axes.barh(
        names, [speed[name] for name in names], color=colours, xerr=spread, ecolor="#333333", capsize=2, height=0.62
    )
    longest = max(speed.values())
    for place, name in enumerate(names):
        colour = "white" if name.startswith(OURS) else "black"
        axes.text(longest * 0.015, place, f"{speed[name]:,.0f}", va="center", color=colour, fontsize=9)
    for name in (name for name in speed if name.startswith(f"{CEILING},")):
        axes.axvline(speed[name], color=CEILING_COLOUR, linestyle="--", linewidth=1.5)
        axes.annotate(
            f"{name}: {speed[name]:,.0f}",
            (speed[name], len(names) - 0.45),
            (-4, 0),
            textcoords="offset points",
            ha="right",
            color=CEILING_COLOUR,
            fontsize=9,
        )
    axes.set_ylim(-0.6, len(names) - 0.1)
    axes.set_xlim(0, 1.06 * max([*speed.values(), *(tokens / min(seconds[name]) for name in names)]))
    axes.set_xlabel("target tokens per second: median, slowest and fastest round", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def draw_end_to_end(tables: list[Table], path: Path) -> None:
    from matplotlib import pyplot

    raw = tables[0]["raw"]
    figure, axes = pyplot.subplots(figsize=(6.6, 3.8))
    for number, run in enumerate(raw["runs"]):
        colour = OUR_COLOUR if run["side"].startswith(OURS) else PEER_COLOUR
        label = run["side"] if run["side"] not in [one["side"] for one in raw["runs"][:number]] else None
        axes.plot(run["walls"], run["losses"], "-o", color=colour, markersize=3, linewidth=1.6, label=label)
        axes.axvspan(0, run["start"], color=colour, alpha=0.08, linewidth=0)
    axes.axhline(raw["target"], color=CEILING_COLOUR, linestyle="--", linewidth=1.2)
    text = f"loss to reach: {raw['target']:.3f}"
    axes.annotate(
        text, (0.01, raw["target"]), (0, 4), xycoords=("axes fraction", "data"), textcoords="offset points",
        color=CEILING_COLOUR, fontsize=9,
    )  # fmt: skip
    axes.set_xlabel("seconds since the process began; shaded: start-up")
    axes.set_ylabel("validation loss, nats per token")
    axes.set_xlim(left=0)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    pyplot.close(figure)


def read(docs: Path) -> dict[str, list[Table]]:
    files = {name: docs / file for name, file in FILES.items()}
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in files.items() if path.exists()}


def write(docs: Path = DOCS) -> None:
    import matplotlib

    matplotlib.use("Agg")
    found, page = read(docs), docs / "performance.md"
    drawings = {"training": draw_training, "end-to-end": draw_end_to_end}
    for name, draw in drawings.items():
        if found.get(name):
            draw(found[name], docs / PICTURES[name][0][0])
    page.write_text(filled(page.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=Path, default=DOCS, help="directory of performance*.json and performance.md")
    write(parser.parse_args().docs)
