"""SIGINT and SIGTERM: the first lets the step end and saves; a second stops at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from heedful.training.display import say


class StopRequest:
    """`with StopRequest() as stop:` … `stop.signal_number` is set once a signal has come."""

    def __init__(self, is_patient: bool = False) -> None:
        """`is_patient`: a second signal changes nothing. torchrun passes on what its processes may have got already."""
        self.is_patient = is_patient
        self.signal_number: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopRequest:
        # Only the main thread may set handlers; elsewhere whoever owns the process decides.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number is not None:
            if self.is_patient:
                return
            os._exit(128 + number)
        self.signal_number = number
        name = signal.Signals(number).name
        say(f"\n{name}: saving after this step{'' if self.is_patient else '; once more to stop at once'}")
