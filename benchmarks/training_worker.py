"""Run one toolkit in its own process: read requests as JSON lines and answer each with a JSON line.

python benchmarks/training_worker.py NAME PRECISION TASK THREADS

    {"what": "about"}                        package version, number of parameters
    {"what": "time", "batches": [0, 1, 2]}   seconds per update on each of these batches
    {"what": "activations", "batch": 0}      peak bytes of one update, excluding weights, gradients and moments

It is idle between requests, so that toolkits can take turns on one machine.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from peak_allocation import peak_allocated_bytes
from training_peers import CONTENDERS, Contender
from training_task import read_task


def main(name: str, precision: str, directory: str, threads: str) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    contender = CONTENDERS[name](read_task(Path(directory)), precision)
    for line in sys.stdin:
        print(json.dumps(answer(contender, json.loads(line))), file=answers, flush=True)


def answer(contender: Contender, asked: dict[str, Any]) -> dict[str, Any]:
    if asked["what"] == "time":
        begin = time.perf_counter()
        loss = [contender.step(number) for number in asked["batches"]][-1]
        return {"seconds": time.perf_counter() - begin, "loss": loss}
    if asked["what"] == "activations":
        return {"bytes": activations(contender, asked["batch"])}
    parameters = sum(parameter.numel() for parameter in trained(contender))
    versions = {name: metadata.version(name) for name in (contender.package, "torch")}
    return {"versions": versions, "parameters": parameters}


def trained(contender: Contender) -> list[torch.nn.Parameter]:
    """Return the trained parameters; Marian's sinusoids are parameters but not trained."""
    return [p for p in contender.model.parameters() if p.requires_grad] if contender.model is not None else []


def activations(contender: Contender, batch: int) -> int | None:
    """Return the peak allocation of an update after the first, when gradients and moments already exist.

    Every toolkit frees gradients only after the update, so the comparison is fair.
    """
    if contender.model is None:
        return None
    contender.step(batch)
    for parameter in trained(contender):
        parameter.grad = torch.zeros_like(parameter)
    return peak_allocated_bytes(lambda: contender.step(batch))


if __name__ == "__main__":
    main(*sys.argv[1:])
