"""The same training with one, two and four processes, by DDP and by FSDP2.

The batches of a step do not depend on the number of processes, and the last one is short. In float64 only the order of
summation differs. Float64 is a setting of these tests alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import equal_runs
import pytest
import safetensors.torch
import torch
from torch import Tensor

pytestmark = pytest.mark.distributed

GOLDEN = Path(__file__).parent / "golden_losses.json"
LONG: dict[str, Any] = {"to": 50, "dtype": "float64"}
SHORT: dict[str, Any] = {"to": 8, "dtype": "float64"}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": LONG,
    "muon": {**SHORT, "optimizer": "muon"},
    "recomputed": {**SHORT, "checkpoint_activations": True},
    "clipped": {**SHORT, "clip_norm": 0.5, "ema_decay": 0.9, "select_final": True},
    "consistent": {**SHORT, "consistency": 1.0, "cutoff": 0.2},
    "fp32": {"to": 20},
    "bf16": {"to": 20, "precision": "bf16"},
}
SHARDED = {f"{name}-sharded": {**options, "shard": True} for name, options in VARIANTS.items()}
RESUMED: dict[str, dict[str, Any]] = {
    "half": {"to": 10},
    "resumed": {"to": 20, "from": "half"},
    "half-sharded": {"to": 10, "shard": True},
    "resumed-sharded": {"to": 20, "from": "half-sharded", "shard": True},
}
JOBS: dict[int, dict[str, dict[str, Any]]] = {
    1: {**VARIANTS, **RESUMED, "one-of-two": {"to": 20, "from": "../two/half-sharded"}},
    2: {**VARIANTS, **SHARDED, **RESUMED, "gradients": {"gradients": True, "dtype": "float64"}},
    4: {
        "plain": LONG,
        "plain-sharded": {**LONG, "shard": True},
        "fp32": {"to": 20},
        **RESUMED,
        "four-of-two": {"to": 20, "from": "../two/half"},
        "sharded-of-two": {"to": 20, "from": "../two/half", "shard": True},
    },
}
NAMES = {1: "one", 2: "two", 4: "four"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every job in every number of processes: one launch for each number."""
    root = tmp_path_factory.mktemp("equal")
    for processes in (2, 4, 1):
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        done = subprocess.run(
            [sys.executable, *launch, equal_runs.__file__, str(root / NAMES[processes]), json.dumps(JOBS[processes])],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return root


def losses(run: Path) -> list[float]:
    found: list[float] = json.loads((run / "losses.json").read_text(encoding="utf-8"))
    return found


def furthest(one: list[float], other: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def tensors(run: Path) -> dict[str, Tensor]:
    """Weights, optimizer state and moving average of a checkpoint."""
    (checkpoint,) = (run / "checkpoints").glob("step-*")
    names = ("model", "optimizer")
    return {
        f"{name}.{key}": tensor
        for name in names
        for key, tensor in safetensors.torch.load_file(checkpoint / f"{name}.safetensors").items()
    }


def assert_identical(run: Path, other: Path) -> None:
    ours, theirs = tensors(run), tensors(other)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("suffix", ["", "-sharded"])
@pytest.mark.parametrize(
    ("processes", "name"),
    [*((2, name) for name, options in VARIANTS.items() if "dtype" in options), (4, "plain")],
)
def test_losses_in_float64_are_those_of_one_process(runs: Path, processes: int, name: str, suffix: str) -> None:
    alone, together = runs / "one" / name, runs / NAMES[processes] / f"{name}{suffix}"
    assert furthest(losses(together), losses(alone)) <= 1e-9
    ours, theirs = tensors(together), tensors(alone)
    assert ours.keys() == theirs.keys()  # checkpoints have one format
    assert {tensor.shape for tensor in ours.values()} == {tensor.shape for tensor in theirs.values()}


def test_float64_losses_are_the_golden_ones(runs: Path) -> None:
    """After an intended change, record them again with HEEDFUL_RECORD_GOLDEN=1."""
    found = losses(runs / "one" / "plain")
    if os.environ.get("HEEDFUL_RECORD_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    assert furthest(found, json.loads(GOLDEN.read_text(encoding="utf-8"))) <= 1e-9
    assert found[-1] < found[0] - 1


@pytest.mark.parametrize("suffix", ["", "-sharded"])
@pytest.mark.parametrize(("name", "tolerance"), [("fp32", 1e-5), ("bf16", 0.02)])
def test_losses_in_lower_precision_are_near(runs: Path, name: str, tolerance: float, suffix: str) -> None:
    assert furthest(losses(runs / "two" / f"{name}{suffix}"), losses(runs / "one" / name)) <= tolerance


def test_control_bf16_is_used(runs: Path) -> None:
    assert furthest(losses(runs / "two" / "bf16-sharded"), losses(runs / "two" / "fp32")) > 1e-4


@pytest.mark.parametrize("suffix", ["", "-sharded"])
def test_two_processes_resume_bit_for_bit(runs: Path, suffix: str) -> None:
    assert_identical(runs / "two" / f"resumed{suffix}", runs / "two" / f"fp32{suffix}")


def test_four_processes_resume_within_rounding(runs: Path) -> None:
    """DistributedDataParallel may regroup its buckets, which changes the order of summation."""
    assert furthest(losses(runs / "four" / "resumed"), losses(runs / "four" / "fp32")[10:]) <= 1e-6


@pytest.mark.parametrize("resumed", ["one/one-of-two", "four/four-of-two", "four/sharded-of-two"])
def test_a_run_resumes_with_another_number_of_processes(runs: Path, resumed: str) -> None:
    assert furthest(losses(runs / resumed), losses(runs / "two" / "fp32")[10:]) <= 1e-5


def test_gradients_differ_inside_no_sync_and_agree_after_it(runs: Path) -> None:
    first, second = (
        safetensors.torch.load_file(runs / "two" / "gradients" / f"gradients-{rank}.safetensors") for rank in (0, 1)
    )
    assert not torch.allclose(first["inside"], second["inside"])
    assert torch.equal(first["after"], second["after"])
