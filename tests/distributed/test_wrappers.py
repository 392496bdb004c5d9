"""The model trains in bf16 under torch's DistributedDataParallel and fully_shard (FSDP2), with gradients in float32.

heedful adds gradients itself (training/distributed.py); this is for those who use the model with torch's own wrappers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch
import wrapped_gradient
from torch import Tensor

pytestmark = pytest.mark.distributed

SCRIPT = Path(wrapped_gradient.__file__)


def of_two_processes(kind: str, out: Path) -> dict[str, Tensor]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launch, str(SCRIPT), kind, str(out)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return safetensors.torch.load_file(out)


def distance(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The length of the difference of two gradients, over all parameters, relative to that of the second."""
    assert one.keys() == other.keys()
    ours, theirs = (torch.cat([gradients[name].flatten() for name in other]) for gradients in (one, other))
    return float((ours - theirs).norm() / theirs.norm())


# DDP computes as one process does. FSDP2 rounds the embedding to bf16 before it is scaled.
@pytest.mark.parametrize(("kind", "tolerance"), [("ddp", 1e-6), ("fsdp", 0.03)])
def test_gradient_of_two_processes_matches_one(kind: str, tolerance: float, tmp_path: Path) -> None:
    assert distance(of_two_processes(kind, tmp_path / "gradients"), wrapped_gradient.alone()) < tolerance


def test_control_gradient_of_one_batch_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    both, batches = wrapped_gradient.alone(), wrapped_gradient.batches()
    monkeypatch.setattr(wrapped_gradient, "batches", lambda: [batches[0], batches[0]])
    assert distance(wrapped_gradient.alone(), both) > 0.2


def test_control_bf16_is_used() -> None:
    assert 1e-3 < distance(wrapped_gradient.alone(), wrapped_gradient.alone(torch.float32)) < 0.03
