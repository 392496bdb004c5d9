"""Exact tensor memory from torch's profiler, which records every allocation and release."""

from __future__ import annotations

from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile


def allocated(compute: Callable[[], object]) -> tuple[int, int]:
    """Return the peak of newly allocated bytes, and the bytes still allocated at the end."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        kept = compute()
    events = [event for event in watched.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    del kept
    return most, held
