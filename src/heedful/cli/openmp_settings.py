"""The spin count of OpenMP threads in commands that train or decode in batches."""

from __future__ import annotations

from collections.abc import MutableMapping

_COMMANDS = ("compare", "demo", "evaluate", "lab", "train", "translate")
_WAITING = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY", "OMP_WAIT_POLICY")
# Long enough to bridge the gap between two parallel regions, and shorter than the time slice of another process.
# Decoding single sentences, as `serve` does, has longer gaps: there no count is fast on both an idle and a busy
# machine (docs/results/performance.md).
_SPIN_COUNT = 4_000


def set_spin_count(command: str, environ: MutableMapping[str, str]) -> None:
    """Make the threads of these commands sleep sooner, unless the user has set a wait policy.

    Call it before torch is imported: libgomp reads the variable when it is loaded.
    """
    if command in _COMMANDS and not any(name in environ for name in _WAITING):
        environ["GOMP_SPINCOUNT"] = str(_SPIN_COUNT)
