"""Wall-clock time of `heedful train` and Hugging Face's Seq2SeqTrainer to the same validation loss.

make bench, or: python benchmarks/time_to_loss.py [--repeats 2] [--steps 300] [--quick]

Whole runs cannot alternate, so they run in the order A B B A. Both have the same tokens, batches, shape, schedule, Adam
and smoothed loss. The target is the lowest unsmoothed validation loss, in nats per token, that every run reached;
between two validations the time is interpolated. Writes docs/results/performance-end-to-end.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from benchmark_tables import DOCS, ROOT, Table, measured, write
from training_task import Shape

from heedful import grammar
from heedful.config import DataConfig
from heedful.data.store import write_store
from heedful.text.corpus import Pair
from heedful.text.tokenizer import learn
from heedful.training.precision import automatic_precision

HERE = Path(__file__).parent
CPU = torch.device("cpu")
OURS, THEIRS = "heedful train", "Seq2SeqTrainer, Marian"
VOCAB_SIZE, VALIDATION_PAIRS = 1_200, 300
PLANNED = ("steps", "batch_tokens", "warmup_steps", "threads", "precision")  # keys of both plan and recipe
POLL = 0.05  # seconds between two looks at a log


@dataclass(frozen=True)
class Plan:
    """The settings of both toolkits."""

    shape: Shape
    steps: int
    every: int  # steps between validations
    threads: int
    batch_tokens: int = 2_048
    warmup_steps: int = 100
    learning_rate: float = 0.34  # factor on Eq. 3
    precision: str = "fp32"


@dataclass
class Run:
    """One run of a toolkit; times are seconds since its process started."""

    side: str
    start: float = 0.0  # start of the first step
    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)  # end of each validation
    validations: list[float] = field(default_factory=list)  # duration of each validation

    def clocks(self) -> dict[str, list[float]]:
        """Return the time of each validation by three clocks."""
        spent = [sum(self.validations[: i + 1]) for i in range(len(self.walls))]
        return {
            "training alone": [wall - self.start - gone for wall, gone in zip(self.walls, spent, strict=True)],
            "without start-up": [wall - self.start for wall in self.walls],
            "total": self.walls,
        }


def reached(times: Sequence[float], losses: Sequence[float], target: float) -> float:
    """Return when the loss first reached `target`, interpolated linearly between validations."""
    first = next(i for i, loss in enumerate(losses) if loss <= target)
    if first == 0:
        return times[0]
    share = (losses[first - 1] - target) / (losses[first - 1] - losses[first])
    return times[first - 1] + share * (times[first] - times[first - 1])


def prepare(directory: Path, pairs: int) -> int:
    """Write text for heedful and the same tokens as stores for the Trainer; return the vocabulary size."""
    splits = {"train": grammar.pairs("train", pairs), "valid": grammar.pairs("valid", VALIDATION_PAIRS)}
    texts = {name: [Pair(one.english, one.german) for one in ones] for name, ones in splits.items()}
    tokenizer = learn([side for pair in texts["train"] for side in pair], VOCAB_SIZE)
    (directory / "tokenizer.model").write_bytes(tokenizer.model)
    for name, ones in texts.items():
        write_store(directory / name, ones, tokenizer, DataConfig(), {})
        for side in ("source", "target"):
            lines = "".join(f"{getattr(pair, side)}\n" for pair in ones)
            (directory / f"{name}.{side}").write_text(lines, encoding="utf-8")
    return tokenizer.vocab_size


def our_command(data: Path, plan: Plan, out: Path) -> list[str]:
    shape = plan.shape
    settings = {
        "data.tokenizer": data / "tokenizer.model",
        **{f"model.{name}": getattr(shape, name) for name in ("N", "d_model", "d_ff", "h", "dropout")},
        **{f"training.{name}": getattr(plan, name) for name in PLANNED},
        "training.learning_rate": plan.learning_rate,
        "training.label_smoothing": shape.label_smoothing,
        "training.validate_every": plan.every,
        "training.save_every": plan.steps,
        "training.average": 1,
        "training.patience": 0,
    }
    files = {"--source": "train.source", "--target": "train.target"}
    files |= {"--valid-source": "valid.source", "--valid-target": "valid.target"}
    return [
        *(sys.executable, "-m", "heedful", "train", "--out", str(out)),
        *(part for option, name in files.items() for part in (option, str(data / name))),
        *(part for key, value in settings.items() for part in ("--set", f"{key}={value}")),
    ]


def their_command(data: Path, plan: Plan, log: Path) -> list[str]:
    return [sys.executable, str(HERE / "hf_seq2seq_trainer.py"), str(data), json.dumps(asdict(plan)), str(log)]


def watched(command: list[str], log: Path, threads: int) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield the log entries of a process as they appear, with the seconds since it started."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        began, seen = time.perf_counter(), 0
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        running = True
        while running:
            running = process.poll() is None  # checked before the last read, so that nothing is missed
            lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
            now = time.perf_counter() - began
            yield from ((now, json.loads(line)) for line in lines[seen:])
            seen = len(lines)
            time.sleep(POLL)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}\n{said.read()[-2_000:]}")


def race(side: str, data: Path, plan: Plan, directory: Path) -> Run:
    directory.mkdir()
    log = directory / "run" / "log.jsonl" if side == OURS else directory / "log.jsonl"
    command = our_command(data, plan, log.parent) if side == OURS else their_command(data, plan, log)
    run = Run(side)
    for now, entry in watched(command, log, plan.threads):
        if entry["kind"] == "start":
            run.start = now
        elif entry["kind"] == "valid":
            run.steps.append(entry["step"])
            run.losses.append(entry["nll"])
            run.walls.append(now)
            run.validations.append(entry["seconds"])
            print(f"{side}, step {entry['step']}: {entry['nll']:.3f} after {now:.1f} s", file=sys.stderr, flush=True)
    return run


def order(repeats: int) -> list[str]:
    """Return the order A B, B A, A B, …, which cancels linear drift of the machine."""
    return [side for i in range(repeats) for side in ((OURS, THEIRS) if i % 2 == 0 else (THEIRS, OURS))]


def rows_of(runs: list[Run], target: float) -> list[list[str]]:
    means: dict[str, dict[str, float]] = {}
    rows = []
    for side in (OURS, THEIRS):
        own = [run for run in runs if run.side == side]
        times = {name: [reached(run.clocks()[name], run.losses, target) for run in own] for name in own[0].clocks()}
        means[side] = {name: statistics.mean(seconds) for name, seconds in times.items()}
        cells = [
            f"{means[side][name]:.1f} ({min(seconds):.1f} to {max(seconds):.1f})" for name, seconds in times.items()
        ]
        steps = statistics.mean(reached([float(step) for step in run.steps], run.losses, target) for run in own)
        last = ", ".join(f"{run.losses[-1]:.3f}" for run in own)
        rows.append([side, *cells, f"{statistics.mean(run.start for run in own):.1f}", f"{steps:.0f}", last])
    ratios = [f"{means[THEIRS][name] / means[OURS][name]:.2f} ×" for name in means[OURS]]
    return [*rows, ["speedup of the first row", *ratios, "", "", ""]]


def table(runs: list[Run], plan: Plan, pairs: int, versions: dict[str, str]) -> Table:
    target, shape = max(min(run.losses) for run in runs), plan.shape
    clocks = [f"{name}, s" for name in runs[0].clocks()]
    return {
        "title": f"Time to a validation loss of {target:.3f} nats per token",
        "measured": measured(plan.threads, f"{pairs:,} pairs of the built-in corpus", versions),
        "columns": ["", *clocks, "start-up, s", "steps", "final loss, each run"],
        "rows": rows_of(runs, target),
        "notes": [
            f"N {shape.N}, d_model {shape.d_model}, d_ff {shape.d_ff:,}, h {shape.h}, {shape.vocab_size:,} tokens; "
            f"{plan.precision}; {plan.steps:,} steps of at most {plan.batch_tokens:,} tokens, "
            f"a validation every {plan.every} steps; "
            f"{len(runs) // 2} runs per side, mean (range).",
        ],
        "raw": {"target": target, "plan": asdict(plan), "runs": [asdict(run) for run in runs]},
    }


def installed() -> dict[str, str]:
    return {name: metadata.version(name) for name in ("heedful", "torch", "transformers", "accelerate")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300, help="steps per run (300)")
    parser.add_argument("--every", type=int, default=30, help="steps between validations (30)")
    parser.add_argument("--repeats", type=int, default=2, help="runs a side (2: A B B A)")
    parser.add_argument("--pairs", type=int, default=20_000, help="of the built-in corpus (20,000)")
    parser.add_argument("--d-model", type=int, default=256, help="d_ff is four times as much, h a 64th (256)")
    parser.add_argument(
        "--precision", choices=("fp32", "bf16"), default=automatic_precision(CPU)[0], help="of both sides"
    )
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="(all)")
    parser.add_argument(
        "--quick", action="store_true", help="ten steps per toolkit; writes no file unless --out is given"
    )
    parser.add_argument("--out", type=Path, help=f"({DOCS.relative_to(ROOT) / 'performance-end-to-end.json'})")
    options = parser.parse_args()
    try:
        versions = installed()
    except metadata.PackageNotFoundError as error:
        print(f"left out: {THEIRS} ({error})", file=sys.stderr)
        return
    steps, every, repeats, pairs = options.steps, options.every, options.repeats, options.pairs
    if options.quick:
        steps, every, repeats, pairs = 10, 5, 1, 2_000
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory)
        width = options.d_model
        shape = Shape(N=2, d_model=width, d_ff=4 * width, h=width // 64, vocab_size=prepare(data, pairs))
        plan = Plan(shape, steps, every, options.threads, precision=options.precision)
        runs = [race(side, data, plan, data / f"run{i}") for i, side in enumerate(order(repeats))]
    out = options.out or (None if options.quick else DOCS / "performance-end-to-end.json")
    write([table(runs, plan, pairs, versions)], out)


if __name__ == "__main__":
    main()
