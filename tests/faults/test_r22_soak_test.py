"""R22: many requests: no client receives another's response, and memory does not grow."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fault_injection import count
from server_process import PAIR, Server, server

pytestmark = pytest.mark.faults

REQUESTS = count(10_000, 100_000)
CLIENTS = 8


def ask(one: Server, number: int, requests: int) -> int:
    """Return the wrong responses to one client's requests on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=60)
    wrong = 0
    for turn in range(requests):
        text = f"{number} {turn}"
        body = json.dumps({"q": text, **PAIR})
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        wrong += json.loads(connection.getresponse().read()) != {"translatedText": text}
    connection.close()
    return wrong


def soaked(one: Server, requests: int) -> tuple[int, float]:
    """Wrong answers, and how much larger the process is at the end than after a tenth."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        wrong = sum(pool.map(lambda number: ask(one, number, requests // CLIENTS // 10), range(CLIENTS)))
        early = one.memory()
        wrong += sum(pool.map(lambda number: ask(one, number, requests * 9 // CLIENTS // 10), range(CLIENTS)))
    return wrong, one.memory() / early - 1


def test_soak(reference: Path, counted: Callable[[int, str], None]) -> None:
    with server(reference) as one:
        wrong, growth = soaked(one, REQUESTS)
        assert wrong == 0
        assert growth <= 0.05
        counted(REQUESTS, "requests")


def test_the_search_itself(reference: Path, counted: Callable[[int, str], None]) -> None:
    """With the real model instead of the fake engine."""
    requests = count(400, 8_000)
    with server(reference, batch_seconds=None) as one, ThreadPoolExecutor(CLIENTS) as pool:
        texts = [" ".join("abcdefgh"[: 1 + number % 8]) for number in range(requests)]
        list(pool.map(one.translate, texts[: requests // 4]))
        early = one.memory()
        answers = list(pool.map(one.translate, texts))
        assert {status for status, _ in answers} == {200}
        assert one.memory() / early - 1 <= 0.05
        counted(requests, "requests to the real model")


def test_control_crossed_answers(reference: Path) -> None:
    """Responses in the wrong order."""
    with server(reference, batch_seconds=0.02, without="order") as one, ThreadPoolExecutor(CLIENTS) as pool:
        assert sum(pool.map(lambda number: ask(one, number, 10), range(CLIENTS))) > 0


def test_control_a_leak(reference: Path) -> None:
    with server(reference, without="leak") as one:
        assert soaked(one, 1_600)[1] > 0.05
