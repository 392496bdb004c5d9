"""Reading UTF-8 text line by line from files and streams, with validation.

A line ends only at \\n or \\r\\n. `str.splitlines` would also break at U+2028 and others.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import IO, Protocol, cast

from heedful.errors import CorpusError, InputError, cause
from heedful.text.zstandard_files import open_zstandard

MAX_LINE_BYTES = 16 * 1024 * 1024  # a longer line is not a sentence, but a wrong file


class Readable(Protocol):
    """A binary stream: a file or standard input."""

    def readline(self, size: int, /) -> bytes: ...


_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_LOOKED_AT = 200  # leading bytes from which the encoding is detected


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a plain, .gz or .zst file. Errors name file and line."""
    if path.is_dir():
        raise CorpusError(f"{path} is a directory. Pass a text file.")
    with open_text(path) as stream:
        yield from decode_lines(stream, str(path), path)


@contextmanager
def open_text(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain, .gz or .zst file for reading; turn errors into CorpusError."""
    try:
        with _open(path) as stream:
            yield stream
    except FileNotFoundError:
        raise CorpusError(f"File {path} does not exist. Check the path.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"Cannot read {path}: {cause(error)}. Check the file and its permissions.") from None


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return open_zstandard(path) if path.suffix == ".zst" else path.open("rb")


def decode_lines(stream: Readable, name: str, path: Path | None = None) -> Iterator[str]:
    """Yield UTF-8 lines without line endings; a leading byte-order mark is dropped.

    `name` is used in messages; `path` is the file, if there is one.
    """
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            raise CorpusError(
                f"{name}:{number}: the line is longer than {MAX_LINE_BYTES:,} bytes. "
                "Pass a text file with one sentence or paragraph per line."
            )
        if number == 1:
            _refuse_gzip(raw, name, path)
            _refuse_wide(raw, name, path)
            _refuse_carriage_returns(raw, name)
            raw = raw.removeprefix(_BOM)
        yield _decoded(raw, name, number)


def _refuse_gzip(start: bytes, name: str, path: Path | None) -> None:
    """Raise if the data is gzip: a file without .gz in its name, or one compressed twice."""
    if not start.startswith(_GZIP):
        return
    if path is None:
        raise CorpusError(f"{name} is compressed with gzip. Decompress it first: gzip -dc FILE | heedful …")
    if path.suffix == ".gz":
        raise CorpusError(f"{name} is compressed with gzip twice. Decompress it once: gzip -d {quote(name)}")
    rename = f"mv {quote(name)} {quote(f'{name}.gz')}"
    raise CorpusError(f"{name} is compressed with gzip, but its name does not end in .gz. Rename it: {rename}")


def _refuse_wide(start: bytes, name: str, path: Path | None) -> None:
    """Raise if the file is UTF-16 or UTF-32, with the command that converts it."""
    encoding = _wide_encoding(start)
    if encoding is None:
        return
    convert = f"iconv -f {encoding} -t UTF-8"
    if path is not None and path.suffix == ".gz":
        new = path.with_suffix("").with_suffix(f".utf8{path.with_suffix('').suffix}.gz")
        convert = f"gzip -dc {quote(str(path))} | {convert} | gzip > {quote(str(new))}"
    elif path is not None:
        convert = f"{convert} {quote(str(path))} > {quote(str(path.with_suffix(f'.utf8{path.suffix}')))}"
    raise CorpusError(f"{name} is {encoding[:6]}, not UTF-8. Convert it: {convert}")


def _refuse_carriage_returns(start: bytes, name: str) -> None:
    """Raise if carriage returns end the lines: the whole file would be one line."""
    if not start.endswith(b"\n") and b"\r" in start.rstrip(b"\r"):
        raise CorpusError(
            f"{name} has carriage returns and no newlines, so it would be a single line. "
            "Convert it: tr '\\r' '\\n' < OLD > NEW"
        )


def _wide_encoding(start: bytes) -> str | None:
    """Return UTF-16 or UTF-32 by byte-order mark, or UTF-16 by alternating NUL bytes."""
    if start.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "UTF-32"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    even, odd = (start[first:_LOOKED_AT:2].count(0) / max(1, len(start[first:_LOOKED_AT:2])) for first in (0, 1))
    if len(start) < 4 or min(even, odd) > 0 or max(even, odd) < 0.6:
        return None
    return "UTF-16LE" if odd else "UTF-16BE"


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
    """Raise for a lone surrogate, which a Python string can contain but UTF-8 cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: character {error.start + 1} is a lone surrogate (U+{ord(text[error.start]):04X}), "
            "which is not valid text. Decode the input as UTF-8, or remove the character."
        ) from None
    return text


def one_line(text: str) -> str:
    """Return text as one output line; a newline generated by byte tokens becomes a space."""
    return text.replace("\r", " ").replace("\n", " ")
