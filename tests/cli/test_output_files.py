"""`--output` and `--out` with files that exist, or that another process is writing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from synthetic_tasks import Outcome


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "heedful", *map(str, arguments)]


def run(*arguments: str | Path, **options: object) -> Outcome:
    """The program in a process of its own, with a real standard input."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=600, **options)  # type: ignore[call-overload]
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_two_translations_into_one_file(model: Path, tmp_path: Path) -> None:
    """The first succeeds and the second is refused; the old file stays until the end."""
    out = tmp_path / "out.txt"
    out.write_text("old\n")
    pipe = subprocess.PIPE
    with subprocess.Popen(command("translate", model, "--output", out), stdin=pipe, stderr=pipe, text=True) as first:
        while not list(tmp_path.glob(".unfinished-*")):
            assert first.poll() is None
            time.sleep(0.02)
        second = run("translate", model, "--output", out, input="a\n")
        assert (second.code, second.out) == (2, "")
        assert second.err.startswith(f"heedful: Another process is writing {out}.")
        assert out.read_text() == "old\n"
        first.communicate("a b\nb a\nc\n", timeout=600)
        assert first.returncode == 0
    assert len(out.read_text().splitlines()) == 3
    assert list(tmp_path.iterdir()) == [out]


PROGRAM = """
import os, sys
os.close({closed})
os.execv(sys.executable, [sys.executable, "-m", "heedful", *sys.argv[1:]])
"""


def run_without(closed: int, *arguments: str | Path) -> Outcome:
    """Run the program with one of its standard streams closed."""
    given = [sys.executable, "-c", PROGRAM.format(closed=closed), *map(str, arguments)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_closed_standard_streams(model: Path, tmp_path: Path) -> None:
    """Closed input is empty, closed messages lose nothing, and unwritable output is an error."""
    source = tmp_path / "source.txt"
    source.write_text("a b\nb a\n")
    assert run_without(0, "translate", model) == Outcome(0, "", "")
    assert len(run_without(2, "translate", model, "--input", source).out.splitlines()) == 2
    failed = run_without(1, "translate", model, "--input", source)
    assert failed.code == 3
    assert "bad file descriptor" in failed.err
    assert "Exception" not in failed.err
    with open("/dev/full", "w") as full:
        done = subprocess.run(command("translate", model, "--input", source), stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, b"o space left" in done.stderr, b"Exception" in done.stderr) == (4, True, False)


def test_score_reads_pipes(model: Path, tmp_path: Path) -> None:
    """Each side is read once."""
    side = tmp_path / "side.txt"
    side.write_text("a b\nb a\n")
    script = 'exec "$0" -m heedful score "$1" --source <(cat "$2") --target <(cat "$2")'
    given = ["bash", "-c", script, sys.executable, str(model), str(side)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=600)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)


def test_standard_input_is_not_overwritten(model: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.txt"
    both.write_text("a b\n")
    with both.open() as stdin:
        refused = run("translate", model, "--output", both, stdin=stdin)
    assert (refused.code, both.read_text()) == (2, "a b\n")
    assert f"`--output {both}` is one of the input files" in refused.err
    with both.open() as stdin:
        assert run("translate", model, "--output", tmp_path / "other.txt", stdin=stdin).code == 0
