"""How well a parser learns from 1/8, 1/4, 1/2 and all of a treebank's training trees (section 6.3, Table 4).

python benchmarks/parsing_curve.py TREEBANK [--runs runs/parsing] [--together 2]

TREEBANK has the .mrg files (docs/results/parsing.md says where from). Every run is recipes/treebank-parsing.toml, with
the same steps, on every 8th, 4th, 2nd tree, or all; a smaller part is within the larger ones. Runs go side by side, one
thread each, which is faster than one after the other on all cores. Call it again after an interruption: what is
finished is not done again, and what has begun goes on. Writes docs/results/parsing.json after each run, and from it, as
benchmarks/parsing_page.py does, the table of docs/results/parsing.md and its picture.
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
EVERY = (1, 2, 4, 8)  # the longest first: they read most


def heedful(*arguments: str | Path, log: Path) -> str:
    """The program in a process of its own, one thread; what it says goes to `log`, what it prints comes back."""
    command = [sys.executable, "-m", "heedful", *map(str, arguments)]
    with log.open("ab") as stream:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=stream, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}; {log} has what it said.")
    return done.stdout.decode("utf-8")


def write_slice(data: Path, every: int) -> list[Path]:
    """Every n-th sentence and tree of the training text: the slice's two files."""
    written = []
    for kind in ("words", "trees"):
        lines = (data / f"train.{kind}").read_text(encoding="utf-8").splitlines()
        path = data.parent / f"every-{every}.{kind}"
        path.write_text("".join(f"{line}\n" for line in lines[::every]), encoding="utf-8")
        written.append(path)
    return written


def run_of(every: int, runs: Path, steps: int) -> dict[str, Any]:
    """Trains on a slice and scores both held-out parts; returns the row."""
    run, data = runs / f"every-{every}", runs / "data"
    log = runs / f"every-{every}.log"
    words, trees = write_slice(data, every)
    heedful(
        *("train", RECIPE, "--out", run, "--set", f"training.steps={steps}", "--set", "training.threads=1"),
        *("--set", f"data.source={words}", "--set", f"data.target={trees}"),
        *("--set", f"data.valid_source={data / 'valid.words'}", "--set", f"data.valid_target={data / 'valid.trees'}"),
        log=log,
    )
    sentences = words.read_text(encoding="utf-8").splitlines()
    row = {"every": every, "trees": len(sentences), "words": sum(len(line.split()) for line in sentences)}
    scores = {part: scored(run, data, part, steps, log) for part in ("valid", "test")}
    return row | facts(run) | scores


def scored(run: Path, data: Path, part: str, steps: int, log: Path) -> dict[str, Any]:
    """The averaged model's scores, kept beside it: asked for once."""
    kept = run / f"parsing-{part}-{steps}.json"
    if not kept.exists():
        files = ("--source", data / f"{part}.words", "--reference", data / f"{part}.gold")
        printed = heedful("evaluate", run, "--trees", "--json", *files, "--output", run / f"{part}.parsed", log=log)
        kept.write_text(printed, encoding="utf-8")
    content: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return content


def facts(run: Path) -> dict[str, Any]:
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
    parser.add_argument("treebank", type=Path, help="the directory of the .mrg files")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "parsing")
    parser.add_argument("--together", type=int, default=2, help="runs at a time, a thread each")
    parser.add_argument("--steps", type=int, default=settings.training.steps, help="default: the recipe's")
    parser.add_argument("--docs", type=Path, default=parsing_page.DOCS, help="where parsing.json and parsing.md are")
    options = parser.parse_args()
    runs = options.runs.absolute()
    runs.mkdir(parents=True, exist_ok=True)
    print(heedful("treebank", options.treebank, "--out", runs / "data", log=runs / "treebank.log"), end="", flush=True)
    rows: list[dict[str, Any]] = []
    pool = ThreadPoolExecutor(options.together)
    try:
        for future in as_completed([pool.submit(run_of, every, runs, options.steps) for every in EVERY]):
            rows.append(future.result())
            content = {"together": options.together, "rows": sorted(rows, key=lambda row: row["trees"])}
            (options.docs / "parsing.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            row = rows[-1]
            print(f"{row['trees']:,} trees: test F1 {row['test']['all']['f1']:.2f}", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)  # after a failure or Ctrl-C, nothing new begins
    parsing_page.write(options.docs)


if __name__ == "__main__":
    main()
