"""Machine errors: exit code 4 and one message; a closed progress pipe does not end a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.cli import main as program
from synthetic_tasks import TINY, file_options, set_options


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_full_disk_behind_standard_output() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "heedful", "info", "--preset", "tiny"], stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 4
    assert b"no space left" in done.stderr
    assert b"Traceback" not in done.stderr


def test_out_of_memory_in_a_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes.")

    monkeypatch.setattr(program, "run", fail)
    assert program.main(["info", "--preset", "tiny"]) == 4
    captured = capsys.readouterr()
    assert captured.err.startswith("heedful: Out of memory.")
    assert captured.out == ""


def test_other_errors_of_torch_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(program, "run", fail)
    with pytest.raises(RuntimeError, match="a bug of ours"):
        program.main(["info", "--preset", "tiny"])


def test_run_survives_a_closed_progress_pipe(corpus: dict[str, str], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "heedful", "train", *file_options(corpus), "--out", str(tmp_path / "run")]
    done = subprocess.run([*command, *set_options(TINY)], stdout=subprocess.DEVNULL, stderr=write)
    os.close(write)
    assert done.returncode == 0
    assert (tmp_path / "run" / "model").is_dir()


def test_large_alphabet_needs_no_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1,500 distinct characters in 300 lines, more than the automatic vocabulary size."""
    lines = ["".join(chr(0x4E00 + (7 * line + 5 * place) % 1500) for place in range(20)) for line in range(300)]
    for name in ("source", "target", "valid_source", "valid_target"):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = {key: value for key, value in TINY.items() if key != "data.vocab_size"}
    files = [
        word
        for name in ("source", "target", "valid_source", "valid_target")
        for word in ("--" + name.replace("_", "-"), str(tmp_path / name))
    ]
    assert program.main(["train", *files, "--out", str(tmp_path / "run"), *set_options(settings)]) == 0
    assert "distinct characters" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["foreign", "own"])
def test_average_replaces_only_models(own_run: Path, tmp_path: Path, kind: str) -> None:
    out = own_run / "best"
    if kind == "foreign":
        out = tmp_path / "other"
        out.mkdir()
        (out / "config.json").write_text("{}")
        (out / "precious.txt").write_text("kept")
    before = sorted(path.name for path in out.iterdir())
    assert program.main(["average", str(own_run), "--last", "1", "--out", str(out)]) == 2
    assert sorted(path.name for path in out.iterdir()) == before


def test_unreadable_stderr_keeps_the_exit_code() -> None:
    """A closed stderr (`2>&1 | head`) ended the program with exit code 1 and no word."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([sys.executable, "-m", "heedful", "no-such-command"], stderr=write)
    finally:
        os.close(write)
    assert done.returncode == 2
