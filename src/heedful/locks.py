"""File locks that the kernel releases when their holder dies."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


def take_lock(path: Path) -> int | None:
    """Open a file, create it if needed, and lock it.

    Return its descriptor, or None if another process has the lock.

    Closing the descriptor releases the lock. A link is not followed.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        # The previous holder may have removed the file in the meantime: then this lock protects nothing.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False)):
                return descriptor
        os.close(descriptor)
