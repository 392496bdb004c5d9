"""Validation of request fields, with LibreTranslate's error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.errors import HeedfulError, InputError
from heedful.serving.limits import Limits
from heedful.text.text_files import check_text

FORMATS = ("text", "html")


class RequestError(HeedfulError):
    """A rejected request, with HTTP status and headers of the response."""

    def __init__(self, message: str, status: int = 400, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers or {}


def missing(name: str) -> RequestError:
    """Return LibreTranslate's error for a missing field, whose text clients compare."""
    return RequestError(f"Invalid request: missing {name} parameter")


class TranslateRequest(NamedTuple):
    texts: list[str]
    is_list: bool  # whether q was a list; then the response has lists too
    source: str
    target: str
    format: str
    alternatives: int


def translate_request(fields: Mapping[str, Any], limits: Limits) -> TranslateRequest:
    texts, is_list = _texts(fields, limits)
    kind = text_field(fields, "format", "text")
    if kind not in FORMATS:
        raise RequestError(f"{kind} format is not supported")
    source, target = text_field(fields, "source").lower(), text_field(fields, "target").lower()
    return TranslateRequest(texts, is_list, source, target, kind, _alternatives(fields, limits))


def integer_field(fields: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """Return an integer of at least 0, given as a number or as text."""
    given = fields.get(name, default)
    text = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    if text is None or text == "":
        if default is None:
            raise missing(name)
        return default
    if not (isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 10):
        shown = _checked_text(str(given), name)[:40]
        raise RequestError(f'{name} must be a non-negative integer, not "{shown}".')
    return int(text)


def detect_request(fields: Mapping[str, Any], limits: Limits) -> str:
    """Return the text; a list becomes one text with one line per item."""
    return "\n".join(_texts(fields, limits)[0])


def _texts(fields: Mapping[str, Any], limits: Limits) -> tuple[list[str], bool]:
    given = fields.get("q")
    if given is None or given in ("", []):
        raise missing("q")
    texts = given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) for text in texts):
        raise RequestError("q must be a string or a list of strings.")
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


def _checked_text(text: str, name: str) -> str:
    """Return the text. Reject lone surrogates, which a response could not contain."""
    try:
        return check_text(text, name)
    except InputError as error:
        raise RequestError(str(error)) from None


def text_field(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if value is None or value == "":
        if default is None:
            raise missing(name)
        return default
    if not isinstance(value, str):
        raise RequestError(f"{name} must be a string.")
    return _checked_text(value, name)


def _alternatives(fields: Mapping[str, Any], limits: Limits) -> int:
    try:
        number = max(0, int(fields.get("alternatives") or 0))
    except (TypeError, ValueError, OverflowError):
        raise RequestError("Invalid request: alternatives parameter is not a number") from None
    if number > limits.alternatives:
        raise RequestError(f"Invalid request: alternatives parameter must be <= {limits.alternatives}")
    return number
