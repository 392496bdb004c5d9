"""A small finished run, shared by the tests of this package."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import synthetic_tasks as tasks


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished RUN. Read-only."""
    return tasks.tiny_run(tmp_path_factory) / "run"


@pytest.fixture
def own_run(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished RUN that a test may damage."""
    return Path(shutil.copytree(tiny_run, tmp_path / "own"))
