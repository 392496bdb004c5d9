"""Request bodies: JSON and forms, read within the limits and parsed off the event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from heedful.errors import cause
from heedful.serving.limits import Limits
from heedful.serving.multipart import MAX_PARTS, parse_multipart
from heedful.serving.requests import RequestError

_SMALL = 10_000  # bytes; parsing takes about a millisecond, less than a thread switch under load


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body. Stop reading as soon as it exceeds the limit."""
    too_large = RequestError(f"The request body exceeds the limit of {limits.body:,} bytes.", 413)
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:18]) > limits.body:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.body:
            raise too_large
    return bytes(body)


async def request_fields(request: Request, limits: Limits) -> Mapping[str, Any]:
    """Return the fields of a request by name."""
    body, query = await read_body(request, limits), request.url.query
    content_type = request.headers.get("content-type", "")
    if len(body) + len(query) <= _SMALL:
        return read_fields(body, content_type, query)
    _check_separators(body, limits)
    return await asyncio.to_thread(read_fields, body, content_type, query)


def _check_separators(body: bytes, limits: Limits) -> None:
    """Reject impossible bodies early: json.loads holds the GIL, so a thread would not help."""
    most = limits.characters + MAX_PARTS
    if (
        max(body.count(b":"), body.count(b",")) > most or body.count(b"%") > 4 * most
    ):  # at most four escapes per UTF-8 character
        raise RequestError(
            f"The body has more than {most:,} fields, list items or escaped characters. Split the request."
        )


def read_fields(body: bytes, content_type: str, query: str = "") -> Mapping[str, Any]:
    """Parse a body by its content type.

    LibreTranslate's own clients send forms, most others JSON.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded" or (not body and kind != "application/json"):
        return _form(_urlencoded(query) + _urlencoded(_text(body)))
    if kind == "multipart/form-data":
        parts = parse_multipart(body, content_type)
        return _form(_urlencoded(query) + [(part.name, _text(bytes(part.content))) for part in parts])
    if kind not in ("application/json", ""):
        raise RequestError(f'Content-Type "{kind}" is not supported. Send application/json or a form.', 415)
    try:
        content = json.loads(_text(body))
    except RecursionError:
        raise RequestError("Not valid JSON: it is nested too deeply.") from None
    except ValueError as error:
        raise RequestError(f"Not valid JSON: {cause(error)}.") from None
    if not isinstance(content, dict):
        raise RequestError("Invalid JSON format")  # LibreTranslate's message
    return content


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(f"The body is not UTF-8 (byte {error.start + 1:,}). Encode it as UTF-8.") from None


def _urlencoded(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARTS)
    except ValueError as error:
        raise RequestError(f"Not a valid URL-encoded form: {cause(error)}.") from None


def _form(pairs: list[tuple[str, str]]) -> Mapping[str, Any]:
    """Return the fields with CR LF replaced by LF, because browsers send CR LF in forms."""
    pairs = [(name, value.replace("\r\n", "\n")) for name, value in pairs]
    texts = [value for name, value in pairs if name == "q"]
    fields: dict[str, Any] = dict(pairs)
    return fields | ({"q": texts} if len(texts) > 1 else {})
