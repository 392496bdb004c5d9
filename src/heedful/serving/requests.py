"""The fields of a request: what they may hold, and the errors if they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.errors import HeedfulError, InputError
from heedful.serving.limits import Limits
from heedful.text.lines import check_text

FORMATS = ("text", "html")


class RequestError(HeedfulError):
    """A refused request, with its HTTP status and headers for the response."""

    def __init__(self, message: str, status: int = 400, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers or {}


class TranslateRequest(NamedTuple):
    texts: list[str]
    is_list: bool  # whether q was a list: the response then has lists too
    source: str
    target: str
    format: str
    alternatives: int


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
    """Return the text; a list becomes one text, one line for each item."""
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
