"""Strict HTTP/1.1 parsing that rejects ambiguous requests, to prevent request smuggling."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import h11

MAX_HEAD = 16_384  # bytes of the request line and the headers
MAX_CHUNKS = 4_000  # chunks per body; each costs as much as kilobytes of data
CHUNKS_AT_ONCE = 50  # half a millisecond; then it is the turn of the other connections
# A line feed without carriage return, a carriage return without line feed, or a header continued on the next line.
_BAD_LINE_END = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)|\r\n[ \t]")
_ONCE = (b"content-length", b"transfer-encoding", b"host", b"origin")


class StrictConnection(h11.Connection):
    """An h11 connection that rejects bad line endings and repeated headers with status 400."""

    def __init__(self, max_incomplete_event_size: int = MAX_HEAD) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size)
        self._chunks = 0
        self.chunks_left = CHUNKS_AT_ONCE  # of this turn; the caller gives the next one

    def next_event(self) -> Any:
        if not self.chunks_left:
            return h11.NEED_DATA
        if self.their_state is h11.IDLE:
            _check_head(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = 0
            _check_request(event)
        elif isinstance(event, h11.Data) and event.chunk_start:
            self._chunks += 1
            self.chunks_left -= 1
            if self._chunks > MAX_CHUNKS:
                raise h11.RemoteProtocolError(f"more than {MAX_CHUNKS} chunks")
        return event


def _check_head(received: bytes) -> None:
    """Raise unless the bytes before the first empty line can begin a well-formed head."""
    end = received.find(b"\r\n\r\n")
    head = received if end < 0 else received[: end + 2]
    if _BAD_LINE_END.search(head):
        raise h11.RemoteProtocolError("malformed line ending in the headers")
    if len(head) > MAX_HEAD:
        raise h11.RemoteProtocolError(f"more than {MAX_HEAD} bytes of headers", error_status_hint=431)
    if end < 0:
        return
    headers = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    for once in _ONCE:
        values = [value for name, _, value in headers if name.strip().lower() == once]
        if len(values) > 1 or b"," in b"".join(values):
            raise h11.RemoteProtocolError("repeated Content-Length, Transfer-Encoding or Host header")


def _check_request(request: h11.Request) -> None:
    if request.http_version not in (b"1.0", b"1.1"):
        raise h11.RemoteProtocolError("unsupported HTTP version")
    headers = dict(request.headers)
    if b"transfer-encoding" in headers and (b"content-length" in headers or request.http_version != b"1.1"):
        raise h11.RemoteProtocolError("ambiguous body length")
    if not request.target.startswith(b"/") and request.target != b"*":
        raise h11.RemoteProtocolError("the request target is not a path")


def is_chunked(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name == b"transfer-encoding" for name, _ in headers)
