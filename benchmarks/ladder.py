"""Try variants of the automatic settings on corpora of several sizes, scored on the validation text only.

python benchmarks/ladder.py --out runs/ladder --source F --target F --valid-source F --valid-target F
                            [--pairs 1000 5000] [--variants default …] [--threads 2] [--time 4m]

Each run is the automatic path with a few keys changed. Unfinished runs in --out are resumed and finished ones are kept,
so the script can be stopped at any time. Rules in training/autoconfig.py should follow from its table; it writes
docs/results/ladder.json, and prints the rows for docs/results/experiments.md.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

from benchmark_tables import DOCS, Table, measured, write
from decoding_speed import versions

import heedful
from heedful.storage.model_directory import read_model
from heedful.text.text_files import read_lines

# What differs from the automatic choice. Values that depend on the number of steps are left to it.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "dropout 0.1": {"model.dropout": 0.1},
    "dropout 0.3": {"model.dropout": 0.3},
    "word dropout": {"model.word_dropout": 0.1},
    "no word dropout": {"model.word_dropout": 0.0},
    "one direction": {"training.bidirectional_steps": 0},
    "narrow": {"model.d_model": 64},
    "wide": {"model.d_model": 192},
    "shallow": {"model.N": 2},
    "deep": {"model.N": 6},
    "large batches": {"training.batch_tokens": 4_096},
    "small vocabulary": {"data.vocab_size": 1_000},
    "large vocabulary": {"data.vocab_size": 8_000},
    "BPE-dropout": {"data.bpe_dropout": 0.1},
}


def first_pairs(source: Path, target: Path, count: int, out: Path) -> dict[str, str]:
    """Write the first pairs of a corpus, and return them as keys of a recipe."""
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    for side, path in (("source", source), ("target", target)):
        copy = out / f"{count}.{side}"
        if not copy.exists():
            lines = itertools.islice(read_lines(path), count)
            copy.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        found[f"data.{side}"] = str(copy.absolute())
    return found


def result(overrides: dict[str, Any], out: Path, time: str | None) -> dict[str, float]:
    """Train to the end, and return what the final model scored on the validation text, and the training time."""
    run = heedful.train(out=out, overrides=overrides, time=time)
    model = read_model(run.path / "model")
    scores = [entry for entry in run.log() if entry["kind"] == "valid"]
    return {
        "greedy": model.history.get("valid_bleu", scores[-1]["bleu"]),
        "beam": max(model.history.get("alpha_scores", {"": 0.0}).values()),
        "nll": scores[-1]["nll"],
        "alpha": model.decoding.alpha,
        "steps": run.progress.step,
        "minutes": run.progress.seconds / 60,
    }


def table(found: dict[tuple[int, str], dict[str, float]], threads: int) -> Table:
    rows = [
        [
            f"{pairs:,}",
            name,
            *(f"{one[key]:.2f}" for key in ("greedy", "beam", "nll", "alpha")),
            f"{one['steps']:,.0f}",
            f"{one['minutes']:.1f}",
        ]
        for (pairs, name), one in found.items()
    ]
    return {
        "title": "Variants of the automatic settings",
        "measured": measured(threads, "validation text", versions("torch")),
        "columns": ["pairs", "variant", "BLEU, greedy", "BLEU, beam", "nll", "alpha", "steps", "minutes"],
        "rows": rows,
        "notes": ["One seed. BLEU with beam search is of the first 500 validation lines."],
        "raw": {f"{pairs}; {name}": one for (pairs, name), one in found.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="directory of the runs")
    for name in ("source", "target", "valid-source", "valid-target"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000, 5_000])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), metavar="NAME")
    parser.add_argument("--threads", type=int, default=0, help="(all cores)")
    parser.add_argument("--time", help="budget of each run, so that variants with cheaper steps get more of them")
    parser.add_argument("--table", type=Path, default=DOCS / "ladder.json", help="(docs/results/ladder.json)")
    options = parser.parse_args()
    valid = {f"data.valid_{side}": str(getattr(options, f"valid_{side}").absolute()) for side in ("source", "target")}
    found: dict[tuple[int, str], dict[str, float]] = {}
    for pairs, name in itertools.product(options.pairs, options.variants):
        text = first_pairs(options.source, options.target, pairs, options.out / "text")
        overrides = {**text, **valid, "training.threads": options.threads, **VARIANTS[name]}
        found[pairs, name] = result(overrides, options.out / f"{pairs}-{name.replace(' ', '-')}", options.time)
        write([table(found, options.threads)], options.table)


if __name__ == "__main__":
    main()
