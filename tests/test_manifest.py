"""MANIFEST.json: every byte of a directory is accounted for, its own bytes too."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import CheckpointError, ModelError
from heedful.manifest import verify_manifest, write_manifest


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "weights").write_bytes(bytes(range(64)))
    (tmp_path / "notes").write_bytes(b"")
    write_manifest(tmp_path, {"precision": "bf16"})
    return tmp_path


def forge(directory: Path, files: Any) -> None:
    """A manifest whose own digest is right, whatever it says."""
    content = {"files": files, "about": {"precision": "bf16"}}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (directory / "MANIFEST.json").write_text(json.dumps({**content, "digest": digest}))


def honest(directory: Path, name: str) -> dict[str, Any]:
    content = (directory / name).read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_manifest_has_size_and_sha256_of_every_file(directory: Path) -> None:
    written = json.loads((directory / "MANIFEST.json").read_text())
    assert written["files"] == {name: honest(directory, name) for name in ("notes", "weights")}


def test_facts_are_recorded(directory: Path) -> None:
    assert json.loads((directory / "MANIFEST.json").read_text())["about"] == {"precision": "bf16"}


def test_own_digest_covers_all_entries(directory: Path) -> None:
    path = directory / "MANIFEST.json"
    written = json.loads(path.read_text())
    forge(directory, written["files"])
    assert json.loads(path.read_text())["digest"] == written["digest"]
    changes: list[dict[str, Any]] = [
        {"files": {"weights": written["files"]["weights"]}},  # what is left is true
        {"about": {"precision": "fp32"}},
        {"about": {}},
        {"more": 1},
    ]
    for change in changes:
        path.write_text(json.dumps({**written, **change}))
        with pytest.raises(ModelError, match="its digest does not match its content"):
            verify_manifest(directory, (), ModelError)


def test_the_order_of_entries_does_not_matter(directory: Path) -> None:
    path = directory / "MANIFEST.json"
    written = json.loads(path.read_text())
    expected = verify_manifest(directory, (), ModelError)
    files = {name: dict(reversed(facts.items())) for name, facts in reversed(written["files"].items())}
    path.write_text(json.dumps({**written, "files": files}))
    assert verify_manifest(directory, (), ModelError) == expected


def test_verification_returns_the_digests(directory: Path) -> None:
    expected = {name: honest(directory, name)["sha256"] for name in ("notes", "weights")}
    assert verify_manifest(directory, ("weights",), ModelError) == expected


def test_every_flipped_bit_of_a_file_is_found(directory: Path) -> None:
    path = directory / "weights"
    sound = path.read_bytes()
    for bit in range(8 * len(sound)):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match="weights is damaged"):
            verify_manifest(directory, (), ModelError)
    path.write_bytes(sound)
    verify_manifest(directory, (), ModelError)


def test_every_flipped_bit_of_the_manifest_is_found(directory: Path) -> None:
    path = directory / "MANIFEST.json"
    sound = path.read_bytes()
    for bit in range(8 * len(sound)):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ModelError):
            verify_manifest(directory, (), ModelError)


@pytest.mark.parametrize("length", [0, 1, 63])
def test_a_truncated_file_is_found_with_both_lengths(directory: Path, length: int) -> None:
    os.truncate(directory / "weights", length)
    with pytest.raises(CheckpointError, match=f"{length} bytes? instead of 64"):
        verify_manifest(directory, (), CheckpointError)


def test_every_truncation_of_the_manifest_is_found(directory: Path) -> None:
    path = directory / "MANIFEST.json"
    sound = path.read_bytes()
    for length in range(len(sound)):
        path.write_bytes(sound[:length])
        with pytest.raises(ModelError):
            verify_manifest(directory, (), ModelError)


def test_missing_files_are_named(directory: Path) -> None:
    with pytest.raises(ModelError, match=r"config\.json is missing from MANIFEST"):
        verify_manifest(directory, ("config.json",), ModelError)
    (directory / "notes").unlink()
    with pytest.raises(ModelError, match="notes is missing"):
        verify_manifest(directory, (), ModelError)
    (directory / "MANIFEST.json").unlink()
    with pytest.raises(ModelError, match=r"MANIFEST\.json is missing"):
        verify_manifest(directory, (), ModelError)


def test_a_json_file_has_at_most_a_million_bytes(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_bytes(b" " * 1_000_000)
    (tmp_path / "weights").write_bytes(bytes(1_000_001))
    write_manifest(tmp_path)
    assert verify_manifest(tmp_path, ("notes.json", "weights"), ModelError).keys() == {"notes.json", "weights"}
    (tmp_path / "notes.json").write_bytes(b" " * 1_000_001)
    write_manifest(tmp_path)
    with pytest.raises(
        ModelError, match=r"notes\.json is too large: 1,000,001 bytes; heedful writes at most 1,000,000"
    ):
        verify_manifest(tmp_path, (), ModelError)


def test_manifest_that_is_a_link_is_rejected(directory: Path) -> None:
    (directory / "MANIFEST.json").rename(directory.parent / "elsewhere")
    (directory / "MANIFEST.json").symlink_to(directory.parent / "elsewhere")
    with pytest.raises(ModelError, match=r"MANIFEST\.json is damaged: not a regular file\."):
        verify_manifest(directory, (), ModelError)


def test_link_is_not_accepted_as_a_file(directory: Path) -> None:
    (directory / "elsewhere").write_bytes(bytes(range(64)))
    (directory / "weights").unlink()
    (directory / "weights").symlink_to("elsewhere")
    with pytest.raises(ModelError, match="not a regular file"):
        verify_manifest(directory, (), ModelError)


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "a/b", "..", ".", ""])
def test_paths_outside_the_directory_are_rejected(directory: Path, name: str) -> None:
    (directory.parent / "outside").write_bytes(b"x")
    forge(directory, {name: {"bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}})
    with pytest.raises(ModelError, match="damaged"):
        verify_manifest(directory, (), ModelError)


@pytest.mark.parametrize(
    "files",
    [
        [],
        "weights",
        None,
        {"weights": None},
        {"weights": 5},
        {"weights": {}},
        {"weights": {"bytes": "64", "sha256": "0"}},
        {"weights": {"bytes": 64, "sha256": None}},
        {"weights": {"bytes": 64}},
    ],
)
def test_forged_content_is_rejected(directory: Path, files: Any) -> None:
    forge(directory, files)
    with pytest.raises(ModelError, match=r"MANIFEST\.json is damaged"):
        verify_manifest(directory, (), ModelError)


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", "5", '{"files": {}}', " " * 2_000_000, "\ufeff{}", "NaN"])
def test_other_json_is_rejected(directory: Path, content: str) -> None:
    (directory / "MANIFEST.json").write_text(content)
    with pytest.raises(ModelError, match=r"MANIFEST\.json is damaged"):
        verify_manifest(directory, (), ModelError)
