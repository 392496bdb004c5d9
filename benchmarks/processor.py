"""The processor of a measurement, and the instruction sets that the libraries actually use on it.

python benchmarks/processor.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
_PROBE = """
import torch
torch.randn(32, 64) @ torch.randn(64, 64)
weight = torch.randn(64, 64).bfloat16()
torch.nn.functional.linear(torch.randn(32, 64).bfloat16(), weight)
print("ATen", torch.backends.cpu.get_cpu_capability())
try:
    import ctranslate2
    ctranslate2.Translator("/nonexistent")
except (ImportError, RuntimeError):
    pass
"""
_FOUND = {  # what each library says of itself when it is asked to be verbose
    "ATen": r"ATen (\w+)",
    "MKL": r"MKL_VERBOSE oneMKL .*? for Intel\(R\) 64 architecture (.*?), Lnx",
    "oneDNN": r"onednn_verbose,.*isa:(.*)",
    "CTranslate2": r"Selected ISA: (\w+)",
    "CTranslate2 SGEMM": r"SGEMM backend: (\w+)",
}


def flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the vector instructions of this processor."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    every = next((line.split() for line in lines if line.startswith("flags")), [])
    return " ".join(flag for flag in FLAGS if flag in every)


def instruction_sets() -> dict[str, str]:
    """Ask MKL, oneDNN and CTranslate2 in a process of its own, because they read these variables once."""
    verbose = {"MKL_VERBOSE": "1", "ONEDNN_VERBOSE": "1", "CT2_VERBOSE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], env={**os.environ, **verbose}, capture_output=True, text=True, check=True
    )
    return parsed(done.stdout + done.stderr)


def parsed(output: str) -> dict[str, str]:
    found = {name: re.search(pattern, output) for name, pattern in _FOUND.items()}
    return {name: match[1].strip() for name, match in found.items() if match}


def described() -> str:
    """Return both in one line."""
    return "; ".join([f"processor flags {flags()}", *(f"{name}: {isa}" for name, isa in instruction_sets().items())])


def require_one_processor(tables: Iterable[dict[str, Any]]) -> None:
    """Raise if tables that are shown together were measured on different processors."""
    found = {(table["measured"].get("machine"), table["measured"].get("processor")) for table in tables}
    if len(found) > 1:
        raise SystemExit(f"Tables of {len(found)} processors in one place: {sorted(map(str, found))}. Measure again.")


if __name__ == "__main__":
    print(described())
