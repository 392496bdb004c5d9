"""Write the results on real text, and their figures, from docs/results/results.json: python benchmarks/results_page.py

benchmarks/record_result.py writes the JSON file and calls this module. Do not edit the text between the markers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs" / "results"
BEGIN, END = "<!-- results: benchmarks/results_page.py -->", "<!-- end of results -->"
NOT_RUN = "Not run yet."
# Published results for a recipe's shape and text: recipe → set, BLEU, authors.
PUBLISHED = {"multi30k-en-de": ("test_2016_flickr", 41.02, "Wu et al. 2021")}

Entry = dict[str, Any]


def groups(content: Entry) -> list[list[Entry]]:
    """Return the runs grouped by recipe, one list of seeds each; runs without a recipe come last."""
    ordered = sorted(content["runs"], key=lambda run: (run["recipe"] is None, run["name"], run["seed"]))
    return [list(runs) for _, runs in groupby(ordered, key=lambda run: run["name"])]


def block(content: Entry | None) -> str:
    """Return the text between the markers."""
    if content is None or not content["runs"]:
        return NOT_RUN
    recipes = groups(content)
    lines = [
        "| run | N, d_model, d_ff, h | vocab | parameters | steps | epochs | target tokens | FLOPs | time | cores |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_training_row(runs) for runs in recipes),
        "",
        "| run | set | sentences | BLEU | chrF | brevity penalty | seed |",
        "|---|---|---|---|---|---|---|",
        *(_score_row(runs, name) for runs in recipes for name in runs[0]["scores"]),
    ]
    for runs in recipes:
        lines += ["", *_details(runs)]
    return "\n".join(lines)


def _title(run: Entry) -> str:
    return f"[{run['name']}](../../{run['recipe']})" if run["recipe"] else run["name"]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def mean(runs: Sequence[Entry], figure: Callable[[Entry], float], digits: int = 2) -> str:
    """Return the mean over seeds and, if they differ, half the range."""
    values = [figure(run) for run in runs]
    average = f"{sum(values) / len(values):,.{digits}f}"
    return average if min(values) == max(values) else f"{average} ± {(max(values) - min(values)) / 2:.{digits}f}"


def _training_row(runs: list[Entry]) -> str:
    """Return the row of a recipe; only time, and steps after early stopping, differ between seeds."""
    first, shape = runs[0]["training"], runs[0]["settings"]["model"]
    return _row(
        _title(runs[0]),
        ", ".join(str(shape[key]) for key in ("N", "d_model", "d_ff", "h")),
        f"{first['vocab_size']:,}",
        f"{first['parameters']:,}",
        mean(runs, lambda run: run["training"]["steps"], 0),
        mean(runs, lambda run: run["training"]["epochs"], 1),
        f"{mean(runs, lambda run: run['training']['tokens'] / 1e6, 1)} M",
        f"{sum(run['training']['flops'] for run in runs) / len(runs):.2e}".replace("e+", "e"),
        f"{mean(runs, lambda run: run['training']['seconds'] / 60, 0)} min",
        " / ".join(str(threads) for threads in sorted({run["machine"]["threads"] for run in runs})),
    )


def _score_row(runs: list[Entry], name: str) -> str:
    bleu = {run["seed"]: run["scores"][name]["BLEU"]["value"] for run in runs}
    several = ", ".join(f"{seed}: {value:.2f}" for seed, value in bleu.items())
    return _row(
        _title(runs[0]),
        "validation" if name == "val" else name,
        f"{runs[0]['scores'][name]['sentences']:,}",
        f"**{mean(runs, lambda run: run['scores'][name]['BLEU']['value'])}**",
        mean(runs, lambda run: run["scores"][name]["chrF"]["value"]),
        mean(runs, lambda run: brevity_penalty(run["scores"][name]["BLEU"]["detail"]), 3),
        several if len(runs) > 1 else str(runs[0]["seed"]),
    )


def brevity_penalty(detail: str) -> float:
    """Return the brevity penalty from BLEU's details: 67.7/42.4/29.1/20.0 (BP 0.925, …"""
    return float(detail.partition("(BP ")[2].partition(",")[0])


def _details(runs: list[Entry]) -> list[str]:
    first = runs[0]
    score, decoding = first["scores"]["val"], first["settings"]["decoding"]
    data = ", ".join(f"`{file}` {digest[:12]}" for file, digest in first["files"].items())
    averaged = len(first["training"]["averaged_steps"])
    model = f"the average of the last {averaged} checkpoints" if averaged > 1 else "the last checkpoint"
    return [
        f"### {first['name']}",
        "",
        "```bash",
        *(run["command"] for run in runs),
        "```",
        "",
        f"- {first['training']['pairs']:,} pairs; {model}, beam {decoding['beam']}, α = {decoding['alpha']}",
        *_published(runs),
        f"- `{score['BLEU']['signature']}`, `{score['chrF']['signature']}`",
        *(f"- {machine}" for machine in dict.fromkeys(_machine(run) for run in runs)),
        f"- data and the first 12 digits of each SHA-256 ([all](../reference/data.md#corpora-of-the-recipes)): {data}",
        "",
        f"![Validation loss and BLEU by training step of {first['name']}]({picture(first['name'])})",
    ]


def _machine(run: Entry) -> str:
    machine, commit = run["machine"], run["commit"]
    source = f"commit {commit}" if commit else "commit not recorded"
    return (
        f"{machine['processor']}, {machine['threads']} of {machine['cores']} cores, torch {machine['torch']}, "
        f"Python {machine['python']}; {source}{'; ' if run['note'] else ''}{run['note']}"
    )


def _published(runs: list[Entry]) -> list[str]:
    if runs[0]["name"] not in PUBLISHED:
        return []
    name, theirs, who = PUBLISHED[runs[0]["name"]]
    ours = sum(run["scores"][name]["BLEU"]["value"] for run in runs) / len(runs)
    above = f"{abs(ours - theirs):.2f} {'above' if ours >= theirs else 'below'} that"
    return [f"- {who} report {theirs} for this shape and text on {name}; {ours:.2f} is {above}"]


def picture(name: str) -> str:
    return f"images/results-{name}.svg"


def filled(page: str, content: Entry | None) -> str:
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n{block(content)}\n{END}{tail}"


def draw(runs: list[Entry], path: Path) -> None:
    """Draw validation loss and greedy BLEU, one line per seed, and a star for the final model with beam search."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for run in runs:
        steps = [one["step"] for one in run["curve"]]
        left.plot(steps, [one["nll"] for one in run["curve"]], "o-", markersize=4, label=f"seed {run['seed']}")
        (line,) = right.plot(
            steps, [one["bleu"] for one in run["curve"]], "o-", markersize=4, label=f"seed {run['seed']}, greedy"
        )
        final = run["scores"]["val"]["BLEU"]["value"]
        right.plot(
            run["training"]["steps"], final, "*", markersize=12, color=line.get_color(), label=f"finished: {final:.2f}"
        )
    left.set_ylabel("validation loss (nats per token)")
    right.set_ylabel("validation BLEU")
    right.legend(loc="lower right", fontsize=8, frameon=False)
    for axes in (left, right):
        axes.set_xlabel("step")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    # No date and a fixed salt, so that the same runs give the same figure.
    with pyplot.rc_context({"svg.hashsalt": "heedful", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def write(docs: Path = DOCS) -> None:
    data, page = docs / "results.json", docs / "results.md"
    content = json.loads(data.read_text(encoding="utf-8")) if data.exists() else None
    for runs in groups(content) if content else []:
        draw(runs, docs / picture(runs[0]["name"]))
    page.write_text(filled(page.read_text(encoding="utf-8"), content), encoding="utf-8")


if __name__ == "__main__":
    write()
