"""Progress: on stderr alone, plain lines where there is no terminal."""

from __future__ import annotations

import io
import sys

import pytest

from heedful.training import display as module
from heedful.training.display import Display
from heedful.training.step import StepResult


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


def test_says_step_loss_rate_speed_and_time_left(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    display = Display(0, 1_000)
    clock.now += 0.5
    display.step(1, result(2_000))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "step 1/1,000 · loss 1.250 · rate 5.00e-04 · 4,000 tokens/s · 8:20 left\n"


def test_a_line_every_ten_seconds_and_one_at_the_end(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    display = Display(0, 100)
    for step in range(1, 101):
        clock.now += 1
        display.step(step, result())
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("/")[0] for line in lines] == [f"step {n}" for n in (*range(1, 100, 10), 100)]
    assert lines[-1].endswith("0:00 left")


def test_speed_is_of_real_tokens_over_the_last_steps(clock: Clock) -> None:
    display = Display(0, 1_000)
    for step in range(200):
        clock.now += 1 if step < 100 else 2
        display.step(step, result(100))
    assert display.tokens_per_second() == pytest.approx(50)
    assert display.seconds_left(900) == pytest.approx(200)


def test_validation_and_saving_are_not_counted(clock: Clock) -> None:
    display = Display(0, 100)
    clock.now += 1
    display.step(1, result())
    clock.now += 1_000
    display.pause()
    assert display.tokens_per_second() == 0.0
    clock.now += 1
    display.step(2, result())
    assert display.tokens_per_second() == pytest.approx(100)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3600, "1:00:00")])
def test_time_is_written_as_a_clock_has_it(seconds: float, text: str) -> None:
    assert module._duration(seconds) == text


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    display = Display(5, 10)
    display.step(6, result())
    display.say("a line [with] brackets")
    display.close()
    written = terminal.getvalue()
    assert "6/10" in written
    assert "loss 1.250" in written
    assert "a line [with] brackets" in written
    assert capsys.readouterr().out == ""
