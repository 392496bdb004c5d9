"""Learning curve of the parser on 1/8, 1/4, 1/2 and all training trees (section 6.3).

python benchmarks/parsing_learning_curve.py TREEBANK [--runs runs/parsing] [--together 2]

TREEBANK contains the .mrg files (see docs/results/parsing.md). Every run uses recipes/treebank-parsing.toml with the
same number of steps on every 8th, 4th, 2nd tree, or all; smaller subsets are contained in larger ones. Runs are
parallel with one thread each, which is faster than one after the other on all cores. After an interruption, run it
again: finished runs are kept and started runs resume. Writes docs/results/parsing.json after each run, and the table
and figure of docs/results/parsing.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import parsing_page

from heedful import recipes
from heedful.training.run_log import read_log

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "recipes" / "treebank-parsing.toml"
STRIDES = (1, 2, 4, 8)  # largest subset first: it takes longest


def run_heedful(*arguments: str | Path, log: Path) -> str:
    """Run heedful in a process with one thread; return stdout and append stderr to `log`."""
    command = [sys.executable, "-m", "heedful", *map(str, arguments)]
    with log.open("ab") as stream:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=stream, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {done.returncode}. See {log}.")
    return done.stdout.decode("utf-8")


def write_subset(data: Path, stride: int) -> list[Path]:
    """Write every n-th sentence and tree of the training text; return the two files."""
    written = []
    for kind in ("words", "trees"):
        lines = (data / f"train.{kind}").read_text(encoding="utf-8").splitlines()
        path = data.parent / f"every-{stride}.{kind}"
        path.write_text("".join(f"{line}\n" for line in lines[::stride]), encoding="utf-8")
        written.append(path)
    return written


def train_and_score(stride: int, runs: Path, steps: int) -> dict[str, Any]:
    """Train on a subset and score the validation and test splits; return the row."""
    run, data = runs / f"every-{stride}", runs / "data"
    log = runs / f"every-{stride}.log"
    words, trees = write_subset(data, stride)
    run_heedful(
        *("train", RECIPE, "--out", run, "--set", f"training.steps={steps}", "--set", "training.threads=1"),
        *("--set", f"data.source={words}", "--set", f"data.target={trees}"),
        *("--set", f"data.valid_source={data / 'valid.words'}", "--set", f"data.valid_target={data / 'valid.trees'}"),
        log=log,
    )
    sentences = words.read_text(encoding="utf-8").splitlines()
    row = {"every": stride, "trees": len(sentences), "words": sum(len(line.split()) for line in sentences)}
    scores = {part: load_or_compute_scores(run, data, part, steps, log) for part in ("valid", "test")}
    return row | run_statistics(run) | scores


def load_or_compute_scores(run: Path, data: Path, part: str, steps: int, log: Path) -> dict[str, Any]:
    """Return the scores of the averaged model, cached in the run directory."""
    cached = run / f"parsing-{part}-{steps}.json"
    if not cached.exists():
        files = ("--source", data / f"{part}.words", "--reference", data / f"{part}.gold")
        printed = run_heedful("evaluate", run, "--trees", "--json", *files, "--output", run / f"{part}.parsed", log=log)
        cached.write_text(printed, encoding="utf-8")
    content: dict[str, Any] = json.loads(cached.read_text(encoding="utf-8"))
    return content


def run_statistics(run: Path) -> dict[str, Any]:
    entries = read_log(run / "log.jsonl")
    start = next(entry for entry in entries if entry["kind"] == "start")
    last = [entry for entry in entries if entry["kind"] == "train"][-1]
    curve = [{key: entry[key] for key in ("step", "nll", "bleu")} for entry in entries if entry["kind"] == "valid"]
    return {
        "pairs": start["pairs"],
        "parameters": start["parameters"],
        "steps": last["step"],
        "epochs": last["epoch"],
        "seconds": last["seconds"],
        "validation": curve,
    }


def main() -> None:
    settings = recipes.build(recipes.read(RECIPE))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("treebank", type=Path, help="directory with the .mrg files")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "parsing")
    parser.add_argument("--together", type=int, default=2, help="number of parallel runs, one thread each")
    parser.add_argument("--steps", type=int, default=settings.training.steps, help="default: the recipe's")
    parser.add_argument("--docs", type=Path, default=parsing_page.DOCS, help="directory of parsing.json and parsing.md")
    options = parser.parse_args()
    runs = options.runs.absolute()
    runs.mkdir(parents=True, exist_ok=True)
    print(
        run_heedful("treebank", options.treebank, "--out", runs / "data", log=runs / "treebank.log"), end="", flush=True
    )
    rows: list[dict[str, Any]] = []
    pool = ThreadPoolExecutor(options.together)
    try:
        for future in as_completed([pool.submit(train_and_score, stride, runs, options.steps) for stride in STRIDES]):
            rows.append(future.result())
            content = {"together": options.together, "rows": sorted(rows, key=lambda row: row["trees"])}
            (options.docs / "parsing.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            row = rows[-1]
            print(f"{row['trees']:,} trees: test F1 {row['test']['all']['f1']:.2f}", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)  # after a failure or Ctrl-C, start no further runs
    parsing_page.write(options.docs)


if __name__ == "__main__":
    main()
