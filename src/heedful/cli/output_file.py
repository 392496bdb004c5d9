"""Checks of the output path that a user gives."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from heedful.atomic_files import real_path
from heedful.errors import UsageError
from heedful.storage.file_names import MARKER
from heedful.storage.ownership import is_ours, require_outside_models


def require_not_in_a_model(path: Path, option: str = "--output") -> None:
    """Raise UsageError if writing `path` would change a model or replace a part of a run."""
    require_outside_models(path, option)
    path = real_path(path)
    marked = next((one for one in path.parents if (one / MARKER).exists()), None)
    if marked is not None and not is_ours(marked) and os.path.lexists(path):
        raise UsageError(f"`{option} {path}` is one of the files that heedful wrote in {marked}. Choose another path.")


def require_page(path: Path, option: str = "--out", inputs: Iterable[str] = ()) -> None:
    """Raise UsageError if an HTML page cannot or must not be written to `path`."""
    if path.suffix != ".html":
        raise UsageError(f'`{option}` must end in .html, not "{path}".')
    require_not_an_input(path, option, inputs)
    require_not_in_a_model(path, option)
    if not path.parent.is_dir():
        raise UsageError(f"Cannot write {path}: directory {path.parent} does not exist. Create it first.")


def require_not_an_input(path: Path, option: str, inputs: Iterable[str]) -> None:
    """Raise UsageError if `path` is one of the input files, under this name or another."""
    if path.is_file() and any(Path(name).is_file() and path.samefile(name) for name in inputs):
        raise UsageError(f"`{option} {path}` is one of the input files. Choose another name.")
