"""Ctrl-C on the command line."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

EXIT_CODE = 128 + signal.SIGINT


class InterruptHandler:
    """Context manager that handles SIGINT. `interrupted` tells whether one arrived.

    Libraries discard a KeyboardInterrupt or turn it into another error, above all while they are imported. Nothing has
    been written then, so the process ends at once; only after `start_raising` is KeyboardInterrupt raised.
    """

    def __init__(self, ends_process: bool) -> None:
        """`ends_process`: the process ends after the block.

        SIGINT is ignored from then on, as all work is done.
        """
        self.interrupted = False
        self._ends_process = ends_process
        self._is_raising = False
        # Do nothing where SIGINT is ignored (background jobs) or the application handles it.
        self._is_active = threading.current_thread() is threading.main_thread() and (
            signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )

    def __enter__(self) -> InterruptHandler:
        if self._is_active:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_active:
            signal.signal(signal.SIGINT, signal.SIG_IGN if self._ends_process else signal.default_int_handler)

    def start_raising(self) -> None:
        self._is_raising = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._is_raising:
            os._exit(EXIT_CODE)
        self.interrupted = True
        raise KeyboardInterrupt
