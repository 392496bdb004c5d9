"""Verify the digests of token stores when a run resumes.

Reading every byte takes seconds per gigabyte, so a store is read again only if the sizes, times or inodes of its files
are not those of the last check, which the run records in `data/verified.json`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from heedful.atomic_files import read_at_most, write_durably
from heedful.errors import CorpusError
from heedful.manifest import MOST_JSON, verify_manifest

_ADVICE = "Without a copy, start the run again with another `--out`: it cannot resume exactly on other tokens."


def record_verified(record: Path, directories: Sequence[Path]) -> None:
    """Record the stamps of directories whose files have just been written or verified."""
    stamps = {str(directory): _stamp(directory) for directory in directories}
    write_durably(record, json.dumps(stamps, indent=1).encode())


def require_undamaged_stores(record: Path, directories: Sequence[Path]) -> None:
    """Record the stamps of a token store's files; raise CorpusError if a byte has changed."""
    known = _recorded(record)
    changed = [directory for directory in directories if known.get(str(directory)) != _stamp(directory)]
    for directory in changed:
        try:
            verify_manifest(directory, (), CorpusError)
        except CorpusError as error:
            raise CorpusError(f"{error} {_ADVICE}") from None
    if changed:
        record_verified(record, directories)


def _recorded(record: Path) -> dict[str, str]:
    """Return directory → stamp of the last check; empty if there was none."""
    try:
        stamps = json.loads(read_at_most(record, MOST_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return stamps if isinstance(stamps, dict) else {}


def _stamp(directory: Path) -> str:
    """Return names, sizes, times and inodes of the files; a write changes them."""
    try:
        known = [(path.name, path.stat()) for path in sorted(directory.iterdir())]
    except OSError:
        return ""
    return " ".join(f"{name}:{one.st_size}:{one.st_mtime_ns}:{one.st_ctime_ns}:{one.st_ino}" for name, one in known)
