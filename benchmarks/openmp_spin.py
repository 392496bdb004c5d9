"""Effect of the OpenMP spin count on an idle machine and alongside a busy process.

python benchmarks/openmp_spin.py [--rounds 4] [--turns 3] [--spins 1000 10000 …] [--quick]

Every round starts one process per spin count. They take turns, in an order that changes from turn to turn: first on
the idle machine, then alongside a Python process that keeps one core busy. A turn in which any other process used the
processor is repeated. Writes docs/results/performance-threads.json, which benchmarks/performance_page.py shows.
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmark_tables import DOCS, Table, measured, write
from decoding_speed import versions
from training_peers import heedful_step
from training_speed import BATCH_TOKENS, batches, text
from training_task import Shape, Task, read_task, write_task

OUT = DOCS / "performance-threads.json"
THREADS = 2
PRECISION = "bf16"  # of training; the default where the processor has it
SPINS = (0, 1_000, 2_000, 5_000, 10_000, 30_000)
DEFAULT = -1  # libgomp's default, 300,000, if there are no more threads than cores
SHAPES = (Shape(3, 256, 1_024, 4, 8_000), Shape(2, 128, 512, 4, 8_000))
TASKS = tuple(
    f"{task}, d_model {shape.d_model}"
    for task in ("training", "decoding in batches", "decoding one sentence")
    for shape in SHAPES
)
BEAM, ALPHA, TOGETHER, MAX_EXTRA = 4, 0.6, 32, 2
DISTURBED = 0.1  # fraction of one core that other processes may use during a turn
VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # the workers must not inherit them


class Turn(NamedTuple):
    units: int  # updates or search calls
    seconds: float
    processor: float  # CPU seconds of all threads


Turns = dict[tuple[str, bool, int], list[Turn]]  # by task, whether alongside a busy process, and spin count


class Worker:
    """A process with one spin count."""

    def __init__(self, spin: int, directory: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        chosen = {} if spin == DEFAULT else {"GOMP_SPINCOUNT": str(spin)}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "worker", directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**kept, **chosen, "OMP_NUM_THREADS": str(THREADS)},
        )

    def turn(self, task: str, seconds: float) -> Turn:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([task, seconds]) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise ChildProcessError(f"A worker ended with exit code {self._process.wait()}.")
        return Turn(*json.loads(line))

    def undisturbed(self, task: str, seconds: float, busy: subprocess.Popen[bytes] | None, deadline: float) -> Turn:
        """Return a turn in which no other process used the CPU; after the deadline, any turn."""
        while True:
            while (found := others(0.2, busy)) > DISTURBED and time.monotonic() < deadline:
                time.sleep(0.2)
            before = used(busy)
            turn = self.turn(task, seconds)
            found = (used(busy) - before - turn.processor) / turn.seconds
            if found < DISTURBED:
                return turn
            if time.monotonic() > deadline:
                print(f"{task}: other processes used {found:.0%} of a core", file=sys.stderr, flush=True)
                return turn

    def stop(self) -> None:
        self._process.communicate()


def used(without: subprocess.Popen[bytes] | None) -> float:
    """Return the CPU seconds of the whole machine, including stolen time, except those of one process."""
    counts = [int(count) for count in Path("/proc/stat").read_text(encoding="utf-8").split()[1:9]]
    ticks = sum(counts) - counts[3] - counts[4]  # without idle and I/O wait
    if without:
        fields = Path(f"/proc/{without.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks -= int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def others(seconds: float, without: subprocess.Popen[bytes] | None) -> float:
    """Return the fraction of one core in use now."""
    before = used(without)
    time.sleep(seconds)
    return (used(without) - before) / seconds


def work(directory: Path) -> None:
    """Run a worker process: run each requested task for its duration and answer with a Turn."""
    units = tasks(directory)
    for line in sys.stdin:
        task, seconds = json.loads(line)
        done, begin, processor = 0, time.perf_counter(), time.process_time()
        while done == 0 or time.perf_counter() - begin < seconds:
            units[task]()
            done += 1
        print(json.dumps([done, time.perf_counter() - begin, time.process_time() - processor]), flush=True)


def tasks(directory: Path) -> dict[str, Callable[[], Any]]:
    """Return one unit of work per task. The models are random, so every setting does the same work."""
    import torch

    from heedful.decoding.search import beam_search

    def search(model: Any, sources: list[list[int]]) -> Callable[[], Any]:
        return lambda: beam_search(model, sources, BEAM, ALPHA, MAX_EXTRA)

    torch.manual_seed(1)
    training, together, alone = [], [], []
    for number in range(len(SHAPES)):
        task = read_task(directory / str(number))
        training.append(partial(heedful_step(task, PRECISION).step, 0))
        model: Any = heedful_step(task, PRECISION).model
        sources = [[int(i) for i in row if i] for row in task.batches[0].source[:TOGETHER]]
        together.append(search(model.eval(), sources))
        alone.append(search(model.eval(), sources[:1]))
    return dict(zip(TASKS, [*training, *together, *alone], strict=True))


@contextmanager
def busy_process() -> Iterator[subprocess.Popen[bytes]]:
    loop = f"import os\nwhile os.getppid() == {os.getpid()}: pass"  # ends when this process ends
    process = subprocess.Popen([sys.executable, "-c", loop])
    try:
        time.sleep(0.5)
        yield process
    finally:
        process.kill()
        process.wait()


def measure(directory: Path, spins: list[int], options: argparse.Namespace) -> Turns:
    turns: Turns = {}
    for number in range(options.rounds):
        with ExitStack() as stack:
            workers = {spin: Worker(spin, directory) for spin in spins}
            for worker in workers.values():
                stack.callback(worker.stop)
            for task in TASKS:  # the first unit of work of a process is slow
                for worker in workers.values():
                    worker.turn(task, 0)
            take_turns(workers, None, number, options, turns)
            with busy_process() as busy:
                take_turns(workers, busy, number, options, turns)
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    return turns


def take_turns(
    workers: dict[int, Worker],
    busy: subprocess.Popen[bytes] | None,
    number: int,
    options: argparse.Namespace,
    turns: Turns,
) -> None:
    """Measure idle speed in many short turns, because 3% matters, and busy speed in one long turn."""
    count, seconds = (options.turns, options.seconds) if busy is None else (1, 3 * options.seconds)
    spins = list(workers)
    for task in TASKS:
        for turn in range(number, number + count):
            shift = turn % len(spins)
            for spin in spins[shift:] + spins[:shift]:
                found = workers[spin].undisturbed(task, seconds, busy, options.deadline)
                turns.setdefault((task, busy is not None, spin), []).append(found)


def idle_ratio(turns: Turns, task: str, spin: int) -> float:
    """Return the speed relative to the default: the median over turns."""
    both = zip(turns[task, False, spin], turns[task, False, DEFAULT], strict=True)
    return statistics.median((a.units / a.seconds) / (b.units / b.seconds) for a, b in both)


def busy_ratio(turns: Turns, task: str, spin: int) -> float:
    """Return the speed alongside a busy process over all turns, relative to the default on an idle machine."""
    beside, idle = turns[task, True, spin], turns[task, False, DEFAULT]
    speed = sum(turn.units for turn in beside) / sum(turn.seconds for turn in beside)
    return speed / statistics.median(turn.units / turn.seconds for turn in idle)


def table(turns: Turns, spins: list[int], rounds: int) -> Table:
    data = f"batches of at most {BATCH_TOKENS:,} tokens of the built-in corpus; processor flags: {flags()}"
    rows = []
    for task in TASKS:
        for state, ratio in (("idle", idle_ratio), ("alongside a busy process", busy_ratio)):
            rows.append([task, state, *(f"{ratio(turns, task, spin):.0%}" for spin in spins)])
    return {
        "title": "Threads: speed by spin count",
        "measured": measured(THREADS, data, versions("torch")),
        "columns": ["", "machine", *("default" if spin == DEFAULT else f"{spin:,}" for spin in spins)],
        "rows": rows,
        "notes": [
            "100% is the speed with libgomp's default on an idle machine.",
            f"Rounds, each with fresh processes: {rounds}. Idle: the median over "
            f"{len(turns[TASKS[0], False, DEFAULT])} turns. Alongside a busy process: the sum over all turns.",
            f"N is 3 with d_model 256, and 2 with d_model 128. Decoding: beam {BEAM}, {TOGETHER} sentences in a batch.",
        ],
        "raw": {f"{task}; {beside}; {spin}": found for (task, beside, spin), found in turns.items()},
    }


def flags() -> str:
    """Return the vector instruction sets of this CPU."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    every = next((line.split() for line in lines if line.startswith("flags")), [])
    return " ".join(flag for flag in every if flag in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16"))


def prepare(directory: Path) -> None:
    pairs, tokens, _ = text(None)
    rows = batches(pairs, tokens, 1)
    for number, shape in enumerate(SHAPES):
        write_task(Task(shape, rows), directory / str(number))


def main() -> None:
    if sys.argv[1:2] == ["worker"]:
        work(Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3, help="turns per process and round on the idle machine")
    parser.add_argument(
        "--seconds", type=float, default=0.4, help="seconds per turn; three times as long alongside a busy process"
    )
    parser.add_argument(
        "--patience", type=float, default=300, help="seconds in which disturbed turns are repeated (300)"
    )
    parser.add_argument("--spins", type=int, nargs="+", default=list(SPINS))
    parser.add_argument("--quick", action="store_true", help="smoke test; writes no file unless --out is given")
    parser.add_argument("--out", type=Path, help=f"({OUT.name})")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.turns, options.seconds, options.patience = 1, 1, 0.0, 0.0
        options.spins = options.spins[:1]
    spins = [*options.spins, DEFAULT]
    options.deadline = time.monotonic() + options.patience
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory))
        turns = measure(Path(directory), spins, options)
    write([table(turns, spins, options.rounds)], options.out or (None if options.quick else OUT))


if __name__ == "__main__":
    main()
