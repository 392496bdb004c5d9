"""The request log: one line per request, without text or query strings."""

from __future__ import annotations

import datetime
import queue
import sys
import threading
from contextlib import suppress
from typing import TextIO

_MAX_WAITING = 10_000  # lines
_MAX_PATH = 200  # characters


class RequestLog:
    """Writes in its own thread, so that a blocked pipe does not stop the server.

    Drops lines if the queue is full.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lines: queue.Queue[str | None] = queue.Queue(_MAX_WAITING)
        self._thread = threading.Thread(target=self._write, name="request log", daemon=True)
        self._thread.start()

    def note(self, client: str, method: str, path: str, status: int, seconds: float) -> None:
        when = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        with suppress(queue.Full):
            self._lines.put_nowait(f"{when} {client} {method} {path[:_MAX_PATH]} {status} {1_000 * seconds:.0f} ms\n")

    def close(self) -> None:
        """Write the queued lines, unless the pipe is blocked."""
        with suppress(queue.Full):
            self._lines.put(None, timeout=1)
        self._thread.join(timeout=1)

    def _write(self) -> None:
        with suppress(OSError, ValueError):  # the log was closed
            while (line := self._lines.get()) is not None:
                self._stream.write(line)
                self._stream.flush()
