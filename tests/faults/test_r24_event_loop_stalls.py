"""R24: the slowest known request bodies do not block the event loop."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from fault_injection import NIGHT, count
from server_process import PAIR, Server, server

pytestmark = pytest.mark.faults

ROUNDS = count(1, 10)
BOUND = 0.25 if NIGHT else 2.0  # seconds until /health answers; machines that run every change are busy
SIZE = 1_000_000
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data; boundary=b0"


def nested(depth: int, size: int = SIZE) -> bytes:
    """Return a nested multipart form."""
    body = b"".join(
        b'--b%d\r\nContent-Disposition: form-data; name="q"\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n'
        % (level, level + 1)
        for level in range(depth)
    )
    return body + b"x\r\n" * ((size - len(body)) // 3)


def text(q: str, **fields: str) -> bytes:
    return json.dumps({"q": q, **PAIR, **fields}).encode()


BODIES: dict[str, tuple[bytes, str]] = {
    "multipart nested 300 deep": (nested(300), MULTIPART),
    "multipart nested 960 deep": (nested(960), MULTIPART),
    "many parts": (b'--b0\r\nContent-Disposition: form-data; name="q"\r\n\r\na\r\n' * 18_000 + b"--b0--", MULTIPART),
    "JSON objects nested 160,000 deep": (b'{"q":' * 160_000, "application/json"),
    "JSON objects nested 10,000 deep": (b'{"q":' * 10_000, "application/json"),
    "JSON lists nested 900,000 deep": (b"[" * 900_000, "application/json"),
    "JSON with many keys": (b"{%s}" % b",".join(b'"%d":1' % n for n in range(90_000)), "application/json"),
    "form fields": (b"&".join(b"%d=a" % n for n in range(115_000)), FORM),
    "percent signs": (b"q=" + b"%41" * 333_000, FORM),
    "escapes at the limit": (b"source=source&target=target&q=" + b"%F0%9F%98%80" * 10_000, FORM),
    "a word of 10,000 characters": (text("x" * 10_000), "application/json"),
    "5,000 lines": (text("a\n" * 5_000), "application/json"),
    "5,000 lines, language unknown": (text("b\n" * 5_000, source="auto"), "application/json"),
    "HTML of spaces": (text(" " * 10_000, format="html"), "application/json"),
    "HTML of spaces between words": (text("a" + " " * 9_998 + "b", format="html"), "application/json"),
    "HTML tags": (text("<b>" * 3_333, format="html"), "application/json"),
    "a language code of 999,000 characters": (text("a", source="a-" * 499_500), "application/json"),
}
FILES: dict[str, bytes] = {  # they end with a line over the limit, so that they are read but not translated
    "a.txt": b"a\n" * 245_000 + b"x" * 10_001,
    "a.srt": b"0:00-->0:00\n" + b"-a\n" * 160_000 + b"-" + b"x" * 10_001,
    "a.html": b"<p>a" * 30_000 + b"x" * 10_001,
    "b.html": b"<b>" * 326_000,
}
AT_ONCE = 12


def file_form(name: str) -> bytes:
    field = b'--b0\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    fields = b"".join(field % (one.encode(), value.encode()) for one, value in PAIR.items())
    head = b'--b0\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n' % name.encode()
    return fields + head + FILES[name] + b"\r\n--b0--\r\n"


@contextmanager
def health(one: Server) -> Iterator[list[float]]:
    """Measure /health while the block runs."""
    seconds: list[float] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            start = time.monotonic()
            try:
                is_answered = one.request("GET", "/health")[0] == 200
            except OSError:  # among them TimeoutError
                is_answered = False
            seconds.append(time.monotonic() - start if is_answered else float("inf"))
            time.sleep(0.002)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seconds
    finally:
        stop.set()
        thread.join()


def slowest_health(one: Server, rounds: int = 1) -> float:
    with health(one) as seconds:
        for _ in range(rounds):
            for name, (body, kind) in BODIES.items():
                status, _ = one.request("POST", "/translate", body, **{"Content-Type": kind})
                assert status < 500, name
    return max(seconds)


def test_slow_bodies(reference: Path, counted: Callable[[int, str], None]) -> None:
    """Use more tokens than usual, so that long words and many lines are translated too."""
    with server(reference, tokens=100_000, waiting=200_000) as one:
        slowest = slowest_health(one, ROUNDS)
        assert slowest < BOUND
    counted(ROUNDS * len(BODIES), "slow bodies")
    counted(round(1_000 * slowest), "ms for the slowest `/health`")


@pytest.mark.parametrize("name", FILES)
def test_many_files_at_once(reference: Path, name: str) -> None:
    """With a thread per file, the event loop would wait for the GIL behind all of them."""
    form = file_form(name)
    with server(reference) as one:

        def send(_: int) -> int:
            return one.request("POST", "/translate_file", form, **{"Content-Type": MULTIPART})[0]

        with health(one) as seconds, ThreadPoolExecutor(AT_ONCE) as clients:
            statuses = set(clients.map(send, range(AT_ONCE)))
    assert statuses == {400}
    assert max(seconds) < BOUND


def test_with_the_model_itself(reference: Path) -> None:
    with server(reference, batch_seconds=None) as one:
        assert slowest_health(one) < BOUND


def test_control_bodies_parsed_on_the_event_loop(reference: Path) -> None:
    """The standard parser takes seconds for a nested form, and nobody else is answered."""
    with server(reference, without="threads") as one, health(one) as seconds:
        one.request("POST", "/translate", nested(300, 500_000), **{"Content-Type": MULTIPART})
    assert max(seconds) >= 2.0
