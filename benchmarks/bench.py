"""Training speed beside the peers: the same shape, batches and threads, taking turns in one run.

make bench, or: python benchmarks/bench.py [--rounds 7] [--data-root DIR] [--quick]

Each contender is a process of its own (benchmarks/worker.py). A round gives every contender the same batches, one
contender after the other, in an order that changes from round to round; what is compared are medians over rounds.
With --data-root the batches are Multi30k's, otherwise the built-in language pair's. Writes docs/performance.json;
benchmarks/performance_page.py makes the page and the picture from it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from shapes import Rows, Shape, Task, write_task
from training_peers import STEPS

from heedful.config import DataConfig
from heedful.data.batches import Batches
from heedful.data.store import write_store
from heedful.text import builtin
from heedful.text.corpus import Corpus, Pair
from heedful.text.tokenizer import learn

HERE = Path(__file__).parent
VOCABULARY, BATCH_TOKENS, BATCHES_A_ROUND = 8_000, 2_048, 4
SHAPES = (Shape(3, 256, 1_024, 4, VOCABULARY), Shape(3, 512, 2_048, 8, VOCABULARY))
CEILING = "matrix products alone"


class Worker:
    def __init__(self, name: str, task: Path, threads: int) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, HERE / "worker.py", name, task, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Threads that spin while they wait would take the next contender's time.
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"},
        )

    def run(self, numbers: list[int]) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(numbers) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} has ended (exit code {self.process.wait()}).")
        result: dict[str, float] = json.loads(answer)
        return result

    def stop(self) -> None:
        self.process.communicate()


def text(data_root: Path | None) -> tuple[list[Pair], int]:
    """Pairs, and the pieces that they support; the model's vocabulary is the same for both."""
    if data_root is None:
        return [Pair(pair.english, pair.german) for pair in builtin.pairs("train", 10_000)], 1_200
    source, target = (str(data_root / "data" / "multi30k" / f"train.{side}.gz") for side in ("en", "de"))
    return list(Corpus.of((source,), (target,), "training").pairs()), VOCABULARY


def batches(pairs: list[Pair], pieces: int, count: int) -> list[Rows]:
    with tempfile.TemporaryDirectory() as directory:
        tokenizer = learn([side for pair in pairs for side in pair], pieces)
        store = write_store(Path(directory) / "store", pairs, tokenizer, DataConfig(), {})
        source = Batches(store, BATCH_TOKENS, seed=1)
        return [
            Rows(batch.source_BS.numpy(), batch.target_in_BT.numpy(), batch.target_out_BT.numpy())
            for batch in (source[number] for number in range(count))
        ]


def compare(shape: Shape, rows: list[Rows], rounds: int, threads: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        task = Path(directory)
        write_task(Task(shape, rows), task)
        workers = started(task, threads)
        times: dict[str, list[float]] = {worker.name: [] for worker in workers}
        tokens = sum(row.tokens for row in rows)
        for number in range(rounds):
            turn = number % len(workers)
            for worker in workers[turn:] + workers[:turn]:
                found = worker.run(list(range(len(rows))))
                times[worker.name].append(found["seconds"])
            print(f"d_model {shape.d_model}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for worker in workers:
            worker.stop()
    return {"shape": asdict(shape), "tokens_a_round": tokens, "seconds": times, "threads": threads}


def started(task: Path, threads: int) -> list[Worker]:
    """Those that start, warmed up; the others are named with the reason."""
    workers = []
    for name in STEPS:
        worker = Worker(name, task, threads)
        try:
            worker.run([0, 1])
        except RuntimeError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        workers.append(worker)
    return workers


def table(result: dict[str, Any]) -> list[str]:
    times, tokens = result["seconds"], result["tokens_a_round"]
    middle = {name: statistics.median(seconds) for name, seconds in times.items()}
    lines = ["| | target tokens/s | spread | time against ours | share of the ceiling |", "|---|---|---|---|---|"]
    for name, seconds in sorted(times.items(), key=lambda item: middle[item[0]]):
        low, high = tokens / max(seconds), tokens / min(seconds)
        lines.append(
            f"| {name} | {tokens / middle[name]:,.0f} | {low:,.0f} to {high:,.0f} "
            f"| {middle[name] / middle['heedful']:.2f} | {middle[CEILING] / middle[name]:.0%} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "performance.json")
    options = parser.parse_args()
    rows = batches(*text(options.data_root), BATCHES_A_ROUND)
    results = [compare(shape, rows, options.rounds, options.threads) for shape in SHAPES]
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    for result in results:
        print(f"\nd_model {result['shape']['d_model']}, N {result['shape']['N']}, {result['threads']} threads")
        print("\n".join(table(result)))
    options.out.write_text(json.dumps({"versions": versions, "training": results}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
