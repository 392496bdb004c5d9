"""Storage of translated files until download; only this user can read the directory."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from heedful.serving.batcher import OverloadError
from heedful.serving.limits import Limits


class _Kept(NamedTuple):
    path: Path
    download_name: str
    bytes: int
    timer: asyncio.TimerHandle


class FileStore:
    """Keeps files for `limits.file_seconds`. A context manager: leaving it deletes all files."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._kept: dict[str, _Kept] = {}
        self._reserved = 0

    def __enter__(self) -> FileStore:
        self._directory = tempfile.TemporaryDirectory(prefix="heedful-files-", ignore_cleanup_errors=True)  # mode 0700
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._kept):
            self.delete(name)
        self._directory.cleanup()

    @contextmanager
    def place(self, size: int) -> Iterator[None]:
        """Reserve space while a file of `size` bytes is translated. Raise if there is none."""
        if len(self._kept) + self._reserved >= self.limits.files:
            raise self._full()
        self._check_bytes(size)
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1

    def _check_bytes(self, size: int) -> None:
        if sum(one.bytes for one in self._kept.values()) + size > self.limits.files_bytes:
            raise self._full()

    def _full(self) -> OverloadError:
        now = asyncio.get_running_loop().time()
        oldest = min((one.timer.when() for one in self._kept.values()), default=now)
        return OverloadError(max(1, round(oldest - now)))

    async def add(self, content: bytes, download_name: str) -> str:
        """Store a file and return its unguessable download name."""
        self._check_bytes(len(content))
        name = secrets.token_urlsafe(24) + Path(download_name).suffix
        path = Path(self._directory.name) / name
        timer = asyncio.get_running_loop().call_later(self.limits.file_seconds, self.delete, name)
        self._kept[name] = _Kept(path, download_name, len(content), timer)
        try:
            await asyncio.to_thread(path.write_bytes, content)
        except BaseException:
            self.delete(name)
            raise
        return name

    async def get(self, name: str) -> tuple[bytes, str] | None:
        """Return the file and its display name, or None if it does not exist or has expired."""
        if (kept := self._kept.get(name)) is None:
            return None
        try:
            return await asyncio.to_thread(kept.path.read_bytes), kept.download_name
        except FileNotFoundError:  # deleted in the meantime
            return None

    def delete(self, name: str) -> None:
        kept = self._kept.pop(name)
        kept.timer.cancel()
        kept.path.unlink(missing_ok=True)
