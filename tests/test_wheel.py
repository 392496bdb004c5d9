"""The wheel: builds, has what it must, and works outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import heedful
import synthetic_tasks as tasks

ROOT = Path(__file__).resolve().parent.parent


def pip(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(directory: Path) -> None:
        done = pip("wheel", "--no-deps", "--wheel-dir", directory, ROOT)
        if done.returncode:
            offline = "No matching distribution" in done.stderr or "Could not find a version" in done.stderr
            if offline:
                pytest.skip("the build backend cannot be had: no package registry")
            pytest.fail(done.stderr)

    [path] = tasks.once(tmp_path_factory, "wheel", build).glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(directory: Path) -> None:
        done = pip("install", "--no-deps", "--no-index", "--target", directory, wheel)
        assert done.returncode == 0, done.stderr

    return tasks.once(tmp_path_factory, "installed", build)


def outside(installed: Path, cwd: Path, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Python in another directory, with the installed package first on its path."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment, input=stdin, capture_output=True, text=True, check=False)


def test_wheel_contains_only_the_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"heedful", f"heedful-{heedful.__version__}.dist-info"}
    assert "heedful/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any("test" in Path(name).name or name.endswith(".pyc") for name in names)
    files = [path for ending in ("py", "html", "css", "js") for path in (ROOT / "src").rglob(f"*.{ending}")]
    assert {path.relative_to(ROOT / "src").as_posix() for path in files} <= set(names)


def test_wheel_declares_its_dependencies(wheel: Path) -> None:
    metadata = zipfile.ZipFile(wheel).read(f"heedful-{heedful.__version__}.dist-info/METADATA").decode()
    assert "Requires-Python: >=3.11" in metadata
    for name in ("torch", "numpy", "sentencepiece", "safetensors", "sacrebleu"):
        assert f"Requires-Dist: {name}" in metadata
    assert (
        "heedful = heedful.cli.main:main"
        in zipfile.ZipFile(wheel).read(f"heedful-{heedful.__version__}.dist-info/entry_points.txt").decode()
    )


def test_works_outside_the_checkout(installed: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    where = outside(installed, tmp_path, "-c", "import heedful; print(heedful.__file__)")
    assert where.stdout.strip() == str(installed / "heedful" / "__init__.py")
    version = outside(installed, tmp_path, "-m", "heedful", "--version")
    assert (version.returncode, version.stdout) == (0, f"heedful {heedful.__version__}\n")
    model = tasks.tiny_run(tmp_path_factory) / "run" / "model"
    done = outside(installed, tmp_path, "-m", "heedful", "translate", model, stdin="a b c\n\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[1:] == ["", ""]
    assert done.stdout.split("\n")[0] == heedful.load(model).translate("a b c").text
