"""R20: slow and disconnecting clients do not affect others."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fault_injection import count
from server_process import PAIR, Server, server, terminate, until

pytestmark = pytest.mark.faults

SLOW = count(40, 200)
GONE = count(100, 1_000)
BODY = json.dumps({"q": "a b c", **PAIR}).encode()
REQUEST = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
LIMIT = 2.0  # seconds


def closed_after(one: Server, raw: bytes, patience: float) -> float:
    """Return seconds until the server closes a connection with one byte per second, or inf."""
    began = time.monotonic()
    with one.connect(0.5) as connection:
        for byte in raw:
            try:
                connection.sendall(bytes([byte]))
                time.sleep(0.5)
                if connection.recv(1_000) == b"":
                    return time.monotonic() - began
            except TimeoutError:
                pass
            except ConnectionError:
                return time.monotonic() - began
            if time.monotonic() - began > patience:
                break
    return float("inf")


def test_one_byte_per_second(reference: Path, counted: Callable[[int, str], None]) -> None:
    """Half of them stall in the head, half in the body; other clients are served meanwhile."""
    with server(reference, receive_seconds=LIMIT) as one:
        baseline = one.descriptors()
        head, body = REQUEST, REQUEST[REQUEST.index(b"\r\n\r\n") - 10 :]
        start = REQUEST[: len(REQUEST) - len(body)]
        with ThreadPoolExecutor(SLOW) as pool:
            slow = [pool.submit(closed_after, one, head, 20) for _ in range(SLOW // 2)]
            slow += [pool.submit(_in_the_body, one, start, body) for _ in range(SLOW // 2)]
            meanwhile = [one.translate(f"a {number}")[0] for number in range(20)]
            times = [future.result() for future in slow]
        assert max(times) < LIMIT + 5, "closed in time"
        assert meanwhile == [200] * 20
        assert until(lambda: one.descriptors() <= baseline, 5)
        counted(SLOW, "slow clients")


def _in_the_body(one: Server, start: bytes, rest: bytes) -> float:
    began = time.monotonic()
    with one.connect(0.5) as connection:
        connection.sendall(start + rest[:20])
        while time.monotonic() - began < 20:
            try:
                connection.sendall(rest[20:21])
                time.sleep(0.5)
                if connection.recv(1_000) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
    return time.monotonic() - began


def test_silent_and_non_reading_clients(reference: Path) -> None:
    with server(reference, receive_seconds=LIMIT, idle_seconds=LIMIT, send_seconds=LIMIT) as one:
        baseline = one.descriptors()
        silent = [one.connect() for _ in range(20)]
        unread = [_not_reading(one) for _ in range(5)]
        assert until(lambda: one.descriptors() > baseline, 5)
        assert until(lambda: one.descriptors() <= baseline, LIMIT + 30)
        for connection in (*silent, *unread):
            connection.close()


def test_small_unread_response(reference: Path) -> None:
    """A response below asyncio's buffer limit must not keep the server from ending."""
    with server(reference, receive_seconds=LIMIT, idle_seconds=LIMIT, send_seconds=LIMIT) as one:
        baseline = one.descriptors()
        unread = [_not_reading(one, times) for times in (150, 200, 250, 300, 400)]
        assert until(lambda: one.descriptors() <= baseline, LIMIT + 30)
        unread += [_not_reading(one, times) for times in (150, 250, 400)]
        assert terminate(one) == 0
        for connection in unread:
            connection.close()


def _not_reading(one: Server, times: int = 3_000) -> socket.socket:
    """Request pages without reading the responses."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
    connection.connect(("127.0.0.1", one.port))
    connection.settimeout(0.2)
    try:
        for _ in range(times):
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    except (TimeoutError, ConnectionError):
        pass
    return connection


def test_disconnects(reference: Path, counted: Callable[[int, str], None]) -> None:
    """Some before the request is whole, some while it waits for its turn."""
    with server(reference, batch_seconds=0.05) as one:
        baseline = one.descriptors()

        def vanish(number: int) -> None:
            with one.connect() as connection:
                connection.sendall(REQUEST[: len(REQUEST) - number % 3 * 10])

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(vanish, range(GONE)))
        assert until(lambda: one.descriptors() <= baseline, 10)
        assert until(lambda: one.metric("heedful_queued_tokens") == 0, 10)
        assert one.translate("a")[0] == 200
        counted(GONE, "disconnects")


def test_excess_connections_get_an_error(reference: Path) -> None:
    """All are being answered, so none can be closed for a new one."""
    with server(reference, connections=20, batch_seconds=2.0) as one:
        held: list[socket.socket] = []

        def is_refused() -> bool:
            held.append(one.connect(0.05))
            held[-1].sendall(REQUEST)
            return held[-1].recv(1_000).startswith(b"HTTP/1.1 503")

        assert until(is_refused, 30)
        assert len(held) > 20
        for connection in held:
            connection.close()
        assert until(one.is_healthy, 5)


def test_waiting_connections_lock_nobody_out(reference: Path) -> None:
    """A new connection closes the one that waited longest for its client, never a busy one."""
    with server(reference, connections=20, batch_seconds=1.0) as one:
        busy = one.connect()
        busy.sendall(REQUEST)
        idle = [one.connect() for _ in range(5)]
        used = one.connect()
        used.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert used.recv(1_000)
        half = [one.connect() for _ in range(20)]
        for connection in half:
            connection.sendall(REQUEST[:-3])
        assert one.is_healthy()
        assert all(_is_closed(connection) for connection in idle)
        assert _is_closed(used)
        assert busy.recv(1_000).startswith(b"HTTP/1.1 200")
        for connection in (busy, used, *idle, *half):
            connection.close()


def _is_closed(connection: socket.socket) -> bool:
    connection.settimeout(10)
    try:
        while connection.recv(1_000):
            pass
        return True
    except ConnectionError:
        return True


def test_control_without_deadlines(reference: Path) -> None:
    with server(reference, without="deadlines", receive_seconds=1.0) as one:
        assert closed_after(one, REQUEST, 5) == float("inf")
