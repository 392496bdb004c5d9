"""Lines of text, from files or a stream, one at a time and checked.

A line ends at \\n or \\r\\n and nowhere else (never `str.splitlines`, which also breaks at U+2028 and others).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol, cast

from heedful.errors import CorpusError, InputError

MAX_LINE_BYTES = 16 * 1024 * 1024  # one line in memory; a longer one is a wrong file, not a sentence


class Readable(Protocol):
    """What lines are read from: a file, standard input, a terminal that prompts."""

    def readline(self, size: int, /) -> bytes: ...


_BOM = b"\xef\xbb\xbf"


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a plain or .gz file. Errors name file and line."""
    if path.is_dir():
        raise CorpusError(f"{path} is a directory, not a text file.")
    try:
        with _open(path) as stream:
            yield from decode_lines(stream, str(path))
    except FileNotFoundError:
        raise CorpusError(f"There is no file {path}.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{path} cannot be read: {error}.") from None


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def decode_lines(stream: Readable, name: str) -> Iterator[str]:
    """UTF-8 lines without their ends; a byte-order mark at the start is dropped."""
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            raise CorpusError(
                f"{name}:{number}: the line is longer than {MAX_LINE_BYTES:,} bytes. "
                "A sentence or paragraph a line is expected: is this a text file?"
            )
        if number == 1:
            raw = raw.removeprefix(_BOM)
        yield _decoded(raw, name, number)


def _decoded(raw: bytes, name: str, number: int) -> str:
    if raw.endswith(b"\n"):
        raw = raw[:-2] if raw.endswith(b"\r\n") else raw[:-1]
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{name}:{number}: not UTF-8: byte {raw[error.start]:#04x} at position {error.start + 1} of the line. "
            "Convert the file, for example: iconv -f LATIN1 -t UTF-8"
        ) from None


def check_text(text: str, where: str) -> str:
    """Refuses a lone surrogate, the one thing a Python string can hold and UTF-8 cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: character {error.start + 1} is a lone surrogate (U+{ord(text[error.start]):04X}), "
            "which is no text. Decode the input properly, or replace it."
        ) from None
    return text


def one_line(text: str) -> str:
    """Text for a line of output: a newline made by byte tokens becomes a space."""
    return text.replace("\r", " ").replace("\n", " ")
