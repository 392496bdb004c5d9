"""POST /suggest: translations suggested by users, appended to a file of JSON lines."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request

from heedful.errors import InputError, MachineError, UsageError, cause
from heedful.serving.limits import Limits
from heedful.serving.openapi_schema import ERRORS, SUGGEST, SUGGEST_ERRORS, body
from heedful.serving.requests import RequestError
from heedful.text.text_files import check_text

ReadFields = Callable[[Request, Limits], Awaitable[Mapping[str, Any]]]
_LONGEST_CODE = 35  # characters of a language code (RFC 5646, section 4.4.1)
_LONGEST_LINE = 10**6  # bytes that are inspected
_OWN_START = b'{"q": "'  # of every suggestion
_OWN_KEYS = {"q", "s", "source", "target"}


class Suggestions:
    """An append-only file. Each suggestion is on disk before it is acknowledged."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path, self.most_bytes = path, most_bytes
        self.lock = asyncio.Lock()
        try:
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._require_own_lines()
            self._end_last_line()
        except OSError as error:
            raise MachineError(f"Cannot write suggestions to {path}: {cause(error)}. Choose another file.") from None

    def _require_own_lines(self) -> None:
        """Raise UsageError for any other file, such as training text.

        A crash may have truncated the last line.
        """
        start = max(0, os.fstat(self.file).st_size - _LONGEST_LINE)
        last = os.pread(self.file, _LONGEST_LINE, start).rstrip().rpartition(b"\n")[2]
        if last and not _is_own(last):
            os.close(self.file)
            raise UsageError(
                f"`--suggestions {self.path}` is not a suggestions file: its last line is not a JSON object with "
                "q, s, source and target. Choose another file, or the name of a new one."
            )

    def _end_last_line(self) -> None:
        """End a partial last line, which a crash may have left."""
        size = os.fstat(self.file).st_size
        if size and os.pread(self.file, 1, size - 1) != b"\n":
            os.write(self.file, b"\n")

    async def add(self, suggestion: Mapping[str, str]) -> None:
        # ASCII only, so that no reader sees a line break inside the line (U+2028).
        line = json.dumps(suggestion, ensure_ascii=True).encode("ascii") + b"\n"
        async with self.lock:
            await asyncio.to_thread(self._append, line)

    def _append(self, line: bytes) -> None:
        size = os.fstat(self.file).st_size
        if size + len(line) > self.most_bytes:
            raise RequestError(f"The suggestions file has reached its limit of {self.most_bytes:,} bytes.", 507)
        try:
            written = os.write(self.file, line)
            os.fsync(self.file)
        except OSError as error:
            os.ftruncate(self.file, size)
            raise RequestError(f"The suggestion could not be saved: {cause(error)}.", 507) from None
        if written < len(line):  # the disk is full; remove the partial line
            os.ftruncate(self.file, size)
            raise RequestError("The suggestion could not be saved: the disk is full.", 507)

    def close(self) -> None:
        os.close(self.file)


def _is_own(line: bytes) -> bool:
    """Return whether a line is a suggestion, or the beginning of one."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return _OWN_START.startswith(line[: len(_OWN_START)])
    return isinstance(content, dict) and content.keys() == _OWN_KEYS


def suggest_request(fields: Mapping[str, Any], limits: Limits) -> dict[str, str]:
    """Return q, s, source and target. Raise LibreTranslate's error if one is missing."""
    most = {"q": limits.characters, "s": limits.characters, "source": _LONGEST_CODE, "target": _LONGEST_CODE}
    for name, characters in most.items():
        value = fields.get(name)
        if not value:
            raise RequestError(f"Invalid request: missing {name} parameter")
        if not isinstance(value, str):
            raise RequestError(f"Invalid request: {name} parameter is not a string")
        if len(value) > characters:
            raise RequestError(f"Invalid request: {name} ({len(value)}) exceeds text limit ({characters})")
        try:
            check_text(value, name)
        except InputError as error:
            raise RequestError(str(error)) from None
    return {name: fields[name] for name in most}


def add_suggestion_routes(
    app: FastAPI, suggestions: Suggestions | None, limits: Limits, read_fields: ReadFields
) -> None:
    """Add POST /suggest. Without `suggestions` it answers 403."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        if suggestions is not None:
            suggestions.close()

    routes = APIRouter(lifespan=lifespan)

    @routes.post("/suggest", openapi_extra=body(SUGGEST), responses=ERRORS | SUGGEST_ERRORS)
    async def suggest(request: Request) -> dict[str, bool]:
        if suggestions is None:
            raise RequestError("Suggestions are disabled on this server.", 403)
        await suggestions.add(suggest_request(await read_fields(request, limits), limits))
        return {"success": True}

    app.include_router(routes)
