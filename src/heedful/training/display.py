"""Progress for a person: a live bar on a terminal, plain lines elsewhere. Always on stderr."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from time import monotonic
from typing import Any

from heedful.training.step import StepResult

_SECONDS_BETWEEN_LINES = 10.0
_WINDOW = 50  # steps over which speed is measured


def say(text: str) -> None:
    """A line on stderr. Nobody listening (`2>&1 | head`) must never end a run."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


class Display:
    def __init__(self, first_step: int, last_step: int, is_shown: bool = True) -> None:
        self.last_step = last_step
        self.is_shown = is_shown  # of several processes, one speaks
        self._recent: deque[tuple[float, int]] = deque([(monotonic(), 0)], maxlen=_WINDOW)
        self._last_line = 0.0
        self._bar: Any = _bar() if is_shown and sys.stderr.isatty() else None
        if self._bar is not None:
            self._task = self._bar.add_task("training", total=last_step, completed=first_step, figures="")
            self._bar.start()

    def say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False)
        elif self.is_shown:
            say(text)

    def step(self, number: int, result: StepResult) -> None:
        self._recent.append((monotonic(), result.tokens))
        figures = f"loss {result.loss:.3f} · rate {result.learning_rate:.2e} · {self.tokens_per_second():,.0f} tokens/s"
        if self._bar is not None:
            left = f" · {_duration(self.seconds_left(number))} left"
            self._bar.update(self._task, completed=number, total=self.last_step, figures=figures + left)
        elif monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES or number == self.last_step:
            self._last_line = monotonic()
            left = _duration(self.seconds_left(number))
            self.say(f"step {number:,}/{self.last_step:,} · {figures} · {left} left")

    def pause(self) -> None:
        """Validation and saving are not training: they are kept out of the speed."""
        self._recent.clear()
        self._recent.append((monotonic(), 0))

    def tokens_per_second(self) -> float:
        """Real target tokens per second over the last steps."""
        seconds = self._recent[-1][0] - self._recent[0][0]
        return sum(tokens for _, tokens in list(self._recent)[1:]) / seconds if seconds > 0 else 0.0

    def seconds_left(self, number: int) -> float:
        steps = len(self._recent) - 1
        seconds = self._recent[-1][0] - self._recent[0][0]
        return (self.last_step - number) * seconds / steps if steps else 0.0

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    return Progress(*columns, console=Console(stderr=True))


def _duration(seconds: float) -> str:
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{whole:02d}" if hours else f"{minutes}:{whole:02d}"
