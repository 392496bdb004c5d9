"""Scaling: cost of a training step by sentence length, and of preparation by corpus size.

python benchmarks/length_and_corpus_scaling.py [all | lengths | corpus] [--pairs 10000 100000 …] [--threads 2] [--quick]
python benchmarks/length_and_corpus_scaling.py draw       redraw the figures from docs/results/performance-growth.json

Every value is measured in a fresh process. The corpus repeats blocks of the built-in corpus with a running number in
each line, so that ten million distinct pairs can be written in a minute. Writes docs/results/performance-growth.json,
docs/results/images/growth-lengths.svg and docs/results/images/growth-corpus.svg.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmark_tables import DOCS, Table, measured, write
from decoding_speed import versions

OUT = DOCS / "performance-growth.json"
LENGTHS = (64, 128, 256, 512, 1024, 2048)
STEP_TOKENS, STEP_PRESET, STEP_VOCABULARY = 4_096, "small", 8_000
BLOCK = 20_000  # distinct pairs of the grammar; running numbers make the repetitions distinct
MIB = 2**20
GOAL_PAIRS, GOAL_FIRST_STEP = 500_000, 5.0  # a minute; seconds
PHASES = {  # parts of `run_setup.begin`: wrapped function → name in the table
    "heedful.text.corpus.Corpus.count": "counting",
    "heedful.training.run_setup.learn": "learning the tokenizer",
    "heedful.text.corpus.Corpus.digest": "digest",
    "heedful.training.run_setup.write_store": "tokenizing and storing",
}


def timed_step(length: int, threads: int, repeats: int) -> dict[str, float]:
    """Return the median time of an update with STEP_TOKENS tokens per side in sentences of one length."""
    import torch
    from training_memory import Case, batch_of

    from heedful import presets
    from heedful.allocator import keep_memory
    from heedful.config import TrainingConfig
    from heedful.model.transformer import Transformer
    from heedful.training.trainer import Trainer

    keep_memory()
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    trainer = Trainer(Transformer(presets.named(STEP_PRESET).model(STEP_VOCABULARY)), TrainingConfig(precision="fp32"))
    batch = batch_of(Case(STEP_PRESET, STEP_VOCABULARY, STEP_TOKENS // length, length))
    seconds = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        trainer.train_step([batch])
        seconds.append(time.perf_counter() - begin)
    return {"seconds": statistics.median(seconds[1:])}


def lengths_table(threads: int, quick: bool) -> Table:
    from training_memory import OURS, Case, in_a_process_of_its_own

    rows = []
    for length in LENGTHS[:2] if quick else LENGTHS:
        taken = in_a_process("step", length=length, threads=threads, repeats=1 if quick else 5)
        case = Case(STEP_PRESET, STEP_VOCABULARY, STEP_TOKENS // length, length)
        peak = in_a_process_of_its_own(way=OURS, case=case)["peak"]
        rows.append([f"{length:,}", f"{STEP_TOKENS // length}", f"{taken['seconds']:.2f}", f"{peak / MIB:,.0f}"])
        print(f"length {length}: {rows[-1]}", file=sys.stderr, flush=True)
    data = f"random tokens, {STEP_TOKENS:,} per side in every batch; preset {STEP_PRESET}, V {STEP_VOCABULARY:,}"
    return {
        "title": "Growth: a training step by sentence length",
        "measured": measured(threads, data, versions("torch")),
        "columns": ["tokens per sentence", "sentences per batch", "seconds per step", "peak MiB"],
        "rows": rows,
        "notes": [
            "Peak memory of one forward and backward pass, excluding weights and gradients, counted by the "
            "profiler (benchmarks/training_memory.py).",
            f"Both grow as n^p with length n: p = {exponent(rows, 2):.2f} (time), {exponent(rows, 3):.2f} (memory) "
            "over the two longest.",
        ],
    }


def exponent(rows: list[list[str]], column: int) -> float:
    """Return p such that a column grows as (first column)ᵖ between the last two rows."""
    (before, small), (after, large) = ((number(row[0]), number(row[column])) for row in rows[-2:])
    return math.log(large / small) / math.log(after / before)


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def lines(pairs: int) -> Iterator[tuple[str, str]]:
    """Yield the given number of distinct pairs: each sentence of a block with a running number."""
    from heedful import grammar

    block = [(pair.english, pair.german) for pair in grammar.pairs("train", min(BLOCK, pairs))]
    for count in range(pairs):
        english, german = block[count % len(block)]
        yield f"{english} {count}", f"{german} {count}"


def write_corpus(directory: Path, pairs: int) -> None:
    from heedful import grammar

    with (directory / "train.en").open("w") as english, (directory / "train.de").open("w") as german:
        made = lines(pairs)
        while chunk := list(islice(made, 100_000)):
            english.write("".join(f"{source}\n" for source, _ in chunk))
            german.write("".join(f"{target}\n" for _, target in chunk))
    valid = list(grammar.pairs("valid", 500))
    (directory / "valid.en").write_text("".join(f"{pair.english}\n" for pair in valid), encoding="utf-8")
    (directory / "valid.de").write_text("".join(f"{pair.german}\n" for pair in valid), encoding="utf-8")


def settings(directory: Path, threads: int) -> dict[str, Any]:
    """Return the settings of a small model; only the work before its first step is measured."""
    files = {"source": "train.en", "target": "train.de", "valid_source": "valid.en", "valid_target": "valid.de"}
    return {
        "data": {key: (str(directory / name),) for key, name in files.items()} | {"vocab_size": 8_000},
        "model": {"N": 2, "d_model": 128, "d_ff": 512, "h": 4},
        "training": {"threads": threads, "log_every": 1, "batch_tokens": 2_048},
    }


def prepare(directory: str, threads: int) -> dict[str, Any]:
    """Prepare a corpus as `heedful train` does; return times and peak memory of the process."""
    from training_memory import most_resident

    from heedful.allocator import keep_memory
    from heedful.devices import pick_device
    from heedful.storage.run_directory import RunDirectory
    from heedful.training import run_setup

    keep_memory()
    spent = {name: watched(path) for path, name in PHASES.items()}
    before, begin = most_resident(), time.perf_counter()
    run = RunDirectory(Path(directory) / "run")
    run_setup.begin(run, settings(Path(directory), threads), pick_device("cpu"), lambda _: None)
    return {
        "seconds": time.perf_counter() - begin,
        "phases": {name: sum(seconds) for name, seconds in spent.items()},
        "before": before,
        "peak": most_resident(),
    }


def watched(path: str) -> list[float]:
    """Wrap a function or method, and append the seconds of each call to the returned list."""
    import importlib

    module, _, name = path.rpartition(".")
    try:
        owner = importlib.import_module(module)
    except ModuleNotFoundError:  # a class's method
        module, _, kind = module.rpartition(".")
        owner = getattr(importlib.import_module(module), kind)
    inner: Callable[..., Any] = getattr(owner, name)
    spent: list[float] = []

    def outer(*given: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        try:
            return inner(*given, **named)
        finally:
            spent.append(time.perf_counter() - begin)

    setattr(owner, name, outer)
    return spent


def first_step(directory: Path) -> tuple[float, int]:
    """Return the seconds from the start of `heedful train` on prepared text to step 1, and peak bytes."""
    run = directory / "run"
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", "train", str(run / "config.toml"), "--out", str(run), "--device", "cpu"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    log = run / "log.jsonl"
    try:
        while not (log.exists() and b'"kind": "train"' in log.read_bytes()):
            if process.poll() is not None:
                raise SystemExit(f"heedful train exited with code {process.returncode} before its first step.")
            time.sleep(0.01)
        seconds = time.perf_counter() - begin
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        return seconds, 1_024 * int(status.partition("VmHWM:")[2].split()[0])
    finally:
        process.kill()
        process.wait()


def corpus_table(sizes: list[int], threads: int) -> Table:
    rows = []
    for pairs in sizes:
        with tempfile.TemporaryDirectory() as name:
            write_corpus(Path(name), pairs)
            found = in_a_process("prepare", directory=name, threads=threads)
            started, peak = first_step(Path(name))
        rows.append(
            [
                f"{pairs:,}",
                f"{found['seconds']:.1f}",
                f"{60 * pairs / found['seconds']:,.0f}",
                *(f"{seconds:.1f}" for seconds in found["phases"].values()),
                *(f"{size / MIB:,.0f}" for size in (found["before"], found["peak"], peak)),
                f"{started:.1f}",
            ]
        )
        print(f"{pairs:,} pairs: {rows[-1]}", file=sys.stderr, flush=True)
    return {
        "title": "Growth: preparation by corpus size",
        "measured": measured(
            threads, "the built-in corpus, lines numbered; 8,000 tokens", versions("torch", "sentencepiece")
        ),
        "columns": [
            *("pairs", "seconds", "pairs per minute"),
            *(f"{name}, s" for name in PHASES.values()),
            *("MiB before", "peak MiB", "peak MiB of training", "time to first step, s"),
        ],
        "rows": rows,
        "notes": [
            "Seconds: all preparation of new text in `heedful train`, including the tokenizer.",
            "MiB before: with torch imported and nothing read.",
            "To the first step: from the start of `heedful train` on prepared text until step 1 is in its log, and the "
            "most memory held until then.",
            f"Goals: at least {GOAL_PAIRS:,} pairs per minute on two cores; constant memory; at most "
            f"{GOAL_FIRST_STEP:.0f} s to the first step at any size.",
        ],
    }


def in_a_process(kind: str, **asked: Any) -> Any:
    done = subprocess.run(
        [sys.executable, __file__, "one", json.dumps({"kind": kind, **asked})], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{kind} {asked}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def one(asked: dict[str, Any]) -> dict[str, Any]:
    kind = asked.pop("kind")
    return timed_step(**asked) if kind == "step" else prepare(**asked)


Line = tuple[str, list[float], str]  # label, values, colour; a goal is drawn in grey without markers
BLUE, GREEN, RED, GREY = "#1f4e9c", "#1a7f37", "#c1272d", "#888888"


def draw(x: list[float], panels: list[tuple[str, str, list[Line]]], across: str, path: Path) -> None:
    """Draw panels side by side with logarithmic axes over whole decades, so that constant curves look flat."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "heedful"  # the same data gives the same file, byte for byte
    figure, every = pyplot.subplots(1, len(panels), figsize=(5.4 * len(panels), 3.8))
    for axes, (title, unit, drawn) in zip(every, panels, strict=True):
        for label, y, colour in drawn:
            axes.plot(x, y, "--" if colour == GREY else "-o", color=colour, markersize=4, linewidth=1.8)
            axes.annotate(label, (x[-1], y[-1]), (8, 0), textcoords="offset points", va="center", color=colour)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(x, [_short(value) for value in x])
        values = [value for _, y, _ in drawn for value in y]
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        ticks = [10.0**power for power in range(low, max(high, low + 1) + 1)]
        axes.set_ylim(ticks[0], ticks[-1])
        axes.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel(across)
        axes.set_ylabel(unit)
        axes.set_title(title, loc="left", fontsize=11)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.subplots_adjust(wspace=0.75)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _short(value: float) -> str:
    return f"{value / 1e6:g} million" if value >= 1e6 else f"{value:,.0f}"


def draw_all(tables: list[Table], images: Path, kind: str = "svg") -> None:
    for table in tables:
        x, *columns = ([number(row[place]) for row in table["rows"]] for place in range(len(table["columns"])))
        if table["columns"][0] == "pairs":
            seconds, peak, trained, started = columns[0], *columns[-3:]
            goal = [60 * pairs / GOAL_PAIRS for pairs in x]
            times: list[Line] = [
                (f"preparation, {seconds[-1]:,.0f} s", seconds, BLUE),
                (f"to the first step, {started[-1]:.1f} s", started, GREEN),
                (f"{GOAL_PAIRS:,} pairs per minute", goal, GREY),
            ]
            held: list[Line] = [
                (f"preparation, {peak[-1]:,.0f} MiB", peak, BLUE),
                (f"training, {trained[-1]:,.0f} MiB", trained, GREEN),
            ]
            panels = [("Time", "seconds", times), ("Peak memory of the process", "MiB", held)]
            draw(x, panels, "pairs of the corpus", images / f"growth-corpus.{kind}")
        else:
            _, seconds, peak = columns
            panels = [
                ("Time of a step", "seconds", [(f"{seconds[-1]:.1f} s", seconds, BLUE)]),
                ("Peak memory of a step", "MiB", [(f"{peak[-1]:,.0f} MiB", peak, RED)]),
            ]
            draw(x, panels, "tokens per sentence", images / f"growth-lengths.{kind}")


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        print(json.dumps(one(json.loads(sys.argv[2]))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("all", "lengths", "corpus", "draw"), default="all")
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="smoke test; the results are meaningless")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    sizes = [2_000, 4_000] if options.quick else options.pairs
    tables = json.loads(options.out.read_text(encoding="utf-8")) if options.what == "draw" else []
    if options.what in ("all", "lengths"):
        tables.append(lengths_table(options.threads, options.quick))
    if options.what in ("all", "corpus"):
        tables.append(corpus_table(sizes, options.threads))
    write(tables, options.out)
    draw_all(tables, options.out.parent / "images")


if __name__ == "__main__":
    main()
