"""A server in its own process, and clients for it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAIR = {"source": "source", "target": "target"}  # the languages of a model that does not know them


@dataclass
class Server:
    process: subprocess.Popen[str]
    port: int

    def connect(self, timeout: float = 20.0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Send a request on a new connection; `body` is sent unchanged or as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, raw, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def translate(self, text: str | list[str], **fields: Any) -> tuple[int, Any]:
        status, body = self.request("POST", "/translate", {"q": text, **PAIR, **fields})
        return status, json.loads(body)

    def is_healthy(self) -> bool:
        return self.process.poll() is None and self.request("GET", "/health")[0] == 200

    def memory(self) -> int:
        """Bytes resident."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return 1024 * int(status.partition("VmRSS:")[2].split()[0])

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def metric(self, name: str) -> float:
        page = self.request("GET", "/metrics")[1].decode()
        return float(next(line for line in page.splitlines() if line.startswith(f"{name} ")).split()[1])

    def statuses(self, raw: bytes) -> list[int]:
        """Send these bytes; return the statuses of all responses until the connection closes."""
        found = bytearray()
        with self.connect() as connection:
            try:
                connection.sendall(raw)
                while chunk := connection.recv(65_536):
                    found += chunk
            except ConnectionError:
                pass
        return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", found)]


@contextmanager
def server(
    run: Path,
    *,
    batch_seconds: float | None = 0.0,
    first_sentence: bool = False,
    without: str = "",
    access: dict[str, Any] | None = None,
    **limits: Any,
) -> Iterator[Server]:
    """Start a server whose engine may be replaced by a slow or a lossy one.

    `batch_seconds`: how long a batch takes an engine that does nothing else; None: the model itself. `first_sentence`:
    an engine that repeats only the first sentence of what it is given.
    """
    options = {
        "limits": limits,
        "access": access or {},
        "batch_seconds": batch_seconds,
        "first_sentence": first_sentence,
        "without": without,
    }
    script = Path(__file__).parent / "unprotected_server.py"
    process = subprocess.Popen(
        [sys.executable, str(script), str(run), json.dumps(options)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        started = Server(process, int(process.stdout.readline()))
        yield started
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether the condition became true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return True
        except OSError:
            pass
        time.sleep(0.02)
    return False


def terminate(one: Server) -> int:
    """The exit code after SIGTERM."""
    one.process.send_signal(signal.SIGTERM)
    return one.process.wait(60)
