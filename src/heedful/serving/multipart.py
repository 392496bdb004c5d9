"""Multipart forms: the streaming parser of python-multipart with limits.

Nested forms are rejected.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from heedful.serving.requests import RequestError

MAX_PARTS = 1_000
_PLAIN_ENCODINGS = (b"", b"7bit", b"8bit", b"binary")


@dataclass
class Part:
    """A field of a form, or a file if it has a file name."""

    headers: dict[bytes, bytes] = field(default_factory=dict)
    content: bytearray = field(default_factory=bytearray)
    name: str = ""
    filename: str | None = None


class _Collector:
    """Receives the parser's callbacks and builds the list of parts."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.parts: list[Part] = []
        self.is_complete = False
        self._header_name, self._header_value = bytearray(), bytearray()

    def on_part_begin(self) -> None:
        if len(self.parts) == self.most:
            raise RequestError(f"The multipart form has more than {self.most:,} parts. Send fewer.")
        self.parts.append(Part())

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def on_header_end(self) -> None:
        self.parts[-1].headers[bytes(self._header_name).lower()] = bytes(self._header_value)
        self._header_name, self._header_value = bytearray(), bytearray()

    def on_headers_finished(self) -> None:
        part = self.parts[-1]
        _, options = parse_options_header(part.headers.get(b"content-disposition"))
        if b"name" not in options:
            raise RequestError("Not a valid multipart form: a part has no name.")
        part.name = options[b"name"].decode("utf-8", "replace")
        if b"filename" in options:
            part.filename = options[b"filename"].decode("utf-8", "replace")
        if part.headers.get(b"content-type", b"").strip().lower().startswith(b"multipart/"):
            raise RequestError(f'The part "{part.name}" is a nested multipart form. Send its fields directly.')
        encoding = part.headers.get(b"content-transfer-encoding", b"").strip().lower()
        if encoding not in _PLAIN_ENCODINGS:
            raise RequestError(f'The part "{part.name}" has a Content-Transfer-Encoding. Send its bytes unencoded.')

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self.parts[-1].content += data[start:end]

    def on_end(self) -> None:
        self.is_complete = True


def parse_multipart(body: bytes, content_type: str, most: int = MAX_PARTS) -> list[Part]:
    """Return the parts of a form in order. Takes linear time: a nested form is never parsed."""
    _, options = parse_options_header(content_type)
    collector = _Collector(most)
    names = ("part_begin", "header_field", "header_value", "header_end", "headers_finished", "part_data", "end")
    try:
        parser = MultipartParser(
            options.get(b"boundary", b""),
            {f"on_{name}": getattr(collector, f"on_{name}") for name in names},  # type: ignore[arg-type]
        )
        parser.write(body)
    except FormParserError as error:
        raise RequestError(f"Not a valid multipart form: {error}.") from None
    if b"boundary" not in options or not collector.is_complete:
        raise RequestError("Not a valid multipart form: it does not end with its boundary.")
    return collector.parts
