"""Training speed and memory of several toolkits with the same shape, batches and threads.

make bench, or: python benchmarks/training_speed.py [--rounds 5] [--data-root DIR] [--quick]

Each toolkit runs in its own process (benchmark_worker.py). In each round all toolkits process the same batches, one
after the other, in a changing order; medians over rounds are compared. With --data-root the batches are Multi30k's,
otherwise the built-in language pair's. Writes docs/results/performance.json, from which benchmarks/performance_page.py
makes the page and the figure.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from markdown_tables import DOCS, ROOT, Table, measured, write
from training_peers import CEILING, CONTENDERS, NO_PADDING, OURS
from training_task import Rows, Shape, Task, write_task

from heedful import grammar
from heedful.config import DataConfig
from heedful.data.batches import Batches
from heedful.data.store import write_store
from heedful.text.corpus import Corpus, Pair
from heedful.text.tokenizer import learn

HERE = Path(__file__).parent
VOCABULARY, BATCH_TOKENS, BATCHES_A_ROUND = 8_000, 2_048, 4
SHAPES = (Shape(3, 256, 1_024, 4, VOCABULARY), Shape(3, 512, 2_048, 8, VOCABULARY))
ELSEWHERE = {
    "JoeyNMT": "BENCH_JOEYNMT"
}  # environment variable with the interpreter of a toolkit that needs its own environment
COLUMNS = (
    *("", "target tokens/s", "range", "relative to the fastest peer", "share of the upper bound"),
    *("activations, MiB", "relative to the leanest peer", "parameters"),
)
MIB = 2**20


class Worker:
    """The process of one toolkit."""

    def __init__(self, name: str, task: Path, threads: int) -> None:
        self.name = name
        self._errors = (task / f"{list(CONTENDERS).index(name)}.err").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [interpreter(name), HERE / "benchmark_worker.py", name, task, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            # Spinning threads would take CPU time from the next toolkit.
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"},
        )

    def ask(self, what: str, **more: Any) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps({"what": what, **more}) + "\n")
            stdin.flush()
        except BrokenPipeError:
            pass  # the process has exited without an answer
        line = stdout.readline()
        if not line:
            raise ChildProcessError(self._last_words())
        result: dict[str, Any] = json.loads(line)
        return result

    def stop(self) -> None:
        try:
            self._process.communicate()
        except BrokenPipeError:
            self._process.wait()
        self._errors.close()

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines()
        return said[-1].strip() if said else f"exit code {code}"


def interpreter(name: str) -> str:
    own = os.environ.get(ELSEWHERE.get(name, ""))
    return own if own and Path(own).exists() else sys.executable


@dataclass
class Result:
    """The measurements of one toolkit."""

    versions: dict[str, str]
    parameters: int
    seconds: list[float] = field(default_factory=list)  # a round
    activations: int | None = None  # bytes


def text(data_root: Path | None) -> tuple[list[Pair], int, str]:
    """Return the pairs, their vocabulary size (the model's is the same for both corpora) and a description."""
    if data_root is None:
        return [Pair(pair.english, pair.german) for pair in grammar.pairs("train", 10_000)], 1_200, "the built-in pair"
    source, target = (str(data_root / "data" / "multi30k" / f"train.{side}.gz") for side in ("en", "de"))
    return list(Corpus.of((source,), (target,), "training").pairs()), VOCABULARY, "Multi30k English-German"


def batches(pairs: list[Pair], tokens: int, count: int) -> list[Rows]:
    with tempfile.TemporaryDirectory() as directory:
        tokenizer = learn([side for pair in pairs for side in pair], tokens)
        store = write_store(Path(directory) / "store", pairs, tokenizer, DataConfig(), {})
        source = Batches(store, BATCH_TOKENS, seed=1)
        return [
            Rows(batch.source_BS.numpy(), batch.target_in_BT.numpy(), batch.target_out_BT.numpy())
            for batch in (source[number] for number in range(count))
        ]


def compare(shape: Shape, rows: list[Rows], rounds: int, threads: int) -> tuple[dict[str, Result], dict[str, str]]:
    """Return the results by name, and why toolkits were skipped."""
    largest = max(range(len(rows)), key=lambda i: rows[i].target_out.size)
    with tempfile.TemporaryDirectory() as directory:
        write_task(Task(shape, rows), Path(directory))
        workers = [Worker(name, Path(directory), threads) for name in CONTENDERS]
        results, left_out = started(workers, len(rows))
        running = [worker for worker in workers if worker.name in results]
        for number in range(rounds):
            turn = number % len(running)
            for worker in running[turn:] + running[:turn]:
                results[worker.name].seconds.append(worker.ask("time", batches=list(range(len(rows))))["seconds"])
            print(f"d_model {shape.d_model}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for worker in running:
            results[worker.name].activations = worker.ask("activations", batch=largest)["bytes"]
        for worker in workers:
            worker.stop()
    return results, left_out


def started(workers: list[Worker], batches: int) -> tuple[dict[str, Result], dict[str, str]]:
    """Return the toolkits that run a first step, warmed up, and the others with the reason."""
    results, left_out = {}, {}
    for worker in workers:
        try:
            about = worker.ask("about")
            worker.ask("time", batches=list(range(batches)))
        except ChildProcessError as reason:
            if worker.name in (OURS, CEILING):
                raise
            print(f"left out: {worker.name} ({reason})", file=sys.stderr)
            left_out[worker.name] = str(reason)
            continue
        results[worker.name] = Result(**about)
    return results, left_out


def rows_of(results: dict[str, Result], tokens: int) -> list[list[str]]:
    """Return the rows of the table, fastest first."""
    middle = {name: statistics.median(result.seconds) for name, result in results.items()}
    rivals = peers(results)
    fastest = min((middle[name] for name in rivals), default=None)
    leanest = min((held for name in rivals if (held := results[name].activations)), default=None)
    return [
        [
            f"**{name}**" if name == OURS else name,
            f"{tokens / middle[name]:,.0f}",
            f"{tokens / max(result.seconds):,.0f} to {tokens / min(result.seconds):,.0f}",
            "–" if fastest is None else f"{fastest / middle[name]:.2f} ×",
            f"{middle[CEILING] / middle[name]:.0%}",
            f"{result.activations / MIB:,.0f}" if result.activations else "–",
            f"{result.activations / leanest:.0%}" if result.activations and leanest else "–",
            f"{result.parameters:,}" if result.parameters else "–",
        ]
        for name, result in sorted(results.items(), key=lambda item: middle[item[0]])
    ]


def peers(results: dict[str, Result]) -> list[str]:
    return [name for name in results if name not in (OURS, CEILING, NO_PADDING)]


def table(
    shape: Shape, rows: Sequence[Rows], results: dict[str, Result], left_out: dict[str, str], threads: int, data: str
) -> Table:
    tokens, padding = sum(row.tokens for row in rows), statistics.mean(row.padding for row in rows)
    rounds = len(results[OURS].seconds)
    versions = {name: version for result in results.values() for name, version in result.versions.items()}
    notes = [
        f"Medians of {rounds} rounds of {len(rows)} batches, {tokens:,} target tokens; {padding:.1%} padding.",
        *(f"Left out: {name} ({reason})." for name, reason in left_out.items()),
    ]
    kept = {name: asdict(result) for name, result in results.items()}
    return {
        "title": f"Training, d_model {shape.d_model}",
        "measured": measured(threads, f"{data}, at most {BATCH_TOKENS:,} tokens per side", versions),
        "columns": list(COLUMNS),
        "rows": rows_of(results, tokens),
        "notes": [f"N {shape.N}, d_ff {shape.d_ff:,}, h {shape.h}, {shape.vocab_size:,} tokens.", *notes],
        "raw": {"shape": asdict(shape), "tokens": tokens, "results": kept},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="(5)")
    widths = [shape.d_model for shape in SHAPES]
    parser.add_argument("--d-model", type=int, nargs="+", choices=widths, default=widths, help="(all)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="batches per toolkit (all)")
    parser.add_argument("--data-root", type=Path, help="directory with data/multi30k (default: use the built-in pair)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small shape, two rounds, about a minute; writes no file unless --out is given",
    )
    parser.add_argument("--out", type=Path, help=f"({DOCS.relative_to(ROOT) / 'performance.json'})")
    options = parser.parse_args()
    rounds, shapes = (2, SHAPES[:1]) if options.quick else (options.rounds, SHAPES)
    shapes = tuple(shape for shape in shapes if shape.d_model in options.d_model)
    pairs, tokens, data = text(options.data_root)
    rows = batches(pairs, tokens, 1 if options.quick else BATCHES_A_ROUND)
    tables = []
    for shape in shapes:
        results, left_out = compare(shape, rows, rounds, options.threads)
        tables.append(table(shape, rows, results, left_out, options.threads, data))
        write(tables, options.out or (None if options.quick else DOCS / "performance.json"))


if __name__ == "__main__":
    main()
