"""Formatting of counts, durations and shell commands."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from heedful.formatting import format_duration, next_commands, plural, rough_duration, shell_command


@pytest.mark.parametrize(("count", "text"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (1_000, "1,000 lines")])
def test_singular_and_plural(count: int, text: str) -> None:
    assert plural(count, "line") == text


def test_irregular_plural() -> None:
    assert [plural(count, "batch", "batches") for count in (1, 2)] == ["1 batch", "2 batches"]


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3600, "1:00:00")])
def test_duration_format(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_command_can_be_pasted_into_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/somewhere/__main__.py"])
    monkeypatch.chdir(tmp_path)
    inside, outside = tmp_path / "my runs" / "it's", tmp_path.parent / "elsewhere"
    assert shlex.split(shell_command("translate", inside)) == ["heedful", "translate", "my runs/it's"]
    assert shlex.split(shell_command("info", outside)) == ["heedful", "info", str(outside)]


def test_program_outside_path_keeps_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("sys.argv", [".venv/bin/heedful"])
    assert shell_command("serve", Path("runs/x")) == ".venv/bin/heedful serve runs/x"
    assert [line.split()[1] for line in next_commands(Path("runs/x"))] == ["translate", "evaluate", "serve"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 seconds"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (840, "14 minutes"),
        (9_000, "2.5 hours"),
        (1e8, "3.2 years"),
    ],
)
def test_rough_duration(seconds: float, text: str) -> None:
    assert rough_duration(seconds) == text
