"""Requests as they come, JSON or a form, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from email import message_from_bytes
from email.message import Message
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from heedful.errors import HeedfulError, InputError
from heedful.serving.limits import Limits
from heedful.text.lines import check_text

FORMATS = ("text", "html")
_MOST_FIELDS = 1_000


class RequestError(HeedfulError):
    """A request that is refused, with its HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def missing(name: str) -> RequestError:
    """Clients of LibreTranslate compare this and the other sentences that begin with "Invalid request"."""
    return RequestError(f"Invalid request: missing {name} parameter")


class TranslateRequest(NamedTuple):
    texts: list[str]
    is_list: bool  # the answer has the form of the question
    source: str
    target: str
    format: str
    alternatives: int


def read_fields(body: bytes, content_type: str, query: str = "") -> Mapping[str, Any]:
    """The fields of a request by name. LibreTranslate's own clients post forms, everyone else JSON."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded" or (not body and kind != "application/json"):
        return _form(_urlencoded(query) + _urlencoded(_text(body)))
    if kind == "multipart/form-data":
        return _form(_urlencoded(query) + _multipart(body, content_type))
    if kind not in ("application/json", ""):
        raise RequestError(f'Content-Type "{kind}" is not read here. Send application/json or a form.', 415)
    try:
        content = json.loads(_text(body))
    except (ValueError, RecursionError) as error:
        raise RequestError(f"The body is no JSON: {error}.") from None
    if not isinstance(content, dict):
        raise RequestError("Invalid JSON format")
    return content


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(f"The body is not UTF-8: {error}.") from None


def _urlencoded(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise RequestError(f"The body is no urlencoded form: {error}.") from None


def _multipart(body: bytes, content_type: str) -> list[tuple[str, str]]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = message_from_bytes(head + body)
    parts = message.get_payload()
    if not isinstance(parts, list) or len(parts) > _MOST_FIELDS:
        raise RequestError("The body is no multipart form.")
    pairs = []
    for part in parts:
        assert isinstance(part, Message), "the parts of a multipart message"
        name, value = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(value, bytes):
            raise RequestError("The body is no multipart form: a part has no name.")
        pairs.append((name, _text(value)))
    return pairs


def _form(pairs: list[tuple[str, str]]) -> Mapping[str, Any]:
    """Lines of a form end with CR LF, whatever was typed."""
    pairs = [(name, value.replace("\r\n", "\n")) for name, value in pairs]
    texts = [value for name, value in pairs if name == "q"]
    fields: dict[str, Any] = dict(pairs)
    return fields | ({"q": texts} if len(texts) > 1 else {})


def translate_request(fields: Mapping[str, Any], limits: Limits) -> TranslateRequest:
    texts, is_list = _texts(fields, limits)
    kind = _word(fields, "format", "text")
    if kind not in FORMATS:
        raise RequestError(f"{kind} format is not supported")
    source, target = _word(fields, "source").lower(), _word(fields, "target").lower()
    return TranslateRequest(texts, is_list, source, target, kind, _alternatives(fields, limits))


def detect_request(fields: Mapping[str, Any], limits: Limits) -> str:
    """A list is one text of several lines."""
    return "\n".join(_texts(fields, limits)[0])


def _texts(fields: Mapping[str, Any], limits: Limits) -> tuple[list[str], bool]:
    given = fields.get("q")
    if given is None or given in ("", []):
        raise missing("q")
    texts = given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) for text in texts):
        raise RequestError("q must be a text or a list of texts.")
    if len(texts) > limits.texts:
        raise _too_much(len(texts), limits.texts)
    characters = sum(map(len, texts))
    if characters > limits.characters:
        raise _too_much(characters, limits.characters)
    try:
        for text in texts:
            check_text(text, "q")
    except InputError as error:
        raise RequestError(str(error)) from None
    return texts, isinstance(given, list)


def _too_much(size: int, most: int) -> RequestError:
    return RequestError(f"Invalid request: request ({size}) exceeds text limit ({most})")


def _word(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if value is None or value == "":
        if default is None:
            raise missing(name)
        return default
    if not isinstance(value, str):
        raise RequestError(f"{name} must be a text.")
    return value


def _alternatives(fields: Mapping[str, Any], limits: Limits) -> int:
    try:
        number = max(0, int(fields.get("alternatives") or 0))
    except (TypeError, ValueError, OverflowError):
        raise RequestError("Invalid request: alternatives parameter is not a number") from None
    if number > limits.alternatives:
        raise RequestError(f"Invalid request: alternatives parameter must be <= {limits.alternatives}")
    return number
