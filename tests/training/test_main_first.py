"""Waiting for the main process: only as long as it lives, and it passes on failure."""

from __future__ import annotations

import threading
from time import monotonic, sleep

import pytest
from torch.distributed import HashStore

from heedful.errors import MachineError
from heedful.training import main_first
from heedful.training.main_first import Heartbeat, wait_for_main


@pytest.fixture(autouse=True)
def fast_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_first, "_BEAT_SECONDS", 0.05)
    monkeypatch.setattr(main_first, "_LONGEST_WAIT", 0.05)


def test_waits_longer_than_the_timeout_while_the_main_process_is_alive() -> None:
    store = HashStore()

    def work() -> None:
        with Heartbeat(store, "key"):
            sleep(4)

    main = threading.Thread(target=work)
    began = monotonic()
    main.start()
    wait_for_main(store, "key", "validating", timeout=2)
    assert monotonic() - began >= 4
    main.join()


def test_control_without_a_heartbeat_waiting_ends_with_a_message() -> None:
    with pytest.raises(MachineError, match="main process, which was validating: no response for 1 second"):
        wait_for_main(HashStore(), "key", "validating", timeout=1)


def test_failure_of_the_main_process_is_passed_on() -> None:
    store = HashStore()
    with pytest.raises(ValueError, match="broken"), Heartbeat(store, "key"):
        raise ValueError("broken")
    with pytest.raises(MachineError, match="stopped while it was saving"):
        wait_for_main(store, "key", "saving", timeout=30)
