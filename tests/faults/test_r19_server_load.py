"""R19: many concurrent clients, then more than the capacity.

The engine only waits a fixed time per batch, so that its capacity is known and independent of the machine;
benchmarks/serving_load.py has the times of a real model.
"""

from __future__ import annotations

import http.client
import json
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fault_injection import count
from server_process import PAIR, Server, server, until

pytestmark = pytest.mark.faults

EACH = count(10, 100)
SECONDS = count(4, 20)


def timed(one: Server, text: str) -> tuple[int, float, str]:
    began = time.monotonic()
    status, body = one.translate(text)
    return status, time.monotonic() - began, body.get("translatedText", "")


def test_32_concurrent_clients(reference: Path, counted: Callable[[int, str], None]) -> None:
    with server(reference, batch_seconds=0.1) as one, ThreadPoolExecutor(32) as pool:

        def client(number: int) -> list[tuple[int, float, str]]:
            return [timed(one, f"{number} {turn}") for turn in range(EACH)]

        answers = [answer for own in pool.map(client, range(32)) for answer in own]
        assert {status for status, _, _ in answers} == {200}
        assert sorted(text for _, _, text in answers) == sorted(
            f"{n} {turn}" for n in range(32) for turn in range(EACH)
        )
        times = sorted(seconds for _, seconds, _ in answers)
        assert times[int(0.99 * len(times))] <= 3 * statistics.median(times)
        counted(len(answers), "requests from 32 clients")


def overload(one: Server, clients: int, seconds: float) -> list[tuple[int, float]]:
    """Return status and time of every request; clients send the next after each response."""
    answers: list[tuple[int, float]] = []
    end = time.monotonic() + seconds

    def client() -> None:
        while time.monotonic() < end:
            try:
                status, took, _ = timed(one, "a b c")
            except Exception:  # no answer at all
                status, took = 0, 0.0
            answers.append((status, took))
            if status != 200:
                time.sleep(0.1)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_four_times_the_capacity(reference: Path, counted: Callable[[int, str], None]) -> None:
    """64 clients with a capacity for 16: accepted requests are as fast as without overload."""
    tokens = 16 * 5
    with server(reference, batch_seconds=0.1, waiting=tokens) as one:
        status, headers = refused_headers(one)
        alone = overload(one, 15, SECONDS)
        crowd = overload(one, 64, SECONDS)
        good, refused = ([a for a in crowd if a[0] == 200], [a for a in crowd if a[0] != 200])
        assert {a[0] for a in alone} == {200}
        assert {a[0] for a in refused} == {503}
        assert len(good) >= 0.9 * len(alone), "goodput"
        assert status == 503
        assert "retry-after" in headers
        assert until(lambda: one.translate("a")[0] == 200, 5), "recovers"
        assert one.metric("heedful_queued_tokens") == 0
        counted(len(refused), "rejected under overload")
        counted(len(good), "answered under overload")


def refused_headers(one: Server) -> tuple[int, set[str]]:
    """Return the response to one rejected request."""
    body = json.dumps({"q": "a b c d e f g h " * 3, **PAIR}).encode()
    found: list[tuple[int, set[str]]] = []

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=30)
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        found.append((answer.status, {name.lower() for name in dict(answer.getheaders())}))
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return next(one for one in found if one[0] != 200)


def test_control_unlimited_queue(reference: Path) -> None:
    """Without a queue limit nobody is rejected, and everyone waits."""
    with server(reference, batch_seconds=0.1, waiting=10**9) as one:
        assert {status for status, _ in overload(one, 64, 1)} == {200}
