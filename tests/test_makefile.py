"""What the Makefile's targets do to a user's files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parent.parent / "Makefile"


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_clean_leaves_trained_models(tmp_path: Path) -> None:
    """What setup, tests and docs wrote goes; runs/ holds hours of training, and stays."""
    for name in ("runs/mine/model", "docs/_build", ".pytest_cache"):
        (tmp_path / name).mkdir(parents=True)
    subprocess.run(["make", "-f", MAKEFILE, "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "runs/mine/model").is_dir()
    assert not (tmp_path / "docs/_build").exists()
    assert not (tmp_path / ".pytest_cache").exists()
