"""Progress: on stderr alone, plain lines where there is no terminal."""

from __future__ import annotations

import io
import sys

import pytest

from heedful.config import TrainingConfig
from heedful.training import display as module
from heedful.training.display import Display, Sample
from heedful.training.progress import StepResult


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    ticking = Clock()
    monkeypatch.setattr(module, "monotonic", ticking)
    return ticking


def result(tokens: int = 100) -> StepResult:
    return StepResult(loss=1.25, nll=1.0, tokens=tokens, learning_rate=0.0005, gradient_norm=1.0)


def display_of(first: int, steps: int, validate_every: int = 10**6, save_every: int = 10**6) -> Display:
    return Display(first, TrainingConfig(steps=steps, validate_every=validate_every, save_every=save_every))


def pause(display: Display, clock: Clock, name: str, seconds: float) -> None:
    with display.phase(name):
        clock.now += seconds


def test_says_step_loss_rate_speed_and_time_left(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    display = display_of(0, 1_000)
    clock.now += 0.5
    display.step(1, result(2_000))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "step 1/1,000 · loss 1.250 · lr 5.00e-04 · 4,000 tokens/s · over 8:20 left\n"


def test_a_line_every_ten_seconds_and_one_at_the_end(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    display = display_of(0, 100)
    for step in range(1, 101):
        clock.now += 1
        display.step(step, result())
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("/")[0] for line in lines] == [f"step {n}" for n in (*range(1, 100, 10), 100)]
    assert lines[-1].endswith("0:00 left")


def test_speed_is_of_real_tokens_over_the_last_steps(clock: Clock) -> None:
    display = display_of(0, 1_000)
    for step in range(200):
        clock.now += 1 if step < 100 else 2
        display.step(step, result(100))
    assert display.tokens_per_second() == pytest.approx(50)
    assert display.seconds_left(900) == pytest.approx(200)


def test_neither_speed_nor_time_left_jumps_after_a_pause(clock: Clock) -> None:
    display = display_of(0, 1_000, validate_every=100)
    for step in range(1, 101):
        clock.now += 1
        display.step(step, result())
    pause(display, clock, "validating", 50)
    before = display.seconds_left(101)
    clock.now += 3  # one slow step
    display.step(101, result())
    assert display.tokens_per_second() == pytest.approx(100, rel=0.03)
    assert display.seconds_left(101) == pytest.approx(before, rel=0.03)


@pytest.mark.parametrize("save_every", [25, 30, 100])
def test_time_left_is_that_of_all_that_is_still_to_come(clock: Clock, save_every: int) -> None:
    """The oracle plays a run to its end: steps of 1 s, validations of 7 s, saves of 3 s."""
    display = display_of(0, 100, validate_every=20, save_every=save_every)
    said: dict[int, float] = {}
    at: dict[int, float] = {}
    for step in range(1, 101):
        clock.now += 1
        display.step(step, result())
        said[step], at[step] = display.seconds_left(step), clock.now
        if step % 20 == 0:
            pause(display, clock, "validating", 7)
        if step % save_every == 0 or step == 100:
            pause(display, clock, "saving", 3)
    known = range(max(20, save_every) + 1, 101)
    assert {step: said[step] for step in known} == pytest.approx({step: clock.now - at[step] for step in known})


def test_before_the_first_validation_the_time_is_said_to_be_more(clock: Clock) -> None:
    display = display_of(0, 100, validate_every=20)
    clock.now += 1
    display.step(1, result())
    assert display.time_left(1) == "over 1:39 left"
    pause(display, clock, "validating", 1)
    assert display.time_left(1) == "1:44 left"


def test_a_long_validation_says_how_far_it_is(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    display = display_of(0, 100)
    with display.phase("validating") as report:
        for done in range(1, 6):
            clock.now += 4
            report(done, 5)
    assert capsys.readouterr().err.splitlines() == ["validating · 1 of 5", "validating · 4 of 5"]


def test_samples_are_short_and_printable(capsys: pytest.CaptureFixture[str]) -> None:
    display = display_of(0, 100)
    display.samples([Sample("a cat", "eine\x1b[31m Katze", "x" * 500)])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[1:3] == ["  source       a cat", "  translation  eine [31m Katze"]
    assert len(err.splitlines()[3]) < 120


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    display = display_of(5, 10)
    display.step(6, result())
    display.print("a line [with] brackets")
    with display.phase("validating") as report:
        report(3, 7)
        display._bar.refresh()
    display.close()
    written = terminal.getvalue()
    assert "6/10" in written
    assert "loss 1.250" in written
    assert "validating" in written
    assert "3/7" in written
    assert "a line [with] brackets" in written
    assert capsys.readouterr().out == ""
