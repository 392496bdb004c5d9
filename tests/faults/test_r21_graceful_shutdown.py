"""R21: after SIGTERM all open requests are answered, and the program exits with 0."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_injection import count
from server_process import Server, server, terminate

pytestmark = pytest.mark.faults

TIMES = count(2, 20)


def answers_around_the_end(one: Server, turn: int) -> tuple[int, list[bool], int]:
    """Return exit code, whether each request under way at SIGTERM was answered, and how many."""
    under_way: list[bool] = []
    ending = threading.Event()

    def client(number: int) -> None:
        turn = 0
        while not ending.is_set():
            turn += 1
            text = f"{number} {turn}"
            try:
                answered = one.translate(text)[1] == {"translatedText": text}
            except Exception:  # cut short, reset, no JSON: whatever it is, it is no answer
                answered = False
            under_way.append(answered)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    time.sleep(0.7 + 0.037 * (turn % 10))
    ending.set()  # nobody begins another one
    code = terminate(one)
    for thread in threads:
        thread.join()
    return code, under_way, len(under_way)


def test_all_in_flight_are_answered(reference: Path, counted: Callable[[int, str], None]) -> None:
    for turn in range(TIMES):
        with server(reference, batch_seconds=0.3) as one:
            code, answered, number = answers_around_the_end(one, turn)
            assert (code, all(answered)) == (0, True)
            assert number >= 16
    counted(TIMES, "shutdowns under load")


def test_control_without_graceful_shutdown(reference: Path) -> None:
    with server(reference, batch_seconds=0.3, without="grace") as one:
        _, answered, _ = answers_around_the_end(one, 0)
        assert not all(answered)
