"""Handle SIGINT and SIGTERM: the first saves after the step, a second exits immediately."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from heedful.training.display import print_status


class StopRequest:
    """Context manager whose `signal_number` is set when a signal arrives."""

    def __init__(self, is_patient: bool = False) -> None:
        """Ignore further signals if `is_patient`: torchrun may forward the same one again."""
        self.is_patient = is_patient
        self.signal_number: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopRequest:
        # Only the main thread may set handlers; in another thread the application decides.
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
        again = "" if self.is_patient else " Repeat to stop without saving."
        print_status(f"\n{name} received: saving after this step.{again}")
