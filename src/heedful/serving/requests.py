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
    if kind == "application/x-www-form-urlencoded":
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
        raise RequestError("The body must be a JSON object.")
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
        raise RequestError(f'format must be "text" or "html", not "{kind}".')
    source, target = _word(fields, "source").lower(), _word(fields, "target").lower()
    return TranslateRequest(texts, is_list, source, target, kind, _alternatives(fields, limits))


def sentence_number(fields: Mapping[str, Any]) -> int:
    """`sentence`: which sentence of q to show attention for, counted from 1; the first by default."""
    given = _word(fields, "sentence", "1")
    if not (given.isascii() and given.isdecimal() and len(given) < 10):
        raise RequestError(f'sentence must be a number from 1, not "{given}".')
    return int(given)


def detect_request(fields: Mapping[str, Any], limits: Limits) -> str:
    """A list is one text of several lines."""
    return "\n".join(_texts(fields, limits)[0])


def _texts(fields: Mapping[str, Any], limits: Limits) -> tuple[list[str], bool]:
    given = fields.get("q")
    if given is None:
        raise RequestError("q is missing: the text to translate.")
    texts = given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) for text in texts):
        raise RequestError("q must be a text or a list of texts.")
    if len(texts) > limits.texts:
        raise RequestError(f"q has {len(texts):,} texts, more than the {limits.texts:,} of a request.")
    characters = sum(map(len, texts))
    if characters > limits.characters:
        raise RequestError(f"q has {characters:,} characters, more than the {limits.characters:,} of a request.")
    try:
        for text in texts:
            check_text(text, "q")
    except InputError as error:
        raise RequestError(str(error)) from None
    return texts, isinstance(given, list)


def _word(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if value is None or value == "":
        if default is None:
            raise RequestError(f"{name} is missing.")
        return default
    if not isinstance(value, str):
        raise RequestError(f"{name} must be a text.")
    return value


def _alternatives(fields: Mapping[str, Any], limits: Limits) -> int:
    given = fields.get("alternatives") or 0
    if isinstance(given, str) and given.isdecimal() and len(given) < 10:
        given = int(given)
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= limits.alternatives:
        raise RequestError(f"alternatives must be a number from 0 to {limits.alternatives}.")
    return given
