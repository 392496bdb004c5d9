"""R25: unauthorised requests are rejected; ambiguous framing closes the connection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fault_injection import count
from server_process import PAIR, Server, server

pytestmark = pytest.mark.faults

ROUNDS = count(1, 20)
KEY = {"Authorization": "Bearer right"}
ACCESS = {"api_keys": ["right"], "cors_origins": ["https://app.example"], "trusted_proxies": ["127.0.0.1"]}
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
SMUGGLING = {
    "length and chunks": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "bare LF": b"GET /health HTTP/1.1\nHost: localhost\n\n",
    "one bare LF": b"GET /health HTTP/1.1\r\nHost: localhost\nA: b\r\n\r\n",
    "bare LF hides a header": POST + b"A: b\nContent-Length: 40\r\n\r\n",
    "length twice": POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 50\r\n\r\n{}",
    "list of lengths": POST + b"Content-Length: 2, 2\r\n\r\n{}",
    "two hosts": b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    "folded header": POST + b"Content-Length: 2\r\nA: b\r\n c\r\n\r\n{}",
    "space before the colon": POST + b"Content-Length : 2\r\n\r\n{}",
    "coding twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "hidden coding": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "last chunk with bare LF": POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\n",
}
# name: (headers, further fields, status)
ASKED: dict[str, tuple[dict[str, str], dict[str, str], int]] = {
    "with a key": (KEY, {}, 200),
    "with a key in the body": ({}, {"api_key": "right"}, 200),
    "without a key": ({}, {}, 403),
    "with a wrong key": ({}, {"api_key": "wrong"}, 403),
    "with a wrong bearer": ({"Authorization": "Bearer wrong"}, {"api_key": "right"}, 403),
    "foreign Host": ({**KEY, "Host": "evil.example"}, {}, 421),
    "foreign Host that looks like ours": ({**KEY, "Host": "localhost.evil.example"}, {}, 421),
    "foreign Origin": ({**KEY, "Origin": "https://evil.example"}, {}, 403),
    "Origin of a sandbox": ({**KEY, "Origin": "null"}, {}, 403),
    "page of another site": ({**KEY, "Sec-Fetch-Site": "cross-site"}, {}, 403),
    "allowed Origin": ({**KEY, "Origin": "https://app.example"}, {}, 200),
}


@pytest.fixture(scope="module")
def one(reference: Path) -> Iterator[Server]:
    with server(reference, access=ACCESS, idle_seconds=0.5) as started:
        yield started


def status(one: Server, headers: dict[str, str], fields: dict[str, str]) -> int:
    return one.request("POST", "/translate", {"q": "a", **PAIR, **fields}, **headers)[0]


def test_access_rules(one: Server, counted: Callable[[int, str], None]) -> None:
    for _ in range(ROUNDS):
        for name, (headers, fields, expected) in ASKED.items():
            assert status(one, headers, fields) == expected, name
    assert one.request("GET", "/metrics", **{"X-Forwarded-For": "192.0.2.1"})[0] == 403
    assert one.request("GET", "/metrics")[0] == 200
    counted(ROUNDS * len(ASKED), "authorised and unauthorised requests")


def test_smuggling_shapes(one: Server, counted: Callable[[int, str], None]) -> None:
    """A second request follows on the same connection: it must not be answered."""
    for _ in range(ROUNDS):
        for name, raw in SMUGGLING.items():
            assert one.statuses(raw + GET) in ([400], [403]), name
    assert one.statuses(GET + GET) == [200, 200]
    assert one.is_healthy()
    counted(ROUNDS * len(SMUGGLING), "smuggling attempts")


def test_rate_limit(reference: Path, counted: Callable[[int, str], None]) -> None:
    """The limit applies per client, and a forged X-Forwarded-For does not evade it."""
    limit = count(20, 200)
    with server(reference, access={"rate_limit": limit, "trusted_proxies": ["127.0.0.1"]}) as one:
        own = {"X-Forwarded-For": "192.0.2.1"}
        assert [status(one, own, {}) for _ in range(limit)] == [200] * limit
        assert status(one, own, {}) == 429
        assert status(one, {"X-Forwarded-For": "198.51.100.7, 192.0.2.1"}, {}) == 429
        assert status(one, {"X-Forwarded-For": "192.0.2.2"}, {}) == 200
        said = json.loads(one.request("GET", "/languages", **own)[1])
        assert "requests per minute" in said["error"]
        assert one.is_healthy()
    counted(limit + 4, "rate-limited requests")


def test_control_without_access_rules(reference: Path) -> None:
    with server(reference, access={**ACCESS, "rate_limit": 1}, without="access") as one:
        assert {status(one, headers, fields) for headers, fields, _ in ASKED.values()} == {200}


def test_control_with_lenient_framing(reference: Path) -> None:
    with server(reference, without="framing", idle_seconds=0.5) as one:
        answered = [name for name, raw in SMUGGLING.items() if len(one.statuses(raw + GET)) > 1]
        assert {"length and chunks", "bare LF", "length twice", "last chunk with bare LF"} <= set(answered)
