"""R18: requests at a limit are accepted, and above it rejected in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from server_process import PAIR, Server, server

pytestmark = pytest.mark.faults

LIMITS = {"body": 2_000, "texts": 5, "characters": 300, "tokens": 120, "alternatives": 2}


@pytest.fixture(scope="module")
def one(reference: Path) -> Iterator[Server]:
    with server(reference, **LIMITS) as started:
        yield started


def of_size(size: int) -> bytes:
    """A good request of so many bytes."""
    raw = json.dumps({"q": "a", **PAIR, "api_key": ""}).encode()
    return raw.replace(b'"api_key": ""', b'"api_key": "%s"' % (b"x" * (size - len(raw))))


# (what is exactly at the limit, what is one past it, the status of the second)
CASES: dict[str, tuple[Any, Any, int]] = {
    "body": (of_size(2_000), of_size(2_001), 413),
    "texts": ({"q": ["a"] * 5, **PAIR}, {"q": ["a"] * 6, **PAIR}, 400),
    "characters": ({"q": " " * 299 + "a", **PAIR}, {"q": " " * 300 + "a", **PAIR}, 400),
    "alternatives": ({"q": "a", **PAIR, "alternatives": 2}, {"q": "a", **PAIR, "alternatives": 3}, 400),
}


@pytest.mark.parametrize("name", CASES)
def test_exact_and_before_the_work(one: Server, name: str, counted: Callable[[int, str], None]) -> None:
    good, bad, status = CASES[name]
    assert one.request("POST", "/translate", good)[0] == 200
    batches = one.metric("heedful_batches_total")
    assert one.request("POST", "/translate", bad)[0] == status
    assert one.metric("heedful_batches_total") == batches
    counted(2, "requests at and above a limit")


def test_tokens(one: Server, counted: Callable[[int, str], None]) -> None:
    """The limit applies to the exact number of tokens, whatever the text."""
    answers = [one.translate("a b " * number) for number in range(1, 70)]
    refused = [body["error"] for status, body in answers if status == 400]
    assert refused, "none was past the limit"
    assert [status for status, _ in answers] == [200] * (len(answers) - len(refused)) + [400] * len(refused)
    first = int(refused[0].split()[2])
    assert 120 < first <= 124, "a step of the text is at most four tokens"
    counted(len(answers), "token counts")


def test_memory_does_not_grow_with_the_request(one: Server) -> None:
    """100 MB in chunks without a length are rejected at the limit and never held in memory."""
    chunk = b"%x\r\n%s\r\n" % (100_000, b"x" * 100_000)
    before = one.memory()
    with one.connect() as connection:
        connection.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(1_000):
            connection.sendall(chunk)
        connection.sendall(b"0\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")
    assert one.memory() - before < 10_000_000
    assert one.is_healthy()


def test_queue_is_limited(reference: Path, counted: Callable[[int, str], None]) -> None:
    with server(reference, batch_seconds=1.0, waiting=60) as one, ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda _: one.translate("a b c")[0], range(30)))
        assert set(answers) == {200, 503}
        assert one.translate("a b c")[0] == 200
        counted(answers.count(503), "rejected by the queue limit")


def test_control_without_limits(reference: Path) -> None:
    with server(reference, **dict.fromkeys(LIMITS, 10**9)) as one:
        assert all(one.request("POST", "/translate", bad)[0] == 200 for _, bad, _ in CASES.values())
