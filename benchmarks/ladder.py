"""Try variants of the automatic settings on corpora of several sizes, scored on the validation text only.

python benchmarks/ladder.py --out runs/ladder --source F --target F --valid-source F --valid-target F
                            [--pairs 1000 5000 29000] [--variants default …] [--threads 2] [--time 4m]
python benchmarks/ladder.py --page        # only write the page again

Each run is the automatic path with a few keys changed, and each is recorded in docs/results/ladder.json as soon as it
ends; docs/results/ladder.md is written from that file. Recorded runs are not repeated and unfinished ones in --out are
resumed, so the script can be stopped at any time. Rules in training/autoconfig.py should follow from the page.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

from benchmark_tables import DOCS, circumstances, measured
from decoding_speed import versions

import heedful
from heedful.atomic_files import write_durably
from heedful.storage.model_directory import read_model
from heedful.text.text_files import read_lines

PAIRS = (1_000, 5_000, 29_000)
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
    "shallow decoder": {"model.N_decoder": 1},
    "deep encoder, shallow decoder": {"model.N": 6, "model.N_decoder": 2},
    "large batches": {"training.batch_tokens": 4_096},
    "500 tokens": {"data.vocab_size": 500},
    "1,000 tokens": {"data.vocab_size": 1_000},
    "2,000 tokens": {"data.vocab_size": 2_000},
    "4,000 tokens": {"data.vocab_size": 4_000},
    "8,000 tokens": {"data.vocab_size": 8_000},
    "BPE-dropout": {"data.bpe_dropout": 0.1},
    "moving average": {"training.ema_decay": 0.999},
    "consistency": {"training.consistency": 3.0},
}
FIGURES = ("greedy", "beam", "nll", "alpha", "steps", "minutes")

Run = dict[str, Any]  # pairs, variant, time (empty: no budget), the figures, and the circumstances


def first_pairs(source: Path, target: Path, count: int, out: Path) -> dict[str, str]:
    """Write the first pairs of a corpus, and return them as keys of a recipe."""
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    for side, path in (("source", source), ("target", target)):
        copy = out / f"{count}.{side}"
        if not copy.exists():
            lines = itertools.islice(read_lines(path), count)
            write_durably(copy, "".join(f"{line}\n" for line in lines).encode())
        found[f"data.{side}"] = str(copy.absolute())
    return found


def result(overrides: dict[str, Any], out: Path, time: str | None) -> dict[str, Any]:
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
        "selected": model.history.get("selected", ""),
    }


def recorded(runs: list[Run], pairs: int, variant: str, time: str) -> Run | None:
    """Return the run with these settings, if there is one."""
    same = (run for run in runs if (run["pairs"], run["variant"], run["time"]) == (pairs, variant, time))
    return next(same, None)


def page(runs: list[Run]) -> str:
    """Return the page: a table per size and time budget. Variants that have not been run are listed too."""
    sections = sorted({(run["pairs"], run["time"]) for run in runs} | {(pairs, "") for pairs in PAIRS})
    return "\n\n".join([_INTRODUCTION, *(_section(runs, pairs, time) for pairs, time in sections)]) + "\n"


_INTRODUCTION = """# The ladder: variants of the automatic settings

Each row is a run of `heedful train` without a recipe, with the given keys changed and everything else chosen
automatically (`benchmarks/ladder.py`). BLEU is cased 13a on the validation text, one seed; test sets are not used.
Both BLEU columns score the final model: greedy on at most 1,000 lines, beam search on the first 500. Compare rows of
one table only. Rules in `training/autoconfig.py` that no row supports are extrapolated from the runs in
[experiments](experiments.md)."""


def _section(runs: list[Run], pairs: int, time: str) -> str:
    heading = f"## First {pairs:,} pairs" + (f", --time {time}" if time else "")
    columns = ("variant", "keys", "BLEU, greedy", "BLEU, beam", "nll", "α", "steps", "minutes")
    rows = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    under: dict[str, list[str]] = {}  # circumstances → the variants that share them
    for name, keys in VARIANTS.items():
        run = recorded(runs, pairs, name, time)
        listed = ", ".join(f"`{key}={value}`" for key, value in keys.items()) or "–"
        cells = _figures(run) if run else ["not run", *["–"] * (len(FIGURES) - 1)]
        rows.append(f"| {' | '.join([name, listed, *cells])} |")
        if run:
            under.setdefault(circumstances(run["measured"]), []).append(name)
    notes = [f"{', '.join(names)}: {what}" for what, names in under.items()]
    return "\n\n".join([heading, "\n".join(rows), *notes])


def _figures(run: Run) -> list[str]:
    values = [f"{run[key]:.2f}" for key in ("greedy", "beam", "nll", "alpha")]
    return [*values, f"{run['steps']:,.0f}", f"{run['minutes']:.1f}"]


def read(table: Path) -> list[Run]:
    return json.loads(table.read_text(encoding="utf-8")) if table.exists() else []


def write(runs: list[Run], table: Path) -> None:
    """Write the runs, and the page beside them."""
    write_durably(table, (json.dumps(runs, indent=1, ensure_ascii=False) + "\n").encode())
    write_durably(table.with_suffix(".md"), page(runs).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="directory of the runs")
    for name in ("source", "target", "valid-source", "valid-target"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--pairs", type=int, nargs="+", default=list(PAIRS))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), metavar="NAME")
    parser.add_argument("--threads", type=int, default=0, help="(all cores)")
    parser.add_argument("--time", help="budget of each run, so that variants with cheaper steps get more of them")
    parser.add_argument("--table", type=Path, default=DOCS / "ladder.json", help="(docs/results/ladder.json)")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args()
    runs = read(options.table)
    if not options.page:
        if missing := [
            name for name in ("out", "source", "target", "valid_source", "valid_target") if not getattr(options, name)
        ]:
            parser.error(f"missing: {', '.join(missing)}")
        for pairs, name in itertools.product(options.pairs, options.variants):
            if recorded(runs, pairs, name, options.time or "") is None:
                runs.append(_trained(options, pairs, name))
                write(runs, options.table)
    write(runs, options.table)


def _trained(options: argparse.Namespace, pairs: int, name: str) -> Run:
    valid = {f"data.valid_{side}": str(getattr(options, f"valid_{side}").absolute()) for side in ("source", "target")}
    text = first_pairs(options.source, options.target, pairs, options.out / "text")
    overrides = {**text, **valid, "training.threads": options.threads, **VARIANTS[name]}
    directory = f"{pairs}-{name}{f'-{options.time}' if options.time else ''}".replace(" ", "-").replace(",", "")
    found = result(overrides, options.out / directory, options.time)
    where = measured(options.threads, options.source.name, versions("torch"))
    return {"pairs": pairs, "variant": name, "time": options.time or "", **found, "measured": where}


if __name__ == "__main__":
    main()
