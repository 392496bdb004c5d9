"""How much memory a computation holds at its peak. Imports torch alone: it also runs where heedful is not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, profile


def peak_allocated_bytes(compute: Callable[[], object]) -> int:
    """Most bytes of tensors held at a time that were not before: the largest running sum of the profiler's notes."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        compute()
    results: Any = watched.profiler.kineto_results  # type: ignore[union-attr]
    events = [event for event in results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most
