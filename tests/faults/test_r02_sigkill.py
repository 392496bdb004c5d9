"""R2: a run killed at a save, step, validation or pruning ends like one never killed."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fault_injection import Phases, count, die, forked
from tiny_runs import continued, end_of, leftovers, load_without_moments

from heedful.errors import Interrupted
from heedful.storage.run_directory import RunDirectory
from heedful.training import checkpoints

pytestmark = pytest.mark.faults

PARTS = 2  # as many as there are cores
KILLS = count(20, 200) // PARTS
# Four in ten inside a save. The visit says which one of a sitting, the event which call within it.
PHASES = ("save", "step", "save", "validation", "prune", "save", "best", "step", "average", "save")


@dataclass
class Tally:
    kills: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    restarts_after_zero: int = 0
    ends: int = 0


def sitting(path: Path, settings: dict[str, Any], phase: str, visit: int, event: int) -> int:
    """Train in a process until it is killed at an event, or to the end."""

    def work() -> None:
        with pytest.MonkeyPatch.context() as patch:
            Phases(phase, visit, event, die).watch(patch, path)
            continued(path, settings)

    return forked(work, path.parent / f"{path.name}.txt")


def stopped_once(path: Path, settings: dict[str, Any]) -> int:
    """Train until SIGTERM, which leaves an averaged model."""

    def work() -> int:
        with pytest.MonkeyPatch.context() as patch:
            Phases("step", 5, 1, lambda: signal.raise_signal(signal.SIGTERM)).watch(patch, path)
            try:
                continued(path, settings)
            except Interrupted as error:
                return error.exit_code
        return 0

    return forked(work, path.parent / f"{path.name}.txt")


def killed_over_and_over(path: Path, settings: dict[str, Any], draw: random.Random, kills: int, tally: Tally) -> None:
    """One run to its end, killed up to `kills` times on the way."""
    for number in range(kills):
        phase = PHASES[sum(tally.kills.values()) % len(PHASES)]
        # The first sitting lives to see a checkpoint: most restarts then have something to go on from.
        first = {"save": 2, "step": 3}.get(phase, 1) if number == 0 else 1
        event = draw.randint(1, 45) if phase in ("save", "average", "best") else draw.randint(1, 12)
        code = sitting(path, settings, phase, first + draw.randint(0, 1), event)
        if code == 0:
            return
        assert code == -signal.SIGKILL, (path.parent / f"{path.name}.txt").read_text()
        tally.kills[phase] += 1
        tally.restarts += 1
        tally.restarts_after_zero += bool(RunDirectory(path).valid_steps(1))
    assert sitting(path, settings, "never", 1, 1) == 0, (path.parent / f"{path.name}.txt").read_text()


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_runs_end_bit_identical(
    reference: Path, settings: dict[str, Any], tmp_path: Path, part: int, counted: Callable[[int, str], None]
) -> None:
    draw, tally, expected = random.Random(part), Tally(), end_of(reference)
    while (left := KILLS - sum(tally.kills.values())) > 0:
        path = tmp_path / f"run-{tally.ends}"
        if tally.ends % 3 == 2:
            assert stopped_once(path, settings) == 143
        killed_over_and_over(path, settings, draw, min(4, left), tally)
        assert end_of(path) == expected
        assert leftovers(path) == []
        tally.ends += 1
    total = sum(tally.kills.values())
    assert total == KILLS
    assert tally.kills["save"] >= 0.3 * total
    assert len(tally.kills) >= 5, tally.kills
    assert tally.restarts_after_zero >= 0.8 * tally.restarts
    counted(total, "kills")
    counted(tally.kills["save"], "kills during a save")
    counted(tally.ends, "runs")


@pytest.mark.parametrize("event", [3, 12, 20, 30, 40, 60])
def test_killed_while_preparing_starts_again(
    reference: Path, settings: dict[str, Any], tmp_path: Path, event: int
) -> None:
    assert sitting(tmp_path / "run", settings, "begin", 1, event) == -signal.SIGKILL
    assert sitting(tmp_path / "run", settings, "never", 1, 1) == 0
    assert end_of(tmp_path / "run") == end_of(reference)


def test_killed_in_the_last_average_after_an_earlier_stop(
    reference: Path, settings: dict[str, Any], tmp_path: Path
) -> None:
    """RUN/model from an earlier stop is not mistaken for the final model."""
    path = tmp_path / "run"
    assert stopped_once(path, settings) == 143
    assert sitting(path, settings, "average", 1, 2) == -signal.SIGKILL
    assert sitting(path, settings, "never", 1, 1) == 0
    assert end_of(path) == end_of(reference)


@contextmanager
def in_place(final: Path, *_: object) -> Iterator[Path]:
    """What atomic_files.new_directory prevents: a directory written under its final name."""
    final.mkdir(parents=True, exist_ok=True)
    yield final


def test_control_without_whole_directories_and_digests(
    reference: Path, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "new_directory", in_place)
    monkeypatch.setattr(RunDirectory, "_verifies", lambda self, step: True)
    survived = 0
    for event in (3, 5, 8):
        path = tmp_path / f"run-{event}"
        assert sitting(path, settings, "save", 2, event) == -signal.SIGKILL
        survived += sitting(path, settings, "never", 1, 1) == 0 and end_of(path) == end_of(reference)
    assert survived == 0


def test_control_without_the_moments(
    reference: Path, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the optimizer state, the comparison at the end must fail."""
    path = tmp_path / "run"
    assert sitting(path, settings, "save", 3, 5) == -signal.SIGKILL
    monkeypatch.setattr(checkpoints, "load_state_tensors", load_without_moments)
    assert sitting(path, settings, "never", 1, 1) == 0
    assert end_of(path) != end_of(reference)
