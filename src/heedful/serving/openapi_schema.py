"""What the API's description (/openapi.json) says of bodies and errors; `requests.py` is what holds."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_TEXTS = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}], "description": "a text, or a list of texts"}
_FIELDS: dict[str, Any] = {
    "q": _TEXTS,
    "source": {"type": "string", "description": 'a language of /languages, or "auto"'},
    "target": {"type": "string", "description": "one of the targets of the source language"},
    "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
    "alternatives": {"type": "integer", "minimum": 0, "default": 0},
    "api_key": {"type": "string", "description": "an API key, if the server requires one"},
}


def _object(required: list[str], **fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": fields}


TRANSLATE = _object(["q", "source", "target"], **_FIELDS)
DETECT = _object(["q"], q=_TEXT, api_key=_FIELDS["api_key"])
ATTEND = _object(
    ["q", "source", "target"],
    q=_TEXT,
    source=_FIELDS["source"],
    target=_FIELDS["target"],
    sentence={"type": "integer", "minimum": 1, "default": 1, "description": "which sentence of q is shown"},
)
SUGGEST = _object(["q", "s", "source", "target"], q=_TEXT, s=_TEXT, source=_TEXT, target=_TEXT)
FILE = _object(
    ["file", "source", "target"],
    file={"type": "string", "format": "binary", "description": "a .txt, .html or .srt file in UTF-8"},
    source=_FIELDS["source"],
    target=_FIELDS["target"],
    api_key=_FIELDS["api_key"],
)

_ERROR = {"content": {"application/json": {"schema": _object(["error"], error=_TEXT)}}}
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"description": "what was wrong with the request", **_ERROR},
    403: {"description": "no valid API key, or a page of another site", **_ERROR},
    413: {"description": "the body is too large", **_ERROR},
    415: {"description": "neither JSON nor a form", **_ERROR},
    421: {"description": "the Host header names another server", **_ERROR},
    429: {"description": "above the rate limit; Retry-After says when to try again", **_ERROR},
    503: {"description": "busy; Retry-After says when to try again", **_ERROR},
}
SUGGEST_ERRORS: dict[int | str, dict[str, Any]] = {
    403: {"description": "suggestions are disabled on this server", **_ERROR},
    507: {"description": "the file of suggestions has reached its limit, or the disk is full", **_ERROR},
}


def body(content: dict[str, Any]) -> dict[str, Any]:
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {kind: {"schema": content} for kind in kinds}}}


def query(content: dict[str, Any]) -> dict[str, Any]:
    """The fields of an object as query parameters."""
    parameters = [
        {"name": name, "in": "query", "required": name in content["required"], "schema": field}
        for name, field in content["properties"].items()
    ]
    return {"parameters": parameters}


def multipart(content: dict[str, Any]) -> dict[str, Any]:
    """An operation whose body is a form with a file."""
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": content}}}}
