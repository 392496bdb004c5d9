"""Write the results and the figure of docs/results/parsing.md from parsing.json: python benchmarks/parsing_page.py

python benchmarks/parsing_page.py

benchmarks/parsing_learning_curve.py writes the JSON file and calls this module.
Do not edit the text between the markers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs" / "results"
BEGIN, END = "<!-- results: benchmarks/parsing_page.py -->", "<!-- end of results -->"
NOT_RUN = "Not run yet."
FIGURE = "images/parsing.png"
PAPER_TREES, PAPER_F1 = 40_000, 91.3  # Table 4, WSJ only, section 23


def results_block(content: dict[str, Any] | None) -> str:
    """Return the Markdown text between the markers."""
    if content is None:
        return NOT_RUN
    rows = content["rows"]
    first, sizes = rows[0], sorted({row["parameters"] for row in rows})
    lines = [
        f"{' to '.join(f'{size:,}' for size in (sizes[0], sizes[-1])[: len(sizes)])} parameters, "
        f"{first['steps']:,} steps, one thread per run, {content['together']} runs at a time; scores of the averaged "
        f"model on {first['valid']['sentences']} validation and {first['test']['sentences']} test sentences.",
        "",
        "| training trees | epochs | training time | validation F1 | test F1 | precision | recall "
        "| test F1, at most 40 words | complete match | well-formed before repair |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_table_row(row) for row in rows),
        "",
        f"![F1 and well-formed outputs by the number of training trees; validation loss by steps]({FIGURE})",
    ]
    return "\n".join(lines)


def _table_row(row: dict[str, Any]) -> str:
    test = row["test"]["all"]
    cells = [
        f"{row['trees']:,}",
        f"{row['epochs']:.0f}",
        f"{row['seconds'] / 60:.1f} min",
        f"{row['valid']['all']['f1']:.2f}",
        f"**{test['f1']:.2f}**",
        f"{test['precision']:.2f}",
        f"{test['recall']:.2f}",
        f"{row['test']['up_to_40_words']['f1']:.2f}",
        f"{test['complete_match']:.1f}%",
        f"{row['test']['well_formed']:.1f}%",
    ]
    return f"| {' | '.join(cells)} |"


def fill_results(page: str, content: dict[str, Any] | None) -> str:
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n{results_block(content)}\n{END}{tail}"


def draw_figure(content: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = content["rows"]
    trees = [row["trees"] for row in rows]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    left.plot(trees, [row["valid"]["all"]["f1"] for row in rows], "o--", color="tab:blue", label="F1, validation")
    left.plot(trees, [row["test"]["all"]["f1"] for row in rows], "o-", color="tab:blue", label="F1, test")
    left.plot(trees, [row["test"]["well_formed"] for row in rows], "s-", color="tab:green", label="well-formed, test")
    left.plot([PAPER_TREES], [PAPER_F1], "*", color="tab:red", markersize=12, label="the paper's F1 (WSJ 23)")
    left.set_xscale("log", base=10)
    left.set_xticks([*trees, PAPER_TREES], [f"{number:,}" for number in (*trees, PAPER_TREES)], rotation=30)
    left.minorticks_off()
    left.set_ylim(0, 102)
    left.set_xlabel("training trees")
    left.set_ylabel("%")
    left.legend(loc="lower right", fontsize=8)
    for row in rows:
        curve = row["validation"]
        right.plot([one["step"] for one in curve], [one["nll"] for one in curve], "o-", label=f"{row['trees']:,} trees")
    right.set_xlabel("steps")
    right.set_ylabel("validation loss (nats per token)")
    right.set_ylim(bottom=0)
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def write(docs: Path = DOCS) -> None:
    data, page = docs / "parsing.json", docs / "parsing.md"
    content = json.loads(data.read_text(encoding="utf-8")) if data.exists() else None
    if content is not None:
        draw_figure(content, docs / FIGURE)
    page.write_text(fill_results(page.read_text(encoding="utf-8"), content), encoding="utf-8")


if __name__ == "__main__":
    write()
