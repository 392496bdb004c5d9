"""Several processes on one run: the same result and guarantees as with one process.

Each test starts torchrun with two processes on the CPU (gloo); NCCL was never run here. `make distributed`
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import synthetic_tasks as tasks
from heedful.training.run import train

pytestmark = pytest.mark.distributed

# Two batches an update, shared by two processes or computed by one; several epochs.
SETTINGS: dict[str, Any] = {
    **tasks.TINY,
    "training.accumulate": 2,
    "training.steps": 18,
    "training.keep": 10,
    "training.ema_decay": 0.9,
    "training.select_final": True,
}
LAST = SETTINGS["training.steps"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return tasks.tiny_corpus(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def alone(corpus: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run with one process."""
    return train(out=tmp_path_factory.mktemp("alone") / "run", overrides={**corpus, **SETTINGS}).path


def started(
    out: Path, corpus: dict[str, str], settings: dict[str, Any], program: tuple[str, ...] = ("-m", "heedful")
) -> subprocess.Popen[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *program]
    command = [*launch, "train", *tasks.file_options(corpus), "--out", str(out), *tasks.set_options(settings)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True)


def together(out: Path, corpus: dict[str, str], settings: dict[str, Any], *program: str) -> tasks.Outcome:
    process = started(out, corpus, settings, program or ("-m", "heedful"))
    try:
        printed, said = process.communicate(timeout=120)
    finally:
        kill_all(process)
    return tasks.Outcome(process.returncode, printed, said)


def kill_all(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def workers(process: subprocess.Popen[str]) -> list[int]:
    """Return the two training processes by rank."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2]
            if int(parent) == process.pid and state != "Z":
                found.append(int(status.parent.name))
    return sorted(found)


def assert_same(run: Path, other: Path, step: int) -> None:
    """Bit for bit."""
    for file in ("model.safetensors", "optimizer.safetensors"):  # weights; moments and moving average
        ours, theirs = (
            safetensors.torch.load_file(one / "checkpoints" / f"step-{step:08d}" / file) for one in (run, other)
        )
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def losses(run: Path) -> list[tuple[int, str, float]]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(line["step"], line["kind"], line["loss"]) for line in lines if "loss" in line]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_two_processes_match_one(corpus: dict[str, str], alone: Path, tmp_path: Path, precision: str) -> None:
    """The sum of two numbers has no order, so the runs are bit-identical.

    In bf16 gradients are float32, too.
    """
    settings = {**SETTINGS, "training.precision": precision}
    if precision != SETTINGS["training.precision"]:
        in_float32, alone = alone, train(out=tmp_path / "alone", overrides={**corpus, **settings}).path
        assert losses(alone) != losses(in_float32)
    done = together(tmp_path / "run", corpus, settings)
    assert done.code == 0, done.err
    assert done.out.strip() == str(tmp_path / "run"), "one of them speaks"
    assert "2 processes" in done.err
    assert_same(tmp_path / "run", alone, LAST)
    assert losses(tmp_path / "run") == losses(alone)
    for name in ("model", "best"):
        assert (tmp_path / "run" / name / "model.safetensors").read_bytes() == (
            alone / name / "model.safetensors"
        ).read_bytes()


def test_control_same_batches_on_both_processes(corpus: dict[str, str], alone: Path, tmp_path: Path) -> None:
    done = together(tmp_path / "run", corpus, SETTINGS, str(Path(__file__).parent / "control_unsharded_batches.py"))
    assert done.code == 0, done.err
    assert losses(tmp_path / "run") != losses(alone)


def test_accumulate_is_chosen_or_refused(corpus: dict[str, str], tmp_path: Path) -> None:
    chosen = {key: value for key, value in SETTINGS.items() if key != "training.accumulate"}
    done = together(tmp_path / "chosen", corpus, {**chosen, "training.steps": 6})
    assert done.code == 0, done.err
    assert "accumulate = 2" in (tmp_path / "chosen" / "config.toml").read_text(encoding="utf-8")
    refused = together(tmp_path / "refused", corpus, {**SETTINGS, "training.accumulate": 3})
    assert refused.code != 0
    assert "cannot be split evenly over 2 processes" in refused.err


@pytest.fixture
def halfway(corpus: dict[str, str], tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start two processes and wait until they have saved a checkpoint."""
    process = started(tmp_path / "run", corpus, {**SETTINGS, "training.steps": 4_000})
    end = time.monotonic() + 90
    while time.monotonic() < end and not (tmp_path / "run" / "checkpoints" / "step-00000008").is_dir():
        time.sleep(0.05)
    yield process
    kill_all(process)


@pytest.mark.parametrize("victim", [0, 1])
def test_death_of_one_process_ends_both_and_the_run_resumes(
    corpus: dict[str, str], alone: Path, tmp_path: Path, halfway: subprocess.Popen[str], victim: int
) -> None:
    os.kill(workers(halfway)[victim], signal.SIGKILL)
    halfway.communicate(timeout=60)
    assert halfway.returncode != 0
    assert workers(halfway) == []
    reached = max(int(path.name[5:]) for path in (tmp_path / "run" / "checkpoints").glob("step-*"))
    done = together(tmp_path / "run", corpus, {**SETTINGS, "training.steps": reached + 4})
    assert done.code == 0, done.err
    expected = train(out=tmp_path / "again", overrides={**corpus, **SETTINGS, "training.steps": reached + 4}).path
    assert_same(tmp_path / "run", expected, reached + 4)


def test_signal_saves_and_the_run_resumes(
    corpus: dict[str, str], tmp_path: Path, halfway: subprocess.Popen[str]
) -> None:
    """Sent twice to the ones that train: to all at once, and by torchrun."""
    os.killpg(halfway.pid, signal.SIGTERM)
    _, said = halfway.communicate(timeout=60)
    found = re.search(r"stopped at step ([\d,]+)", said)
    assert found, said
    reached = int(found[1].replace(",", ""))
    assert (tmp_path / "run" / "checkpoints" / f"step-{reached:08d}").is_dir()
    longer = {**SETTINGS, "training.steps": reached + 2}
    done = together(tmp_path / "run", corpus, longer)
    assert done.code == 0, done.err
    expected = train(out=tmp_path / "again", overrides={**corpus, **longer}).path
    assert_same(tmp_path / "run", expected, reached + 2)


def test_one_process_resumes_the_run_of_two(corpus: dict[str, str], alone: Path, tmp_path: Path) -> None:
    assert together(tmp_path / "run", corpus, {**SETTINGS, "training.steps": 10}).code == 0
    train(out=tmp_path / "run", overrides={**corpus, **SETTINGS})
    assert_same(tmp_path / "run", alone, LAST)
