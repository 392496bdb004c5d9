"""Start-up time: one sentence with `heedful translate MODEL`, compared with importing torch alone.

python benchmarks/startup_time.py MODEL [--repeats 15] [--sentence TEXT] [--out FILE]

The two alternate, each in a fresh process. heedful's own time is the difference, because both import torch. Writes
docs/results/performance-startup.json. With --shares, print the breakdown of heedful's own time instead.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark_tables import DOCS, Table, measured, write
from decoding_speed import versions

OUT = DOCS / "performance-startup.json"
GOAL = 0.7  # seconds on top of importing torch
TORCH, OURS, PYTHON = "import torch", "heedful translate", "Python alone"


@dataclass(frozen=True)
class Taken:
    wall: float  # seconds
    processor: float  # CPU seconds of all threads, user and system


def run(command: list[str]) -> Taken:
    """Run one process and measure it."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}\n{said.decode()}")
    return Taken(wall, used.ru_utime + used.ru_stime)


def turns(commands: dict[str, list[str]], repeats: int) -> dict[str, list[Taken]]:
    """Run each once to fill the page cache, then alternate."""
    for command in commands.values():
        run(command)
    taken: dict[str, list[Taken]] = {name: [] for name in commands}
    for number in range(repeats):
        for name, command in commands.items():
            taken[name].append(run(command))
        print(f"start-up: {number + 1} of {repeats}", file=sys.stderr, flush=True)
    return taken


def over(taken: dict[str, list[Taken]]) -> list[Taken]:
    """Return heedful's time on top of importing torch, per turn."""
    both = zip(taken[OURS], taken[TORCH], strict=True)
    return [Taken(ours.wall - torch.wall, ours.processor - torch.processor) for ours, torch in both]


def table(taken: dict[str, list[Taken]], facts: dict[str, Any]) -> Table:
    lines = {**taken, "heedful's own time (the difference)": over(taken)}
    rows = [
        [name, *_figures([one.wall for one in found]), *_figures([one.processor for one in found])]
        for name, found in lines.items()
    ]
    own = statistics.median(one.wall for one in over(taken))
    return {
        "title": "Start-up: one sentence from a cold start",
        "measured": facts,
        "columns": ["", "seconds", "range", "CPU seconds", "range"],
        "rows": rows,
        "notes": [
            f"Medians of {len(taken[OURS])} runs, each a fresh process, alternating; files are in the page cache.",
            f"Goal: at most {GOAL} s over importing torch; measured {own:.2f} s.",
        ],
    }


def _figures(seconds: list[float]) -> tuple[str, str]:
    return f"{statistics.median(seconds):.2f}", f"{min(seconds):.2f} to {max(seconds):.2f}"


def import_shares(command: list[str], most: int = 25) -> list[tuple[str, int]]:
    """Return the packages with the longest import time of their own, in microseconds (python -X importtime)."""
    done = subprocess.run([command[0], "-X", "importtime", *command[1:]], capture_output=True, text=True, check=True)
    own: dict[str, int] = {}
    for line in done.stderr.splitlines():
        if found := re.fullmatch(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)", line):
            package = ".".join(found.group(2).split(".")[:2])
            own[package] = own.get(package, 0) + int(found.group(1))
    return sorted(own.items(), key=lambda item: -item[1])[:most]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--sentence", default="The dog that I saw yesterday does not sleep.")
    parser.add_argument("--shares", action="store_true", help="print the import time of packages other than torch")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        line = Path(directory) / "line"
        line.write_text(f"{options.sentence}\n", encoding="utf-8")
        translate = [sys.executable, "-m", "heedful", "translate", str(options.model), "--input", str(line)]
        if options.shares:
            with_torch = dict(import_shares([sys.executable, "-c", "import torch"], most=10_000))
            for package, microseconds in import_shares(translate, most=10_000):
                if package not in with_torch and microseconds > 2_000:
                    print(f"{microseconds / 1_000:8.1f} ms  {package}")
            return
        commands = {
            PYTHON: [sys.executable, "-c", "pass"],
            TORCH: [sys.executable, "-c", "import torch"],
            OURS: translate,
        }
        taken = turns(commands, options.repeats)
    threads = len(os.sched_getaffinity(0))
    found = table(taken, measured(threads, f"the model {options.model.name}", versions("torch", "sentencepiece")))
    write([found], options.out)


if __name__ == "__main__":
    main()
