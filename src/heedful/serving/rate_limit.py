"""Rate limiting per client, in bounded memory."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

MAX_CLIENTS = 10_000
_WINDOW = 60.0  # seconds


class RateLimiter:
    """Counts each client's requests in a one-minute window from the first request."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit, self.clock = limit, clock
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()  # client: (end, requests); oldest first

    def seconds_to_wait(self, client: str) -> int:
        """Count a request.

        Return 0 if it is within the limit, otherwise the seconds until the next window.
        """
        now = self.clock()
        self._forget(now)
        end, requests = self._windows.get(client, (now + _WINDOW, 0))
        if requests >= self.limit:
            return max(1, math.ceil(end - now))
        self._windows[client] = (end, requests + 1)
        return 0

    def _forget(self, now: float) -> None:
        """Drop expired windows, and the oldest one if there are too many clients."""
        while self._windows:
            end, _ = next(iter(self._windows.values()))
            if end > now and len(self._windows) < MAX_CLIENTS:
                return
            self._windows.popitem(last=False)

    def __len__(self) -> int:
        return len(self._windows)
