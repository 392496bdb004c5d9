"""R9: after SIGTERM or SIGINT at any event, the run saves and resumes bit for bit."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_injection import Phases, count, forked
from tiny_runs import continued, end_of, leftovers

import synthetic_tasks as tasks
from heedful.cli.main import main
from heedful.storage.run_directory import RunDirectory
from heedful.training.signals import StopRequest

pytestmark = pytest.mark.faults

SIGNALS = count(8, 80)
PHASES = ("step", "save", "validation", "prune", "best")


class Signalled(Phases):
    """Raise a signal at an event, and record what happens after it."""

    def __init__(self, phase: str, visit: int, event: int, number: signal.Signals, after: Path) -> None:
        super().__init__(phase, visit, event, self._raise)
        self.number, self.after, self.before = number, after, None

    def _raise(self) -> None:
        self.before = {**self.visits}
        signal.raise_signal(self.number)

    def write_down(self) -> None:
        before = self.before or {}
        extra = {name: self.visits[name] - before.get(name, 0) for name in ("step", "save", "validation")}
        self.after.write_text(f"{before.get('step', -1)} {extra['step']} {extra['save']} {extra['validation']}")


def signalled(
    path: Path, settings: dict[str, Any], at: tuple[str, int, int], number: signal.Signals
) -> tuple[int, list[int]]:
    """Return exit code, steps begun before the signal, and counts of events begun after it.

    The events are steps, saves and validations.
    """
    after = path.parent / f"{path.name}.after"

    def work() -> int:
        with pytest.MonkeyPatch.context() as patch:
            phases = Signalled(*at, number, after)
            phases.watch(patch, path)
            code = main(["train", *tasks.set_options(settings), "--out", str(path)])
            phases.write_down()
            return code

    code = forked(work, path.parent / f"{path.name}.txt")
    return code, [int(word) for word in after.read_text().split()] if after.exists() else []


@pytest.mark.parametrize("part", range(2))
def test_saves_exits_soon_and_resumes(
    reference: Path, settings: dict[str, Any], tmp_path: Path, part: int, counted: Callable[[int, str], None]
) -> None:
    draw, expected = random.Random(part), end_of(reference)
    for index in range(SIGNALS // 2):
        phase = PHASES[index % len(PHASES)]
        number = (signal.SIGTERM, signal.SIGINT)[(index // len(PHASES) + index) % 2]
        path = tmp_path / f"run-{index}"
        visit = draw.randint(1, 10) if phase == "step" else draw.randint(1, {"validation": 3, "best": 1}.get(phase, 6))
        code, (begun, steps, saves, validations) = signalled(
            path, settings, (phase, visit, draw.randint(1, 15)), number
        )
        said = (path.parent / f"{path.name}.txt").read_text()
        assert code == 128 + number, said
        assert steps == 0, "the step may end, no other may begin"
        assert validations <= 1
        assert saves <= 1
        assert RunDirectory(path).valid_steps(1) == [begun]
        assert f"{number.name}: stopped at step {begun} and saved" in said
        continued(path, settings)
        assert end_of(path) == expected
        assert leftovers(path) == []
    counted(SIGNALS // 2, "signals")


def test_a_second_signal_stops_at_once(reference: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run"

    def twice() -> None:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)

    def work() -> int:
        with pytest.MonkeyPatch.context() as patch:
            Phases("save", 3, 9, twice).watch(patch, path)
            return main(["train", *tasks.set_options(settings), "--out", str(path)])

    assert forked(work, tmp_path / "log.txt") == 130
    assert RunDirectory(path).valid_steps(1) == [4]
    continued(path, settings)
    assert end_of(path) == end_of(reference)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_control_without_handlers(
    reference: Path, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(StopRequest, "__enter__", lambda self: self)
    code, _ = signalled(tmp_path / "run", settings, ("step", 5, 2), number)
    assert code in (-signal.SIGTERM, 130)
    assert RunDirectory(tmp_path / "run").valid_steps(1) == [4], "step 5 was lost"
