"""A contender in a process of its own: reads the numbers of batches, a line at a time, and answers with seconds.

python benchmarks/worker.py NAME TASK THREADS

While it waits for a line it does nothing, so that contenders can take turns on one machine.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import torch
from shapes import read_task
from training_peers import STEPS


def main(name: str, directory: str, threads: str) -> None:
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    step = STEPS[name](read_task(Path(directory)))
    for line in sys.stdin:
        numbers = json.loads(line)
        begin = time.perf_counter()
        loss = [step(number) for number in numbers][-1]
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "loss": loss, "peak": peak}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
