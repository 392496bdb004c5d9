"""Read .zst files with the optional package `zstandard`, in bounded memory."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, Any

from heedful.errors import UsageError

_READ = 1_024  # bytes at a time: a block of 4 bytes can expand to 128 KB


class _Reader(io.RawIOBase):
    """The decompressed content of zstd frames; raises EOFError if the last is truncated."""

    def __init__(self, file: IO[bytes], library: Any) -> None:
        self._file, self._library = file, library
        self._frame = self._new_frame()
        self._started = False
        self._ready = b""

    def _new_frame(self) -> Any:
        return self._library.ZstdDecompressor().decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            content = self._file.read(_READ)
            if not content:
                if self._started:
                    raise EOFError("compressed file ended before the end-of-stream marker was reached")
                return 0
            self._decompress(content)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _decompress(self, content: bytes) -> None:
        parts = []
        while content:
            self._started = True
            try:
                parts.append(self._frame.decompress(content))
            except self._library.ZstdError as error:
                raise OSError(f"not valid zstd data: {error}") from None
            content = b""
            if self._frame.eof:
                content, self._started = self._frame.unused_data, False
                self._frame = self._new_frame()
        self._ready = b"".join(parts)

    def close(self) -> None:
        self._file.close()
        super().close()


def open_zstandard(path: Path) -> IO[bytes]:
    try:
        import zstandard
    except ImportError:
        raise UsageError(
            f"{path} is compressed with zstd, which needs the package zstandard. Install it: "
            "pip install 'heedful[zstd]'. Or decompress the file: zstd -d FILE"
        ) from None
    return io.BufferedReader(_Reader(path.open("rb"), zstandard), 1 << 17)
