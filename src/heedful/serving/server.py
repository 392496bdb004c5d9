"""The HTTP server: uvicorn with strict parsing, deadlines and graceful shutdown."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import signal
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from heedful.errors import MachineError, UsageError, cause
from heedful.serving.limits import Limits
from heedful.serving.security_headers import SECURITY_HEADERS
from heedful.serving.strict_http import CHUNKS_AT_ONCE, StrictConnection, is_chunked

_GRACE = 0.3  # seconds after the stop signal in which new requests are still answered
_LINGER = 1.0  # seconds for a rejected client to read the response
_SWITCH_SECONDS = 0.001  # the event loop waits this long for the GIL for each other thread (Python: 0.005)
_CLOSE = (b"connection", b"close")


class _Deadline:
    """Aborts a connection unless it is cancelled in time."""

    def __init__(self) -> None:
        self.timer: asyncio.TimerHandle | None = None

    def start(self, connection: H11Protocol, seconds: float) -> None:
        """Start the timer, unless it is running."""
        self.timer = self.timer or connection.loop.call_later(seconds, connection.transport.abort)

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None


class _Connection(H11Protocol):
    """A connection that is closed if the client sends or reads too slowly."""

    limits = Limits()
    conn: StrictConnection

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = StrictConnection()
        self._reading, self._writing = _Deadline(), _Deadline()
        self._is_refused = False
        self._next_turn: asyncio.Handle | None = None
        self._since = 0.0  # when it was opened, or its last response was complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # unsent data has a deadline
        self._since = self.loop.time()
        if len(self.connections) > self.limits.connections and not self._replaces_others():
            self._refuse(503, "Too many connections.", "Retry-After: 1\r\n")
        else:
            self._reading.start(self, self.limits.receive_seconds)

    def _replaces_others(self) -> bool:
        """Close the connections that have waited for their clients the longest.

        Return False if none waits.

        Otherwise a client could lock out all others with idle connections. Several at once, so that few are searched.
        """
        others: set[_Connection] = self.connections - {self}  # type: ignore[assignment]
        waiting = sorted(filter(_Connection._waits_for_client, others), key=lambda one: one._since)
        for oldest in waiting[: self.limits.connections // 20 + 1]:
            self.connections.discard(oldest)
            oldest.transport.abort()
        return bool(waiting)

    def _waits_for_client(self) -> bool:
        """Return whether the client must act: send a whole request, or read the response."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        is_whole = self.conn.their_state is not h11.SEND_BODY
        return not (is_answering and is_whole) or self.transport.get_write_buffer_size() > 0

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            super().data_received(data)

    def handle_events(self) -> None:
        self.conn.chunks_left = CHUNKS_AT_ONCE
        try:
            super().handle_events()
        except h11.ProtocolError:  # too late to respond
            self.transport.abort()
        if self._is_refused:
            return
        has_begun = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if has_begun or self.conn.their_state is h11.SEND_BODY:
            self._reading.start(self, self.limits.receive_seconds)
        else:
            self._reading.cancel()
        self._close_after_chunks()
        if not self.conn.chunks_left and self._next_turn is None:
            self._next_turn = self.loop.call_soon(self._continue)
            self.transport.pause_reading()  # the unread chunks stay with the client

    def _continue(self) -> None:
        """Handle more of the received chunks, after the other connections had their turn."""
        self._next_turn = None
        if self._is_refused or self.transport.is_closing():
            return
        if not self.flow.read_paused:  # by uvicorn, because of a large body
            self.transport.resume_reading()
        self.handle_events()

    def _close_after_chunks(self) -> None:
        """Close the connection after a chunked request: h11 is lenient about the last chunk."""
        is_whole = self.conn.their_state is not h11.SEND_BODY
        if self.cycle is not None and self.cycle.keep_alive and is_whole and is_chunked(self.cycle.scope["headers"]):
            self.cycle.keep_alive = False
            self.cycle.default_headers = [*self.cycle.default_headers, _CLOSE]

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and is_chunked(self.cycle.scope["headers"]):
            self._ignore_further_data()  # answered before the end of the request, whose deadline still runs

    def _ignore_further_data(self) -> None:
        """Close only our side, or the client could get a reset before it reads the response."""
        self._is_refused = True
        self.flow.resume_reading()
        try:
            self.transport.write_eof()
        except OSError:  # the client has reset the connection
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_progress(self.transport.get_write_buffer_size() + 1)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._writing.cancel()

    def _expect_progress(self, unsent: int) -> None:
        """Abort if the client has read nothing since the last check; slow progress is allowed."""
        left = self.transport.get_write_buffer_size()
        if left >= unsent:
            self.transport.abort()
        else:
            self._writing.timer = self.loop.call_later(self.limits.send_seconds, self._expect_progress, left)

    def connection_lost(self, exc: Exception | None) -> None:
        self._reading.cancel()
        self._writing.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "Not a valid HTTP request.")

    def _refuse(self, status: int, message: str, headers: str = "") -> None:
        """Send an error and close the connection; further data is not parsed as HTTP."""
        if self.cycle is not None and not self.cycle.response_complete:  # the request is incomplete
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                return self.transport.abort()
        self._reading.cancel()
        self._reading.start(self, _LINGER)
        self.transport.write(_response(status, message, headers))
        return self._ignore_further_data()


def _response(status: int, message: str, headers: str = "") -> bytes:
    """Return a raw response for connections without a parsed request."""
    body = json.dumps({"error": message}).encode()
    security = "".join(f"{name}: {value}\r\n" for name, value in SECURITY_HEADERS.items())
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{security}"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}Connection: close\r\n\r\n"
    return head.encode() + body


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down, but still answer requests that arrive with the stop signal."""
        self.server_state.default_headers.append(_CLOSE)
        for connection in self.server_state.connections:
            if (cycle := getattr(connection, "cycle", None)) is not None:  # its response is being sent
                cycle.default_headers = self.server_state.default_headers
        await asyncio.sleep(_GRACE)
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """Open the port before models are loaded, so that errors show at once."""
    if not 0 <= port <= 65_535:
        raise UsageError(f"`--port {port}` is not a port number. Choose one from 1 to 65535, or 0 for any free port.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except socket.gaierror:
        listener.close()
        raise UsageError(f'`--host` "{host}" is not an address of this machine. Use 127.0.0.1 or 0.0.0.0.') from None
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from None
    return listener


def _cannot_listen(host: str, port: int, error: OSError) -> MachineError:
    reason = cause(error)
    is_address = error.errno == errno.EADDRNOTAVAIL
    advice = "Choose an address of this machine with `--host`" if is_address else "Choose another port with `--port`"
    return MachineError(f"Cannot listen on {host}:{port}: {reason}. {advice}.")


def run(app: ASGIApp, listener: socket.socket, limits: Limits, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, then answer the open requests.

    Call `ready` when the server accepts requests.
    """
    config = uvicorn.Config(
        app,
        http=type("Connection", (_Connection,), {"limits": limits}),
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # uvicorn would trust X-Forwarded-For from this machine; `Access` decides instead
        timeout_keep_alive=limits.idle_seconds,  # type: ignore[arg-type]
        backlog=1_024,
    )
    # uvicorn raises the signal again after shutdown; nothing is left to do.
    previous: dict[signal.Signals, Any] = {
        one: signal.signal(one, lambda *_: None) for one in (signal.SIGTERM, signal.SIGINT)
    }
    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # a collection that visits the imported modules and the models blocks all threads for 0.3 s
    try:
        _Server(config, ready).run(sockets=[listener])
    finally:
        gc.unfreeze()
        sys.setswitchinterval(switch_interval)
        for one, handler in previous.items():
            signal.signal(one, handler)
