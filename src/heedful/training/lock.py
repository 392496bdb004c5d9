"""One trainer per run: a lock that the kernel releases when its holder dies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from heedful.atomic_files import disk_errors, flush, read_at_most
from heedful.errors import CheckpointError
from heedful.locks import take_lock
from heedful.storage.ownership import marker_bytes
from heedful.storage.run_directory import RunDirectory


@contextmanager
def locked(run: RunDirectory) -> Iterator[None]:
    """Claim a run directory: check that it is heedful's or empty, mark it, and lock it.

    A start that fails before the run has a config.toml leaves the directory as it was.
    """
    run.require_own()
    created = [path for path in (run.path, *run.path.parents) if not path.exists()]
    with disk_errors(run.path):
        run.path.mkdir(parents=True, exist_ok=True)
    descriptor = None
    try:
        descriptor = _open_and_lock(run)
        with disk_errors(run.marker):
            os.pwrite(descriptor, marker_bytes(), 0)
            os.fsync(descriptor)
            flush(run.path)
        yield
    finally:
        # Without a descriptor another process has the lock, and the files are its own.
        if descriptor is not None:
            if not run.config.exists():
                run.clear_failed_start()
                run.marker.unlink(missing_ok=True)
            os.close(descriptor)
        with suppress(OSError):  # not empty: it is a run now
            for path in created:
                path.rmdir()


def _open_and_lock(run: RunDirectory) -> int:
    """Lock the marker, or raise CheckpointError with the PID of the lock's holder."""
    with disk_errors(run.marker):
        descriptor = take_lock(run.marker)
    if descriptor is None:
        raise CheckpointError(
            f"Another process (PID {_holder(run)}) is training in {run.path}. "
            "Wait for it to finish, stop it, or choose another `--out`."
        )
    return descriptor


def _holder(run: RunDirectory) -> str:
    try:
        return str(json.loads(read_at_most(run.marker, 1_000))["process"])
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown"
