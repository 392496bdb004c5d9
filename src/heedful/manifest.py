"""MANIFEST.json: size and SHA-256 of every file in a directory, and a digest of itself.

It also records facts about the directory. Neither safetensors nor JSON detects a flipped bit; the manifest does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.atomic_files import read_at_most
from heedful.errors import InputError, cause
from heedful.formatting import plural

MANIFEST = "MANIFEST.json"
VOCABULARY = "vocab.json"  # of an imported Marian model, which may be larger than other JSON files

MOST_JSON = 1_000_000  # bytes; heedful writes no larger JSON file
_RESTORE = "Copy it again, or restore it from a backup."


def write_manifest(directory: Path, about: Mapping[str, str] | None = None) -> None:
    """Write the manifest of all files in a directory.

    `about` has facts such as the precision of the training.
    """
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted(directory.iterdir())
        if path.name != MANIFEST
    }
    content: dict[str, Any] = {"about": dict(about or {}), "files": files}
    content["digest"] = _digest(content)
    (directory / MANIFEST).write_bytes(json.dumps(content, indent=1).encode())


def verify_manifest(directory: Path, required: tuple[str, ...], error: type[InputError]) -> dict[str, str]:
    """Check every byte and return each file's SHA-256; raise `error` naming a damaged file."""
    files = read_manifest(directory, error)
    for name in required:
        if name not in files:
            raise error(
                f"{directory}: {name} is missing from {MANIFEST}. "
                "The directory is incomplete, or heedful did not write it. Copy it again, or restore it."
            )
    for name, facts in files.items():
        path = directory / name
        if not path.is_file() or path.is_symlink():
            raise error(f"{path} is missing, or is not a regular file. {_RESTORE}")
        size = path.stat().st_size
        if name.endswith(".json") and name != VOCABULARY and size > MOST_JSON:
            raise error(f"{path} is too large: {size:,} bytes; heedful writes at most {MOST_JSON:,}. {_RESTORE}")
        if size != facts["bytes"]:
            raise error(f"{path} is damaged: {plural(size, 'byte')} instead of {facts['bytes']:,}. {_RESTORE}")
        if _sha256(path) != facts["sha256"]:
            raise error(f"{path} is damaged: its SHA-256 does not match {MANIFEST}. {_RESTORE}")
    return {name: facts["sha256"] for name, facts in files.items()}


def read_manifest(directory: Path, error: type[InputError]) -> dict[str, dict[str, Any]]:
    """Return the manifest's entry for each file.

    The files themselves may be damaged; the manifest may not.
    """
    path = directory / MANIFEST
    try:
        if path.is_symlink():
            raise ValueError("not a regular file")
        content = json.loads(read_at_most(path, MOST_JSON).decode())
        files: dict[str, dict[str, Any]] = content["files"]
        entries_fit = all(_is_entry(name, facts) for name, facts in files.items())
        sound = entries_fit and content.pop("digest") == _digest(content)
    except FileNotFoundError:
        raise error(f"{path} is missing: {directory} is incomplete, or heedful did not write it. {_RESTORE}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as reason:
        raise error(f"{path} is damaged: {cause(reason)}. {_RESTORE}") from None
    if not sound:
        raise error(f"{path} is damaged: its digest does not match its content. {_RESTORE}")
    return files


def _is_entry(name: str, facts: dict[str, Any]) -> bool:
    plain = name == Path(name).name and name not in ("..", "")
    kinds = {key: type(value) for key, value in facts.items()}
    return plain and kinds == {"bytes": int, "sha256": str}


def _digest(content: dict[str, Any]) -> str:
    """Return the sha256 of everything in the manifest but the digest itself."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
