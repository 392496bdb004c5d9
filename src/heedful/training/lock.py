"""One trainer a run: a lock that the system itself lets go when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from heedful.errors import CheckpointError
from heedful.files import disk_errors
from heedful.storage.run_directory import RunDirectory


@contextmanager
def locked(run: RunDirectory) -> Iterator[None]:
    with disk_errors(run.path):
        run.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(run.lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            raise CheckpointError(
                f"Another process (number {holder or 'unknown'}) is training in {run.path}. "
                "Wait for it, stop it, or choose another --out."
            ) from None
        with disk_errors(run.lock):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
