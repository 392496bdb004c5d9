"""uvicorn, with deadlines for slow clients and an end that leaves nobody without an answer."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from heedful.errors import MachineError, UsageError
from heedful.serving.limits import Limits

_GRACE = 0.3  # seconds in which whoever was about to ask still may, after the signal to stop


_REFUSED = 1.0  # seconds in which a client that is refused can read why


class _Deadline:
    """A connection that is not heard of again within so many seconds is cut off."""

    def __init__(self) -> None:
        self.timer: asyncio.TimerHandle | None = None

    def start(self, connection: H11Protocol, seconds: float) -> None:
        """From now on; where it runs already, from when it began."""
        self.timer = self.timer or connection.loop.call_later(seconds, connection.transport.abort)

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None


class _Connection(H11Protocol):
    """A connection that is closed when its client takes too long to send a request, or to read its answer."""

    limits = Limits()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # whatever is not sent at once has a deadline
        self._reading, self._writing = _Deadline(), _Deadline()
        self._is_refused = len(self.connections) > self.limits.connections
        self._reading.start(self, _REFUSED if self._is_refused else self.limits.receive_seconds)
        if self._is_refused:
            transport.write(_answer(503, "The server has too many connections.", "Retry-After: 1\r\n"))
            transport.write_eof()  # closed at once, with a request unread, it would be reset before this is read

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            super().data_received(data)

    def handle_events(self) -> None:
        try:
            super().handle_events()
        except h11.ProtocolError:  # wrong in a way that leaves nothing to answer with
            self.transport.abort()
        begun = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if begun or self.conn.their_state is h11.SEND_BODY:
            self._reading.start(self, self.limits.receive_seconds)
        else:
            self._reading.cancel()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading(self.transport.get_write_buffer_size() + 1)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._writing.cancel()

    def _expect_reading(self, unsent: int) -> None:
        """Cut off when nothing was read in the time: a slow reader of much is no dead one."""
        left = self.transport.get_write_buffer_size()
        if left >= unsent:
            self.transport.abort()
        else:
            self._writing.timer = self.loop.call_later(self.limits.send_seconds, self._expect_reading, left)

    def connection_lost(self, exc: Exception | None) -> None:
        self._reading.cancel()
        self._writing.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self.transport.write(_answer(400, "That is no HTTP request."))
        self.transport.close()


def _answer(status: int, message: str, headers: str = "") -> bytes:
    """For connections that no request was read from."""
    body = json.dumps({"error": message}).encode()
    head = f"HTTP/1.1 {status} Error\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}{headers}Connection: close\r\n\r\n".encode() + body


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Whoever has connected, or sends the next request while the signal comes, is answered as well."""
        self.server_state.default_headers.append((b"connection", b"close"))
        for connection in self.server_state.connections:
            if (cycle := getattr(connection, "cycle", None)) is not None:  # its answer is under way
                cycle.default_headers = self.server_state.default_headers
        await asyncio.sleep(_GRACE)
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """Before models are loaded: a port that is taken is said at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OverflowError, socket.gaierror) as error:
        listener.close()
        raise UsageError(f"{host}, port {port} is no address to listen on: {error}.") from None
    except OSError as error:
        listener.close()
        raise MachineError(f"Port {port} of {host} cannot be had: {error.strerror}. Choose another --port.") from None
    return listener


def run(app: FastAPI, listener: socket.socket, limits: Limits, ready: Callable[[], None]) -> None:
    """Serves until SIGTERM or SIGINT, then answers whatever has been asked. `ready` is called when it does."""
    config = uvicorn.Config(
        app,
        http=type("Connection", (_Connection,), {"limits": limits}),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=limits.idle_seconds,  # type: ignore[arg-type]
        backlog=1_024,
    )
    # uvicorn raises the signal again when it is done; there is nothing left to end then.
    ignored: dict[signal.Signals, Any] = {
        one: signal.signal(one, lambda *_: None) for one in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        _Server(config, ready).run(sockets=[listener])
    finally:
        for one, handler in ignored.items():
            signal.signal(one, handler)
