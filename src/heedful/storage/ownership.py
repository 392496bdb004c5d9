"""What heedful may replace or delete: only what it wrote itself.

A directory belongs to heedful if its MANIFEST.json lists every file in it. Outside a run, the files must also match the
manifest. A run belongs to heedful if it has the marker that a trainer writes first; inside a run, damaged files may be
replaced. Links are never followed to replace or delete anything: the run directory itself may be a link, but a link
inside it is an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from heedful.atomic_files import holds_only, is_empty, read_at_most, real_path, write_durably
from heedful.errors import InputError, UsageError
from heedful.manifest import MANIFEST, read_manifest, verify_manifest
from heedful.storage.file_names import CTRANSLATE2_WEIGHTS, MARKER, RUN_ENTRIES, WEIGHTS
from heedful.version import __version__

RUN, LAB = "run", "lab"
_LONGEST = 128  # bytes of a marker, padded to this length so that one write replaces it whole


def claim(directory: Path, kind: str) -> None:
    """Mark a new or empty directory as heedful's; raise UsageError for any unmarked one."""
    if is_ours(directory, kind):
        return
    if os.path.lexists(directory) and not is_empty(directory):
        raise UsageError(
            f"{directory} already exists, and heedful did not write it. Choose another `--out`, or move it elsewhere."
        )
    write_durably(directory / MARKER, marker_bytes(kind))


def is_ours(directory: Path, kind: str = RUN) -> bool:
    """Return whether the directory has heedful's marker."""
    marker = directory / MARKER
    try:
        content = json.loads(read_at_most(marker, 2 * _LONGEST)) if not marker.is_symlink() else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("heedful") == kind


def marker_bytes(kind: str = RUN) -> bytes:
    """Return a marker's content: the kind of directory and the last process that wrote to it."""
    content = {"heedful": kind, "version": __version__, "process": os.getpid()}
    return json.dumps(content).ljust(_LONGEST - 1).encode() + b"\n"


def may_replace(directory: Path, names: Collection[str]) -> bool:
    """Return whether heedful wrote every file in this directory.

    Only then may a new version replace it.
    """
    if not holds_only(directory, {*names, MANIFEST}):
        return False
    return _is_listed(directory, may_be_damaged=directory.name in RUN_ENTRIES and is_ours(directory.parent))


def _is_listed(directory: Path, may_be_damaged: bool) -> bool:
    """Return whether the manifest lists every file.

    If files may be damaged, they may also be missing.
    """
    try:
        listed = set(read_manifest(directory, InputError))
        if not may_be_damaged:
            verify_manifest(directory, tuple(listed), InputError)
    except InputError:
        return False
    return {path.name for path in directory.iterdir()} <= {*listed, MANIFEST}


def require_outside_models(path: Path, option: str = "--out") -> None:
    """Raise UsageError for a path inside a model or checkpoint, or for an entry of a run.

    A model of another tool may get new files.
    """
    path = real_path(path)
    is_others = any((path.parent / name).exists() for name in (WEIGHTS, CTRANSLATE2_WEIGHTS))
    if (path.parent / MANIFEST).exists() or (is_others and os.path.lexists(path)):
        raise UsageError(f"`{option} {path}` is inside {path.parent}, a model or checkpoint. Choose another path.")
    run = next((one for one in path.parents if is_ours(one)), None)
    if run is not None and path.relative_to(run).parts[0] in (MARKER, *RUN_ENTRIES):
        raise UsageError(f"`{option} {path}` is one of the files that heedful wrote in {run}. Choose another path.")


def require_no_links(paths: Iterable[Path]) -> None:
    """Raise UsageError for the first of these paths that is a symbolic link."""
    for path in paths:
        if path.is_symlink():
            raise UsageError(
                f"{path} is a symbolic link. heedful does not follow links inside a run. "
                "Replace the link with the directory itself, or make the whole run directory a link."
            )
