"""Text that several commands print: counts, durations, and shell commands to copy."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path


def plural(count: int, noun: str, several: str = "") -> str:
    """Return "1 line", "2 lines", "1,000 lines"; `several` is an irregular plural."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def format_duration(seconds: float) -> str:
    """Return a duration as 4:05, or 1:02:03 from one hour."""
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{whole:02d}" if hours else f"{minutes}:{whole:02d}"


def rough_duration(seconds: float) -> str:
    """Return a duration in the largest unit that gives at least 2, such as "14 minutes"."""
    for unit, length in (("years", 365 * 86_400), ("days", 86_400), ("hours", 3_600)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    if seconds >= 120:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds:.0f} seconds"


def shell_command(*arguments: str | Path) -> str:
    """Return a command to paste into a shell: relative paths, the program as it was started."""
    called = Path(os.path.relpath(sys.argv[0]))
    # A program outside PATH is given with its path; `python -m heedful` and other callers are not.
    program = str(called) if called.name == "heedful" and not shutil.which("heedful") else "heedful"
    return " ".join([program, *(shlex.quote(str(_from_here(one))) for one in arguments)])


def next_commands(model: Path) -> Iterator[str]:
    """Yield the commands to run next with a trained model."""
    yield shell_command("translate", model)
    yield f"{shell_command('evaluate', model)} --source FILE --reference FILE"
    yield shell_command("serve", model)


def _from_here(argument: str | Path) -> str | Path:
    """Return a path below the working directory as a relative path."""
    if isinstance(argument, Path) and argument.is_absolute() and argument.is_relative_to(Path.cwd()):
        return argument.relative_to(Path.cwd())
    return argument
