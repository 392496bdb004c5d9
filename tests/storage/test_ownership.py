"""heedful replaces and deletes only what it wrote."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.errors import UsageError
from heedful.manifest import write_manifest
from heedful.storage.file_names import MARKER
from heedful.storage.model_directory import is_model
from heedful.storage.ownership import LAB, claim, is_ours, marker_bytes, may_replace
from heedful.storage.run_directory import RunDirectory

NAMES = ("a", "b")


def written(directory: Path) -> Path:
    """As heedful writes a directory: two files and their manifest."""
    directory.mkdir(parents=True)
    for name in NAMES:
        (directory / name).write_text(name)
    write_manifest(directory)
    return directory


def test_a_directory_with_its_manifest_may_be_replaced(tmp_path: Path) -> None:
    assert may_replace(written(tmp_path / "x"), NAMES)


CHANGES: dict[str, Callable[[Path], object]] = {
    "another file": lambda path: (path / "notes").write_text("mine"),
    "another directory": lambda path: (path / "sub").mkdir(),
    "an edited file": lambda path: (path / "a").write_text("mine"),
    "a missing file": lambda path: (path / "a").unlink(),
    "a file that is not listed": lambda path: [
        (path / "MANIFEST.json").unlink(),
        (path / "b").rename(path / "c"),
        write_manifest(path),
        (path / "c").rename(path / "b"),
    ],
    "no manifest": lambda path: (path / "MANIFEST.json").unlink(),
    "the manifest of another tool": lambda path: (path / "MANIFEST.json").write_text(json.dumps({"files": ["a", "b"]})),
    "a link instead of a file": lambda path: [(path / "a").rename(path.parent / "a"), (path / "a").symlink_to("../a")],
    "a link to the manifest": lambda path: [
        (path / "MANIFEST.json").rename(path.parent / "m"),
        (path / "MANIFEST.json").symlink_to("../m"),
    ],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_directory_may_not_be_replaced(tmp_path: Path, change: Callable[[Path], object]) -> None:
    path = written(tmp_path / "x")
    change(path)
    assert not may_replace(path, NAMES)


def test_link_to_a_directory_may_not_be_replaced(tmp_path: Path) -> None:
    written(tmp_path / "x")
    (tmp_path / "link").symlink_to("x")
    assert not may_replace(tmp_path / "link", NAMES)
    assert not may_replace(tmp_path / "nothing", NAMES)


def test_a_damaged_directory_of_a_run_may_be_replaced(tmp_path: Path) -> None:
    """A truncated or missing file: the marker of the run and the manifest say whose it is."""
    (tmp_path / MARKER).write_bytes(marker_bytes())
    path = written(tmp_path / "best")
    (path / "a").write_text("")
    assert may_replace(path, NAMES)
    (path / "a").unlink()
    assert may_replace(path, NAMES)
    (path / "notes").write_text("mine")
    assert not may_replace(path, NAMES)


@pytest.mark.parametrize("manifest", [None, "{", '{"files": {}, "digest": ""}'])
def test_the_names_of_files_in_a_run_prove_nothing(tmp_path: Path, manifest: str | None) -> None:
    """The user's own files, under the names that heedful uses, in a run of heedful's."""
    (tmp_path / MARKER).write_bytes(marker_bytes())
    path = tmp_path / "model"
    path.mkdir()
    (path / "a").write_text("mine")
    if manifest is not None:
        (path / "MANIFEST.json").write_text(manifest)
    assert not may_replace(path, NAMES)


@pytest.mark.parametrize(
    "content", [b"", b"mine", b"{}", b"[]", b'{"heedful": "lab"}', b"[" * 200, b"x" * 10_000, b"\xff"]
)
def test_other_markers_prove_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MARKER).write_bytes(content)
    assert not is_ours(tmp_path)


def test_a_marker_that_is_a_link_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(marker_bytes())
    (tmp_path / MARKER).symlink_to("m")
    assert not is_ours(tmp_path)


def test_marker_names_the_kind_and_the_process() -> None:
    content = json.loads(marker_bytes())
    assert (content["heedful"], content["process"]) == ("run", os.getpid())
    assert len(marker_bytes()) == len(marker_bytes(LAB))


def test_a_directory_is_claimed_once_and_for_good(tmp_path: Path) -> None:
    claim(tmp_path / "new", LAB)
    (tmp_path / "new" / "report.md").write_text("ours")
    claim(tmp_path / "new", LAB)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.md").write_text("mine")
    with pytest.raises(UsageError, match="exists, and heedful did not write it"):
        claim(tmp_path / "mine", LAB)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError):
        claim(tmp_path / "link", LAB)
    assert not (tmp_path / "nowhere").exists()


def test_a_copy_without_the_marker_is_not_trained_on(tiny_run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny_run, tmp_path / "copy", ignore=shutil.ignore_patterns(MARKER)))
    with pytest.raises(
        UsageError, match=r"looks like a run, but its marker file \.heedful is missing.*copy this hidden file too"
    ):
        RunDirectory(copy).require_own()
    shutil.copy(tiny_run / MARKER, copy)
    RunDirectory(copy).require_own()


@pytest.mark.parametrize("name", ["model", "best", "checkpoints", "data", "log.jsonl", "checkpoints/step-00000004"])
def test_links_inside_a_run_are_rejected(tiny_run: Path, tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copytree(tiny_run, tmp_path / "copy"))
    (copy / name).rename(tmp_path / "elsewhere")
    (copy / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=f"{name} is a symbolic link. heedful does not follow links inside a run"):
        RunDirectory(copy).require_own()


@pytest.mark.parametrize("name", ["model", "best"])
def test_foreign_files_in_a_run_are_detected_at_the_start(tiny_run: Path, tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copytree(tiny_run, tmp_path / "copy"))
    assert is_model(copy / name)
    (copy / name / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=f"{name} was not written by heedful"):
        RunDirectory(copy).require_own()
