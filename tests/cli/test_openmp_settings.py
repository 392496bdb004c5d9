"""Training and batch decoding set the OpenMP spin count before libgomp loads.

The library never sets it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from heedful.cli.openmp_settings import set_spin_count

WAITING = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY", "OMP_WAIT_POLICY")


def python(arguments: Sequence[str | Path], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a process whose environment sets no OpenMP wait policy except `variables`."""
    kept = {name: value for name, value in os.environ.items() if name not in WAITING}
    return subprocess.run(
        [sys.executable, *arguments], env={**kept, **variables}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", ["compare", "demo", "evaluate", "lab", "train", "translate"])
def test_commands_that_compute_in_batches_set_the_spin_count(command: str) -> None:
    environ = {"OMP_NUM_THREADS": "2", "PATH": "/bin"}
    set_spin_count(command, environ)
    assert int(environ.pop("GOMP_SPINCOUNT")) < 300_000  # libgomp's own
    assert environ == {"OMP_NUM_THREADS": "2", "PATH": "/bin"}


@pytest.mark.parametrize("command", ["score", "serve", "attend", "info", "export"])
def test_other_commands_set_nothing(command: str) -> None:
    environ: dict[str, str] = {}
    set_spin_count(command, environ)
    assert environ == {}


@pytest.mark.parametrize("name", WAITING)
def test_user_setting_is_kept(name: str) -> None:
    for value in ("0", ""):
        environ = {name: value}
        set_spin_count("train", environ)
        assert environ == {name: value}


def dry_run(tmp_path: Path, **variables: str) -> str:
    """libgomp prints its settings when `heedful train` loads it."""
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[data]\nbuiltin = true\nbuiltin_pairs = 100\n[model]\nN = 1\nd_model = 16\nh = 2\n")
    arguments = ["-m", "heedful", "train", recipe, "--dry-run", "--out", tmp_path / "run"]
    done = python(arguments, OMP_DISPLAY_ENV="verbose", **variables)
    assert done.returncode == 0, done.stderr
    assert "GOMP_SPINCOUNT" in done.stderr, "torch is built with another OpenMP: this test has to change"
    return done.stderr


def test_libgomp_reads_it_as_torch_is_imported(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    set_spin_count("train", environ)
    assert f"GOMP_SPINCOUNT = '{environ['GOMP_SPINCOUNT']}'" in dry_run(tmp_path)
    assert "GOMP_SPINCOUNT = '77'" in dry_run(tmp_path, GOMP_SPINCOUNT="77")


def test_library_call_sets_nothing() -> None:
    program = (
        "import os; before = dict(os.environ); import heedful; heedful.load, heedful.train; assert os.environ == before"
    )
    done = python(["-c", program])
    assert done.returncode == 0, done.stderr
