"""benchmarks/openmp_spin.py: ratios, and detection of disturbed turns by CPU time."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import openmp_spin
from openmp_spin import DEFAULT, TASKS, Turn


def turns_of(*speeds: float) -> list[Turn]:
    return [Turn(round(10 * speed), 10.0, 20.0) for speed in speeds]


def test_ratios_are_of_the_default_on_an_idle_machine() -> None:
    task = TASKS[0]
    turns = {
        (task, False, DEFAULT): turns_of(10, 5, 20),
        (task, False, 1_000): turns_of(9, 5, 10),
        (task, True, 1_000): [Turn(10, 10.0, 1.0), Turn(10, 2.0, 1.0)],
    }
    assert openmp_spin.idle_ratio(turns, task, 1_000) == 0.9  # of 0.9, 1 and 0.5: turn by turn
    assert openmp_spin.busy_ratio(turns, task, 1_000) == pytest.approx(
        20 / 12 / 10
    )  # a slow turn weighs by its seconds


def test_the_table_has_both_states_of_every_task() -> None:
    turns = {(task, beside, spin): turns_of(10) for task in TASKS for beside in (False, True) for spin in (7, DEFAULT)}
    table = openmp_spin.table(turns, [7, DEFAULT], 1)
    assert table["columns"] == ["", "machine", "7", "default"]
    assert [row[:2] for row in table["rows"][:2]] == [[TASKS[0], "idle"], [TASKS[0], "alongside a busy process"]]
    assert [row[2:] for row in table["rows"]] == [["100%", "100%"]] * 2 * len(TASKS)


def test_the_busy_process_is_not_counted_when_it_is_left_out() -> None:
    deadline = time.monotonic() + 60
    with openmp_spin.busy_process() as busy:
        while (own := openmp_spin.used(None) - openmp_spin.used(busy)) < 0.3 and time.monotonic() < deadline:
            time.sleep(0.1)
    assert own >= 0.3
    assert busy.returncode is not None


def test_the_busy_process_ends_with_its_parent() -> None:
    program = (
        "import os, openmp_spin\nwith openmp_spin.busy_process() as busy:\n print(busy.pid, flush=True)\n os._exit(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )  # its busy process holds the pipe open: this returns when that has ended
    assert int(done.stdout) > 0
