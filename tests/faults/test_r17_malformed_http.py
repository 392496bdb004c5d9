"""R17: arbitrary bytes over HTTP cause no crash and no status ≥ 500."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fault_injection import count
from server_process import Server, server

pytestmark = pytest.mark.faults

CASES = count(200, 2_000)
BODY = b'{"q": "a b c", "source": "source", "target": "target"}'
GOOD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
CHUNKED = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
BASES = (
    GOOD % (len(BODY), BODY),
    CHUNKED % (len(BODY), BODY),
    b"GET /languages HTTP/1.1\r\nHost: localhost\r\n\r\n",
    (GOOD % (3, b"q=a")).replace(b"application/json", b"application/x-www-form-urlencoded"),
)
ODD = (
    b"",
    b"\r\n\r\n",
    b"GET / HTTP/0.9\r\n\r\n",
    b"GET /health HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a TLS greeting
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 70_000 + b"\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 5_000 + b"\r\n",
    b"GET /%00%ff%2e%2e HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://[::1/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    GOOD.replace(b"%d", b"-1") % BODY,
    GOOD.replace(b"%d", b"99999999999999999999") % BODY,
    GOOD.replace(b"%d", b"5\r\nContent-Length: 6") % BODY,
    GOOD.replace(b"application/json", b"\xff\xff") % (len(BODY), BODY),
    GOOD.replace(b"Host: localhost", b"Host: localhost\r\nExpect: 100-continue") % (len(BODY), BODY),
    CHUNKED.replace(b"%x", b"ffffffffffffffffffff") % BODY,
    CHUNKED.replace(b"%x", b"zz") % BODY,
    GOOD.replace(b"Host: localhost", b"Host: localhost\r\nTransfer-Encoding: gzip, chunked") % (len(BODY), BODY),
    (GOOD % (len(BODY), BODY)) * 20,
    (GOOD % (len(BODY), BODY)) + b"\x00garbage\r\n\r\n",
    (GOOD % (2, b"{}")) + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    GOOD % (100_000, b"[" * 100_000),
)


@pytest.fixture(scope="module")
def one(reference: Path) -> Iterator[Server]:
    with server(reference, receive_seconds=0.5, idle_seconds=0.5) as started:
        yield started


def mutated(index: int) -> bytes:
    draw = random.Random(f"17 {index}")
    raw = bytearray(draw.choice(BASES))
    for _ in range(draw.choice((1, 1, 2, 5))):
        place = draw.randrange(len(raw) + 1)
        end = min(len(raw), place + draw.choice((1, 1, 3, 20)))
        kind = draw.randrange(5)
        if kind == 0:
            raw[place:end] = draw.randbytes(end - place)
        elif kind == 1:
            del raw[place:end]
        elif kind == 2:
            raw[place:place] = draw.choice((b"\r\n", b"\x00", b":", b" ", b"\xff", b'"', b"\\ud800", b"1e999"))
        elif kind == 3:
            raw[place:place] = raw[place:end] * draw.choice((1, 50))
        else:
            del raw[place:]
    return bytes(raw)


def worst(one: Server, cases: list[bytes]) -> int:
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda raw: one.statuses(raw), cases))
    return max((status for answer in answers for status in answer), default=0)


def test_mutated_and_odd_requests(one: Server, counted: Callable[[int, str], None]) -> None:
    cases = [*ODD, *(mutated(index) for index in range(CASES - len(ODD)))]
    assert worst(one, cases) < 500
    assert one.is_healthy()
    assert one.translate("still here")[1] == {"translatedText": "STILL HERE"}
    counted(len(cases), "requests")


def test_the_openapi_fuzzer(one: Server, tmp_path: Path, counted: Callable[[int, str], None]) -> None:
    """Schemathesis generates valid and invalid requests from the API description."""
    pytest.importorskip("schemathesis")
    examples = count(10, 100)
    program = [str(Path(sys.executable).with_name("schemathesis")), "run"]
    where = [f"http://127.0.0.1:{one.port}/openapi.json", "--checks", "not_a_server_error", "--seed", "17"]
    how = ["--max-examples", str(examples), "--phases", "examples,coverage,fuzzing", "--no-color"]
    command = [*program, *where, *how]
    outcome = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    assert outcome.returncode == 0, outcome.stdout[-3_000:] + outcome.stderr[-1_000:]
    assert one.is_healthy()
    generated = re.search(r"([\d,]+) generated", outcome.stdout)
    assert generated, outcome.stdout[-1_000:]
    counted(int(generated[1].replace(",", "")), "requests from the OpenAPI fuzzer")


def test_control_without_body_validation(reference: Path) -> None:
    with server(reference, without="reading", receive_seconds=0.5, idle_seconds=0.5) as one:
        assert worst(one, [*ODD, GOOD % (3, b"[1]")]) >= 500
