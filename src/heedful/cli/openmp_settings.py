"""How OpenMP's threads wait for each other while a command trains."""

from __future__ import annotations

from collections.abc import MutableMapping

_TRAINS = ("demo", "lab", "train")
_WAITING = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY", "OMP_WAIT_POLICY")
# Enough to span the gaps between two parallel regions of an update, but not another process's time slice.
# Decoding has longer gaps, where a count this low costs up to a quarter of the speed (docs/results/performance.md).
_SPIN_COUNT = 1_000


def set_spin_count(command: str, environ: MutableMapping[str, str]) -> None:
    """Let the threads of a training command sleep sooner, unless the user has chosen how they wait.

    Call it before torch is imported: libgomp reads the variable when it is loaded.
    """
    if command in _TRAINS and not any(name in environ for name in _WAITING):
        environ["GOMP_SPINCOUNT"] = str(_SPIN_COUNT)
