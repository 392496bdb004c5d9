"""OpenAPI schemas of request bodies and errors (/openapi.json); requests.py validates."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_TEXTS = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}], "description": "a text or a list of texts"}
_FIELDS: dict[str, Any] = {
    "q": _TEXTS,
    "source": {"type": "string", "description": 'a language code from /languages, or "auto"'},
    "target": {"type": "string", "description": "one of the targets of the source language"},
    "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
    "alternatives": {"type": "integer", "minimum": 0, "default": 0},
    "api_key": {"type": "string", "description": "an API key, if the server requires one"},
}


def _object(required: list[str], **fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": fields}


TRANSLATE = _object(["q", "source", "target"], **_FIELDS)
DETECT = _object(["q"], q=_TEXT, api_key=_FIELDS["api_key"])
_POSITION = {"type": "integer", "minimum": 0, "description": "a position of the sentence, counted from 0"}
_INSPECTED: dict[str, Any] = {
    "q": _TEXT,
    "source": _FIELDS["source"],
    "target": _FIELDS["target"],
    "sentence": {"type": "integer", "minimum": 1, "default": 1, "description": "number of the sentence of q to show"},
    "translation": {"type": "string", "description": "the translation to inspect; by default the model's own"},
    "off": {"type": "string", "description": "attention heads to switch off, for example cross.2.1,encoder.1.4"},
    "beam": {"type": "integer", "minimum": 1, "description": "beam width; by default the model's own"},
    "api_key": _FIELDS["api_key"],
}
INSPECT = _object(["q", "source", "target"], **_INSPECTED)
CONTRAST = _object(
    ["q", "source", "target", "position", "other"],
    **_INSPECTED,
    position=_POSITION,
    other={"type": "integer", "minimum": 0, "description": "id of the token to compare with"},
)
STEPS = _object(
    ["q", "source", "target", "kind", "layer", "head", "position"],
    **_INSPECTED,
    kind={"type": "string", "enum": ["encoder", "decoder", "cross"]},
    layer={"type": "integer", "minimum": 0},
    head={"type": "integer", "minimum": 0},
    position=_POSITION,
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
    400: {"description": "invalid request; the message says what is wrong", **_ERROR},
    403: {"description": "no valid API key, or a cross-origin request", **_ERROR},
    413: {"description": "the body is too large", **_ERROR},
    415: {"description": "neither JSON nor a form", **_ERROR},
    421: {"description": "the Host header is not allowed", **_ERROR},
    429: {"description": "rate limit exceeded; see Retry-After", **_ERROR},
    503: {"description": "server busy; see Retry-After", **_ERROR},
}
SUGGEST_ERRORS: dict[int | str, dict[str, Any]] = {
    403: {"description": "suggestions are disabled on this server", **_ERROR},
    507: {"description": "the suggestions file has reached its limit, or the disk is full", **_ERROR},
}


def body(content: dict[str, Any]) -> dict[str, Any]:
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {kind: {"schema": content} for kind in kinds}}}


def query(content: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an object as query parameters."""
    parameters = [
        {"name": name, "in": "query", "required": name in content["required"], "schema": field}
        for name, field in content["properties"].items()
    ]
    return {"parameters": parameters}


def multipart(content: dict[str, Any]) -> dict[str, Any]:
    """Return a request body that is a multipart form with a file."""
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": content}}}}
