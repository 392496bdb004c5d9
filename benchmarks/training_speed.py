"""Training speed and memory of several toolkits with the same shape, batches and threads.

make bench, or: python benchmarks/training_speed.py [--rounds 5] [--data-root DIR] [--quick]

Every contender runs in float32 and in bf16, so that peers are measured as they come and at the same precision.

Each contender is a process of its own (benchmarks/training_worker.py). A round gives every contender the same batches,
one contender after the other, in an order that changes from round to round; what is compared are medians over rounds.
With --data-root the batches are Multi30k's, otherwise the built-in corpus's. Writes
docs/results/performance.json, from which benchmarks/performance_page.py makes the page and the figure.
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
from typing import Any, NamedTuple

import processor
from benchmark_tables import DOCS, ROOT, Table, measured, write
from training_peers import CEILING, CONTENDERS, NO_PADDING, OURS, PRECISIONS
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
    *("", "precision", "target tokens/s", "range", "× fastest peer, float32", "× fastest peer, same precision"),
    *("share of the upper bound", "activations, MiB", "relative to the leanest peer", "parameters"),
)
MIB = 2**20


class Goal(NamedTuple):
    """What bf16 training has to reach at a width. `memory` is the most, the others are the least."""

    float32_peer: float
    same_precision_peer: float
    ceiling: float
    memory: float


GOALS = {256: Goal(3.7, 2.2, 0.55, 0.70), 512: Goal(3.8, 1.8, 0.65, 0.70)}

Key = tuple[str, str]  # contender and precision


class Worker:
    """The process of one toolkit."""

    def __init__(self, key: Key, task: Path, threads: int) -> None:
        self.key = key
        name, precision = key
        self._errors = (task / f"{list(CONTENDERS).index(name)}-{precision}.err").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [interpreter(name), HERE / "training_worker.py", name, precision, task, str(threads)],
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
        pairs = [Pair(pair.english, pair.german) for pair in grammar.pairs("train", 10_000)]
        return pairs, 1_200, "the built-in corpus"
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


def compare(shape: Shape, rows: list[Rows], rounds: int, threads: int) -> tuple[dict[Key, Result], dict[Key, str]]:
    """Return the results, and for each contender that is left out the reason."""
    largest = max(range(len(rows)), key=lambda i: rows[i].target_out.size)
    with tempfile.TemporaryDirectory() as directory:
        write_task(Task(shape, rows), Path(directory))
        keys = [(name, precision) for precision in PRECISIONS for name in CONTENDERS]
        workers = [Worker(key, Path(directory), threads) for key in keys]
        results, left_out = started(workers, len(rows))
        running = [worker for worker in workers if worker.key in results]
        for number in range(rounds):
            turn = number % len(running)
            for worker in running[turn:] + running[:turn]:
                results[worker.key].seconds.append(worker.ask("time", batches=list(range(len(rows))))["seconds"])
            print(f"d_model {shape.d_model}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for worker in running:
            results[worker.key].activations = worker.ask("activations", batch=largest)["bytes"]
        for worker in workers:
            worker.stop()
    return results, left_out


def started(workers: list[Worker], batches: int) -> tuple[dict[Key, Result], dict[Key, str]]:
    """Warm up every contender; return those that took a step, and the reasons of the others."""
    results: dict[Key, Result] = {}
    left_out: dict[Key, str] = {}
    for worker in workers:
        try:
            about = worker.ask("about")
            worker.ask("time", batches=list(range(batches)))
        except ChildProcessError as reason:
            if worker.key[0] in (OURS, CEILING):
                raise
            print(f"left out: {label(worker.key)} ({reason})", file=sys.stderr)
            left_out[worker.key] = str(reason)
            continue
        results[worker.key] = Result(**about)
    return results, left_out


def label(key: Key) -> str:
    return ", ".join(key)


def rows_of(results: dict[Key, Result], tokens: int) -> list[list[str]]:
    """Return the cells of the table, the fastest contender first."""
    middle = {key: statistics.median(result.seconds) for key, result in results.items()}

    def ratio(key: Key, precision: str) -> str:
        fastest = min((middle[peer] for peer in peers(results, precision)), default=None)
        return "–" if fastest is None else f"{fastest / middle[key]:.2f} ×"

    def memory(key: Key) -> list[str]:
        held = results[key].activations
        leanest = min((one for peer in peers(results, key[1]) if (one := results[peer].activations)), default=None)
        return [f"{held / MIB:,.0f}" if held else "–", f"{held / leanest:.0%}" if held and leanest else "–"]

    return [
        [
            f"**{key[0]}**" if key[0] == OURS else key[0],
            key[1],
            f"{tokens / middle[key]:,.0f}",
            f"{tokens / max(result.seconds):,.0f} to {tokens / min(result.seconds):,.0f}",
            ratio(key, "fp32"),
            ratio(key, key[1]),
            f"{middle[CEILING, key[1]] / middle[key]:.0%}",
            *memory(key),
            f"{result.parameters:,}" if result.parameters else "–",
        ]
        for key, result in sorted(results.items(), key=lambda item: middle[item[0]])
    ]


def peers(results: dict[Key, Result], precision: str) -> list[Key]:
    return [key for key in results if key[1] == precision and key[0] not in (OURS, CEILING, NO_PADDING)]


def goal_rows(shape: Shape, results: dict[Key, Result]) -> list[list[str]]:
    """Return what heedful reaches in bf16 beside each goal of this width."""
    goal, ours = GOALS[shape.d_model], results[OURS, "bf16"]
    middle = {key: statistics.median(result.seconds) for key, result in results.items()}
    fastest = {precision: min(middle[peer] for peer in peers(results, precision)) for precision in PRECISIONS}
    leanest = min(held for peer in peers(results, "bf16") if (held := results[peer].activations))
    own = middle[OURS, "bf16"]
    found = [
        ("speed : fastest peer in float32", fastest["fp32"] / own, goal.float32_peer, True),
        ("speed : fastest peer in bf16", fastest["bf16"] / own, goal.same_precision_peer, True),
        ("share of the upper bound in bf16", middle[CEILING, "bf16"] / own, goal.ceiling, True),
        ("activations : leanest peer in bf16", (ours.activations or 0) / leanest, goal.memory, False),
    ]
    return [
        [
            name,
            str(shape.d_model),
            f"{reached:.2f}",
            f"at {'least' if is_lower_bound else 'most'} {bound:.2f}",
            "yes" if (reached >= bound if is_lower_bound else reached <= bound) else "no",
        ]
        for name, reached, bound, is_lower_bound in found
    ]


def goals_table(rows: list[list[str]], facts: dict[str, Any]) -> Table:
    return {
        "title": "Training: goals",
        "measured": facts,
        "columns": ["heedful in bf16", "d_model", "reached", "goal", "met"],
        "rows": rows,
        "notes": ["Ratios of medians over all rounds."],
    }


def table(
    shape: Shape, rows: Sequence[Rows], results: dict[Key, Result], left_out: dict[Key, str], threads: int, data: str
) -> Table:
    tokens, padding = sum(row.tokens for row in rows), statistics.mean(row.padding for row in rows)
    rounds = len(results[OURS, PRECISIONS[0]].seconds)
    versions = {name: version for result in results.values() for name, version in result.versions.items()}
    notes = [
        f"Medians of {rounds} rounds of {len(rows)} batches, {tokens:,} target tokens; {padding:.1%} padding.",
        *(f"Left out: {label(key)} ({reason})." for key, reason in left_out.items()),
    ]
    kept = {label(key): asdict(result) for key, result in results.items()}
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
    parser.add_argument("--data-root", type=Path, help="directory with data/multi30k (default: the built-in corpus)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small shape, two rounds, about a minute; writes no file unless --out is given",
    )
    parser.add_argument("--out", type=Path, help=f"({DOCS.relative_to(ROOT) / 'performance.json'})")
    options = parser.parse_args()
    rounds, shapes = (2, SHAPES[:1]) if options.quick else (options.rounds, SHAPES)
    shapes = tuple(shape for shape in shapes if shape.d_model in options.d_model)
    used = processor.described()
    print(used, file=sys.stderr, flush=True)
    pairs, tokens, data = text(options.data_root)
    rows = batches(pairs, tokens, 1 if options.quick else BATCHES_A_ROUND)
    tables: list[Table] = []
    goals: list[list[str]] = []
    for shape in shapes:
        results, left_out = compare(shape, rows, rounds, options.threads)
        if all(peers(results, precision) for precision in PRECISIONS):
            goals += goal_rows(shape, results)
        tables.append(table(shape, rows, results, left_out, options.threads, data))
        tables[-1]["measured"]["processor"] = used
    if goals:
        tables.append(goals_table(goals, tables[0]["measured"]))
    write(tables, options.out or (None if options.quick else DOCS / "performance.json"))


if __name__ == "__main__":
    main()
