"""Wait for the main process without holding a collective open.

Preparing a corpus or validating may take longer than any sensible timeout of a collective. Here the main process counts
up a key of the store while it works, and the others watch the count: they wait as long as the main process is alive.
"""

from __future__ import annotations

import threading
from time import monotonic, sleep

from torch.distributed.distributed_c10d import Store

from heedful.errors import MachineError
from heedful.formatting import plural

_BEAT_SECONDS = 2.0  # between two signs of life
_SHORTEST_WAIT, _LONGEST_WAIT = 0.01, 1.0  # seconds between two looks
_PATIENCE = 10.0  # seconds for the store to answer
_DONE, _FAILED = b"done", b"failed"


class Heartbeat:
    """Context manager for work of the main process: signal that it is alive, then done."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        # In a thread, because a store behind a dead link may never answer; the next collective reports that.
        announce = threading.Thread(target=self._announce, args=(_DONE if kind is None else _FAILED,), daemon=True)
        announce.start()
        for thread in (announce, self._thread):  # a thread inside the store when Python exits would abort it
            thread.join(_PATIENCE)

    def _beat(self) -> None:
        try:
            while not self._ended.wait(_BEAT_SECONDS):
                self._store.add(f"{self._key}/alive", 1)
        except RuntimeError:
            return  # the store is gone; the next collective reports it

    def _announce(self, outcome: bytes) -> None:
        try:
            self._store.set(self._key, outcome.decode())
        except RuntimeError:
            return


class _Watch(threading.Thread):
    """Poll the store until the main process is done, in a thread because a poll may hang."""

    def __init__(self, store: Store, key: str) -> None:
        super().__init__(daemon=True)
        self._store, self._key = store, key
        self.ended = threading.Event()
        self.outcome = b""
        self.last_sign = monotonic()

    def run(self) -> None:
        beats, wait = 0, _SHORTEST_WAIT
        try:
            while not self._store.check([self._key]):
                if (seen := self._store.add(f"{self._key}/alive", 0)) != beats:
                    beats, self.last_sign = seen, monotonic()
                sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
            self.outcome = self._store.get(self._key)
        except RuntimeError:
            self.outcome = b""
        self.ended.set()


def wait_for_main(store: Store, key: str, work: str, timeout: float) -> None:
    """Wait until the main process finishes `work`; raise MachineError if it falls silent."""
    watch = _Watch(store, key)
    watch.start()
    while not watch.ended.wait(min(1.0, timeout)):
        if monotonic() - watch.last_sign > timeout:
            raise MachineError(
                f"Lost the connection to the main process, which was {work}: "
                f"no response for {plural(round(timeout), 'second')}. "
                "The checkpoints are intact: run the same command to continue."
            )
    watch.join()
    if not watch.outcome:
        raise MachineError(
            f"Lost the connection to the main process, which was {work}. "
            "The checkpoints are intact: run the same command to continue."
        )
    if watch.outcome != _DONE:
        raise MachineError(
            f"The main process stopped while it was {work}. Its message says why. "
            "The checkpoints are intact: run the same command to continue."
        )
