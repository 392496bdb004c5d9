"""Measure `heedful prepare` on a large corpus: time, memory and the start of training, before and after a kill.

    python benchmarks/prepare_scaling.py --pairs 10000000 --processes 8 --directory /data/scaling

The corpus is synthetic: distinct pairs of the built-in grammar, numbered so that none is a duplicate. Prints one JSON
object.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from heedful import grammar

_BASE = 50_000  # sentences of the grammar that are repeated with other numbers
_TRAIN = ("--set", "training.steps=1", "--set", "training.validate_every=1000", "--preset", "tiny")


def write_corpus(directory: Path, pairs: int) -> None:
    base = list(grammar.pairs("train", min(pairs, _BASE)))
    with (directory / "train.en").open("w") as english, (directory / "train.de").open("w") as german:
        for number in range(pairs):
            pair = base[number % len(base)]
            english.write(f"{number}: {pair.english}\n")
            german.write(f"{number}: {pair.german}\n")


class PeakMemory(threading.Thread):
    """Samples the resident memory of a process and its children; keeps the largest process and the largest sum."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process = process
        self.process = self.total = 0

    def run(self) -> None:
        while True:
            sizes = [_resident(one) for one in _family(self._process)]
            if not sizes:
                return
            self.process, self.total = max(self.process, *sizes), max(self.total, sum(sizes))
            time.sleep(0.5)


def _family(process: int) -> list[int]:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [process, *(one for child in children for one in _family(int(child)))]


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


def prepare(directory: Path, out: Path, processes: int, kill_after: float | None = None) -> dict[str, float]:
    """Run `heedful prepare`, and kill it after some seconds if asked to."""
    command = [sys.executable, "-m", "heedful", "prepare", "--out", str(out), "--processes", str(processes)]
    command += ["--source", str(directory / "train.en"), "--target", str(directory / "train.de")]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        memory = PeakMemory(process.pid)
        memory.start()
        try:
            code = process.wait(kill_after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            code = process.wait()
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"heedful prepare ended with exit code {code}")
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "largest_process_MB": round(memory.process / 1e6),
        "all_processes_MB": round(memory.total / 1e6),
        "finished_shards": len(list((out / "shards").glob("0*"))),
    }


def seconds_to_train(out: Path, run: Path) -> float:
    """Return the seconds from the command until the first update is logged."""
    command = [sys.executable, "-m", "heedful", "train", "--source", str(out), "--out", str(run), *_TRAIN]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            log = run / "log.jsonl"
            if log.is_file() and '"train"' in log.read_text():
                break
            time.sleep(0.05)
        seconds = time.perf_counter() - began
        process.kill()
    return round(seconds, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--directory", type=Path, required=True, help="new directory for the corpus and the results")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True)
    write_corpus(arguments.directory, arguments.pairs)
    out, killed = arguments.directory / "prepared", arguments.directory / "killed"
    straight = prepare(arguments.directory, out, arguments.processes)
    first = prepare(arguments.directory, killed, arguments.processes, kill_after=0.7 * straight["seconds"])
    second = prepare(arguments.directory, killed, arguments.processes)
    result = {
        "pairs": arguments.pairs,
        "processes": arguments.processes,
        "prepare": straight,
        "prepare until the kill": first,
        "prepare after the kill": second,
        "seconds until training starts": seconds_to_train(out, arguments.directory / "run"),
        "seconds until training starts, after the kill": seconds_to_train(killed, arguments.directory / "run-killed"),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
