"""Compare kernels for the matrix products of search, by rows and shape.

The table in src/heedful/decoding/projection_kernels.py rests on it.

python benchmarks/gemm_kernels.py [--threads 2] [--repetitions 25] [--precision fp32 bf16]

Kernels take turns, and the shortest time of each counts: on a machine with other work only that one means something.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from processor import described
from torch import Tensor

from heedful.decoding.projection_kernels import PackedProjection, packed_from, packed_operators, processor

SHAPES = ((192, 192), (192, 576), (192, 768), (768, 192), (192, 4_600), (512, 512), (512, 2_048), (512, 16_000))
ROWS = (1, 4, 8, 16, 32, 64, 256, 1_024)
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}

Kernels = dict[str, Callable[[Tensor], Tensor]]


def kernels(weight: Tensor, bias: Tensor) -> Kernels:
    found: Kernels = {
        "xWᵀ": lambda x: F.linear(x, weight, bias),
        "(Wxᵀ)ᵀ": lambda x: torch.addmm(bias[:, None], weight, x.t()).t().contiguous(),
    }
    if operators := packed_operators():
        found["packed"] = PackedProjection(weight, bias, 1, operators)
    return found


def microseconds(compared: Kernels, x: Tensor, repetitions: int) -> dict[str, float]:
    best = dict.fromkeys(compared, float("inf"))
    for _ in range(repetitions):
        for name, multiply in compared.items():
            multiply(x)  # the weight is in the cache again
            began = time.perf_counter()
            multiply(x)
            best[name] = min(best[name], time.perf_counter() - began)
    return {name: 1e6 * seconds for name, seconds in best.items()}


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repetitions", type=int, default=25)
    parser.add_argument("--precision", nargs="+", choices=TYPES, default=list(TYPES))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{described()}; {options.threads} threads; µs, * is what the table chooses")
    for precision in options.precision:
        dtype = TYPES[precision]
        for inputs, outputs in SHAPES:
            weight, bias = torch.randn(outputs, inputs).to(dtype), torch.randn(outputs).to(dtype)
            compared, rows_from = kernels(weight, bias), packed_from(weight.numel(), dtype, processor())
            for rows in ROWS:
                taken = microseconds(compared, torch.randn(rows, inputs).to(dtype), options.repetitions)
                chosen = "*" if rows_from is not None and rows >= rows_from else ""
                cells = "  ".join(f"{name} {time:9.1f}" for name, time in taken.items())
                print(f"{precision} {inputs:5} → {outputs:6} {rows:5} rows  {cells}{chosen}", flush=True)


if __name__ == "__main__":
    main()
