"""Ambiguous HTTP framing is rejected and closes the connection."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator

import h11
import pytest
import uvicorn

from heedful.serving.app import create_app
from heedful.serving.limits import Limits
from heedful.serving.served_model import ServedModel
from heedful.serving.server import _Connection
from heedful.serving.service import TranslationService
from heedful.serving.strict_http import CHUNKS_AT_ONCE, MAX_CHUNKS, StrictConnection

HOST = b"Host: 127.0.0.1\r\n"
GET = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST /translate HTTP/1.1\r\n" + HOST
SMUGGLING = {
    "length and chunks": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bare LF": b"GET /health HTTP/1.1\nHost: 127.0.0.1\n\n",
    "one bare LF": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\nA: b\r\n\r\n",
    "LF as the empty line": b"GET /health HTTP/1.1\r\n" + HOST + b"\n",
    "bare CR": b"GET /health HTTP/1.1\r\n" + HOST + b"A: b\rc\r\n\r\n",
    "same length twice": POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "list of lengths": POST + b"Content-Length: 2, 2\r\n\r\n{}",
    "signed length": POST + b"Content-Length: +2\r\n\r\n{}",
    "two hosts": b"GET /health HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "folded header": b"GET /health HTTP/1.1\r\n" + HOST + b"A: b\r\n c\r\n\r\n",
    "space before colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "coding twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /translate HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk size": POST + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "target with a host": b"GET http://127.0.0.1/health HTTP/1.1\r\n" + HOST + b"\r\n",
    "long head": b"GET /health HTTP/1.1\r\n" + HOST + b"A: " + b"b" * 20_000 + b"\r\n\r\n",
}


@pytest.fixture
def port(served: ServedModel) -> Iterator[int]:
    app = create_app(TranslationService([served], Limits()))
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=_Connection, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def statuses(port: int, raw: bytes) -> tuple[list[int], bool]:
    """Of all responses to these bytes, and whether the server closed the connection."""
    found = bytearray()
    with socket.create_connection(("127.0.0.1", port), 2) as connection:
        connection.sendall(raw)
        try:
            while chunk := connection.recv(65_536):
                found += chunk
            is_closed = True
        except TimeoutError:
            is_closed = False
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", found)], is_closed


def test_request_smuggling_closes_the_connection(port: int) -> None:
    for name, raw in SMUGGLING.items():
        assert statuses(port, raw + GET) == ([400], True), name


def test_the_next_request_is_answered_where_the_framing_is_clear(port: int) -> None:
    """The control of the test above."""
    assert statuses(port, GET + POST + b"Content-Length: 2\r\n\r\n{}" + GET) == ([200, 400, 200], False)


@pytest.mark.parametrize("version", [b"2.0", b"0.9", b"3.0", b"1.2", b"1.9"])
def test_other_versions_of_http_are_refused_once(port: int, version: bytes) -> None:
    assert statuses(port, GET.replace(b"1.1", version, 1) + GET) == ([400], True)
    assert statuses(port, b"PRI * HTTP/%s\r\n\r\nSM\r\n\r\n" % version) == ([400], True)
    assert statuses(port, b"GET /health\r\n\r\n") == ([400], True)


def test_two_origins_are_refused(port: int) -> None:
    one = b"Origin: http://localhost\r\n"
    assert statuses(port, GET[:-2] + one + b"Origin: http://evil.example\r\n\r\n") == ([400], True)


def test_a_chunked_request_is_the_last_of_its_connection(port: int) -> None:
    assert statuses(port, POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + GET) == ([400], True)
    assert statuses(port, POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\n" + GET) == ([400], True)


def test_client_receives_the_error_after_a_large_upload(port: int) -> None:
    """Closing with unread data would reset the connection and hide the response."""
    assert statuses(port, SMUGGLING["bare LF"] + b"x" * 1_000_000) == ([400], True)


def test_a_head_may_arrive_byte_by_byte() -> None:
    connection = StrictConnection()
    for byte in GET[:-1]:
        connection.receive_data(bytes([byte]))
        assert connection.next_event() is h11.NEED_DATA
    connection.receive_data(GET[-1:])
    assert isinstance(connection.next_event(), h11.Request)


@pytest.mark.parametrize(("chunks", "is_refused"), [(MAX_CHUNKS, False), (MAX_CHUNKS + 1, True)])
def test_tiny_chunks_are_limited(chunks: int, is_refused: bool) -> None:
    connection = StrictConnection()
    connection.receive_data(POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * chunks + b"0\r\n\r\n")
    events = []
    try:
        while not events or not isinstance(events[-1], h11.EndOfMessage):
            connection.chunks_left = CHUNKS_AT_ONCE
            events.append(connection.next_event())
    except h11.RemoteProtocolError:
        assert is_refused
    else:
        assert not is_refused


def test_many_small_chunks_take_turns_with_other_connections(port: int) -> None:
    """All of 3,000 chunks arrive, and nobody waits for the whole body."""
    text = b'{"q":"%s","source":"en","target":"de"}' % (b"a " * 1_500)
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in text) + b"0\r\n\r\n"
    head = POST + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert statuses(port, head + chunks) == ([200], True)


def test_the_parser_hands_over_a_few_chunks_at_a_time() -> None:
    connection = StrictConnection()
    connection.receive_data(POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 120)
    assert isinstance(connection.next_event(), h11.Request)
    turns = []
    for _ in range(4):
        connection.chunks_left = CHUNKS_AT_ONCE
        events = iter(connection.next_event, h11.NEED_DATA)
        turns.append(sum(isinstance(event, h11.Data) for event in events))
    assert turns == [50, 50, 20, 0]
