"""Checks of the output path that a user gives."""

from __future__ import annotations

import os
from pathlib import Path

from heedful.errors import UsageError
from heedful.storage.file_names import MANIFEST, MARKER
from heedful.storage.ownership import is_ours
from heedful.storage.run_directory import RunDirectory


def require_not_in_a_model(path: Path, option: str = "--output") -> None:
    """Raise UsageError if writing `path` would replace a file of a model or run, or modify a model directory."""
    directory = path.parent.resolve()
    if (directory / MANIFEST).exists():
        raise UsageError(f"{option} {path} is inside {path.parent}, a model or checkpoint. Choose another path.")
    run = next((one for one in (directory, *directory.parents) if (one / MARKER).exists()), None)
    if run is not None and not _is_users(directory / path.name, run):
        raise UsageError(f"{option} {path} is one of the files that heedful wrote in {run}. Choose another path.")


def _is_users(path: Path, run: Path) -> bool:
    """Return whether the user may write here: any file next to a run's own entries, elsewhere only new ones."""
    if not is_ours(run):
        return not os.path.lexists(path)
    entry = path.relative_to(run).parts[0]
    return entry not in {MARKER, *(own.name for own in RunDirectory(run).entries())}
