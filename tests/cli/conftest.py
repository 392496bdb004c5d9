"""A small finished run, its text, and heedful called in this process."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import pytest

import synthetic_tasks as tasks
from heedful.cli.main import main
from synthetic_tasks import Outcome, Program


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished RUN. Read-only."""
    return tasks.tiny_run(tmp_path_factory) / "run"


@pytest.fixture(scope="session")
def model(tiny_run: Path) -> Path:
    return tiny_run / "model"


@pytest.fixture(scope="session")
def corpus(tiny_run: Path) -> dict[str, str]:
    return tasks.corpus_in(tiny_run.parent / "text")


@pytest.fixture
def own_run(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished RUN that a test may damage."""
    return Path(shutil.copytree(tiny_run, tmp_path / "own"))


@pytest.fixture
def heedful(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return a function that runs a command in this process.

    `heedful("translate", model, stdin=b"…")` returns exit code, standard output and standard error.
    """

    def call(*arguments: str | Path, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as left:  # --help and --version
            code = int(left.code or 0)
        return Outcome(code, *capsys.readouterr())

    return call
