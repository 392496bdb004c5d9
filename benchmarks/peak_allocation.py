"""Peak tensor memory of a computation. Imports only torch, so that it also runs without heedful."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, profile


def peak_allocated_bytes(compute: Callable[[], object]) -> int:
    """Return the peak bytes of newly allocated tensors: the largest running sum of the profiler's events."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        compute()
    results: Any = watched.profiler.kineto_results  # type: ignore[union-attr]
    events = [event for event in results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most
