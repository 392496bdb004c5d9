"""Training progress on stderr: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, NamedTuple

from heedful.config import TrainingConfig
from heedful.formatting import format_duration
from heedful.training.progress import StepResult

Report = Callable[[int, int], None]  # (done, total) of a phase

_SECONDS_BETWEEN_LINES = 10.0
_WINDOW = 100  # steps over which speed is measured
_LONGEST = 100  # characters of a sample line


class Sample(NamedTuple):
    source: str
    translation: str
    reference: str


def print_status(text: str) -> None:
    """Print a line on stderr. A closed stderr (`2>&1 | head`) must never end a run."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


class Display:
    """The progress bar or lines of a training process, with the remaining time."""

    def __init__(self, first_step: int, training: TrainingConfig, is_shown: bool = True) -> None:
        self.last_step = training.steps
        self.is_shown = is_shown  # only the main process prints
        self._every = {"validating": training.validate_every, "saving": training.save_every}
        self._phase_seconds: dict[str, float] = {}  # how long a phase of each kind takes
        self._steps: deque[tuple[float, int]] = deque(maxlen=_WINDOW)  # seconds and tokens of each
        self._mark = monotonic()  # the end of the last step or phase
        self._last_line = 0.0
        self._bar: Any = _bar() if is_shown and sys.stderr.isatty() else None
        if self._bar is not None:
            self._task = self._bar.add_task("training", total=self.last_step, completed=first_step, figures="")
            self._bar.start()

    def print(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)
        elif self.is_shown:
            print_status(text)

    def step(self, number: int, result: StepResult) -> None:
        now = monotonic()
        self._steps.append((now - self._mark, result.tokens))
        self._mark = now
        loss, rate = f"loss {result.loss:.3f}", f"lr {result.learning_rate:.2e}"
        figures = f"{self.tokens_per_second():,.0f} tokens/s · {self.time_left(number)}"
        if self._bar is not None:  # the learning rate does not fit into 80 columns
            self._bar.update(self._task, completed=number, figures=f"{loss} · {figures}")
        elif self._is_due() or number == self.last_step:
            self._last_line = now
            self.print(f"step {number:,}/{self.last_step:,} · {loss} · {rate} · {figures}")

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[Report]:
        """Show the progress of a pause in training (`validating`, `saving`) and time it."""
        began = monotonic()
        if self._bar is None:
            yield lambda done, total: self._print_phase(name, done, total)
        else:
            task = self._bar.add_task(name, total=None, figures="")
            yield lambda done, total: self._bar.update(task, completed=done, total=total)
            self._bar.remove_task(task)
        self._mark = monotonic()
        taken, before = self._mark - began, self._phase_seconds.get(name)
        self._phase_seconds[name] = taken if before is None else (before + taken) / 2

    def samples(self, samples: list[Sample]) -> None:
        """Print a few translations, three lines each."""
        for sample in samples:
            lines = zip(("source", "translation", "reference"), sample, strict=True)
            self.print("\n".join(["", *(f"  {name:11}  {_shortened(text)}" for name, text in lines)]))

    def tokens_per_second(self) -> float:
        """Return real target tokens per second over the last steps, without pauses."""
        seconds = sum(seconds for seconds, _ in self._steps)
        return sum(tokens for _, tokens in self._steps) / seconds if seconds > 0 else 0.0

    def seconds_left(self, number: int) -> float:
        """Return the time of the steps, validations and saves that remain after `number`."""
        left = self.last_step - number
        steps = left * sum(seconds for seconds, _ in self._steps) / len(self._steps) if self._steps else 0.0
        return steps + sum(
            self._phase_seconds.get(name, 0.0) * _times(every, number, self.last_step)
            for name, every in self._every.items()
        )

    def time_left(self, number: int) -> str:
        """Return "1:05 left", or "over 1:05 left" until a validation has been timed."""
        unknown = "validating" not in self._phase_seconds
        return f"{'over ' * unknown}{format_duration(self.seconds_left(number))} left"

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _print_phase(self, name: str, done: int, total: int) -> None:
        if self._is_due():
            self._last_line = monotonic()
            self.print(f"{name} · {done:,} of {total:,}")

    def _is_due(self) -> bool:
        return monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES


def _times(every: int, step: int, last_step: int) -> int:
    """Count the multiples of `every` from `step` on, and the last step."""
    return last_step // every - (step - 1) // every + (last_step % every > 0)


def _shortened(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text)
    return printable if len(printable) <= _LONGEST else f"{printable[: _LONGEST - 1]}…"


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Column

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=4)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[figures]}", table_column=Column(no_wrap=True)),
    )

    class Quiet(Console):
        """A console for a pipe that may close; rich would exit with code 1 and no message."""

        def on_broken_pipe(self) -> None:
            self.quiet = True

    return Progress(*columns, console=Quiet(stderr=True), expand=True)
