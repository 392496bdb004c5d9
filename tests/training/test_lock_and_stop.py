"""One trainer per run, and the handling of signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import synthetic_tasks as tasks
from heedful.errors import CheckpointError
from heedful.storage.run_directory import RunDirectory
from heedful.training.lock import locked
from heedful.training.run import train
from heedful.training.signals import StopRequest

HOLD = "import fcntl, sys, time; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True)"


def test_second_trainer_is_rejected_with_the_pid_of_the_first(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    with locked(run):
        began = time.monotonic()
        with pytest.raises(CheckpointError, match=rf"PID {os.getpid()}\) is training in") as caught, locked(run):
            pytest.fail("two trainers")
        assert time.monotonic() - began < 1
        assert caught.value.exit_code == 3


def test_finished_trainer_releases_the_lock(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for _ in range(2):
        with locked(run):
            pass
    with pytest.raises(ZeroDivisionError), locked(run):
        raise ZeroDivisionError
    with locked(run):
        pass


def test_the_lock_of_a_killed_process_is_recovered(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    command = [sys.executable, "-c", f"{HOLD}; time.sleep(60)", str(run.marker)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(CheckpointError), locked(run):
            pytest.fail("two trainers")
        holder.kill()
        holder.wait()
        with locked(run):
            pass


def test_training_takes_the_lock(own_run: Path) -> None:
    with locked(RunDirectory(own_run)), pytest.raises(CheckpointError, match="is training in"):
        train(out=own_run, overrides={"training.steps": 13})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_is_recorded(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    with StopRequest() as stop:
        assert stop.signal_number is None
        os.kill(os.getpid(), number)
        assert stop.signal_number == number
    assert signal.getsignal(number) is before
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{number.name} received: saving after this step" in err


def test_the_second_signal_stops_at_once() -> None:
    program = (
        "import os, signal\nfrom heedful.training.signals import StopRequest\n"
        "with StopRequest():\n os.kill(os.getpid(), signal.SIGINT)\n os.kill(os.getpid(), signal.SIGTERM)\n"
        "print('went on')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 143
    assert done.stdout == ""


def test_other_threads_do_not_change_the_handlers() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def enter() -> None:
        with StopRequest() as stop:
            seen.append((stop.signal_number, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [(None, before)]


def test_a_terminated_command_saves_exits_143_and_continues_exactly(tmp_path: Path) -> None:
    """The signal comes from outside, between any two events."""
    settings = {**tasks.tiny_corpus(tmp_path / "text"), **tasks.TINY}
    stopped = RunDirectory(tmp_path / "stopped")
    endless = tasks.set_options({**settings, "training.steps": 1_000_000, "training.validate_every": 1_000})
    command = [sys.executable, "-m", "heedful", "train", "--out", str(stopped.path), *endless]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as trainer:
        while trainer.poll() is None and not (stopped.log.is_file() and stopped.log.read_text().count("train") >= 3):
            time.sleep(0.02)
        trainer.send_signal(signal.SIGTERM)
        out, err = trainer.communicate(timeout=60)
    assert trainer.returncode == 143, err
    assert out == ""
    assert "Traceback" not in err
    [step] = stopped.valid_steps(1)
    assert f"stopped at step {step:,} and saved" in err.splitlines()[-1]
    assert stopped.model.is_dir()
    end = {"training.steps": step + 3, "training.validate_every": 1_000}
    straight = RunDirectory(train(out=tmp_path / "straight", overrides={**settings, **end}).path)
    train(out=stopped.path, overrides={**settings, **end})
    for name in ("model.safetensors", "optimizer.safetensors"):
        ends = [(run.checkpoint(step + 3) / name).read_bytes() for run in (straight, stopped)]
        assert ends[0] == ends[1], name
