"""GET /spec and GET /docs: Swagger 2.0 (as in LibreTranslate) and Swagger UI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from heedful.version import __version__

_TEXT = {"type": "string"}
_LANGUAGE = {"type": "object", "properties": {"code": _TEXT, "name": _TEXT}}
_DETECTED = {"type": "object", "properties": {"confidence": {"type": "number"}, "language": _TEXT}}
_ERRORS = {
    "400": "Invalid request",
    "403": "Not allowed",
    "413": "The request is too large",
    "429": "Rate limit exceeded",
    "500": "Translation error",
    "503": "The server is busy",
}
_FIELDS: dict[str, tuple[str, dict[str, Any]]] = {
    "q": ("Text to translate", {"x-example": "The old man is reading."}),
    "s": ("Suggested translation", {}),
    "source": ('Source language code, or "auto"', {}),
    "target": ("Target language code", {}),
    "format": ("Format of the text", {"enum": ["text", "html"], "default": "text"}),
    "alternatives": ("Number of alternative translations", {"type": "integer", "default": 0}),
    "api_key": ("API key", {}),
    "file": ("A .txt, .html or .srt file in UTF-8", {"type": "file"}),
}
_OPTIONAL = ("format", "alternatives", "api_key")


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _get(tag: str, summary: str, answer: dict[str, Any]) -> dict[str, Any]:
    responses = {"200": {"description": summary, "schema": answer}}
    return {"get": {"tags": [tag], "summary": summary, "produces": ["application/json"], "responses": responses}}


def _post(tag: str, summary: str, answer: dict[str, Any], *fields: str) -> dict[str, Any]:
    form = "multipart/form-data" if "file" in fields else "application/x-www-form-urlencoded"
    errors = {status: {"description": what, "schema": _object(error=_TEXT)} for status, what in _ERRORS.items()}
    return {
        "post": {
            "tags": [tag],
            "summary": summary,
            "consumes": [form],
            "produces": ["application/json"],
            "parameters": [_parameter(name) for name in fields],
            "responses": {"200": {"description": summary, "schema": answer}, **errors},
        }
    }


def _parameter(name: str) -> dict[str, Any]:
    description, more = _FIELDS[name]
    required = name not in _OPTIONAL
    return {"in": "formData", "name": name, "type": "string", "description": description, "required": required, **more}


_TRANSLATED = _object(translatedText=_TEXT, detectedLanguage=_DETECTED, alternatives=_array(_TEXT))
_SETTINGS = _object(
    apiKeys={"type": "boolean"},
    charLimit={"type": "integer"},
    filesTranslation={"type": "boolean"},
    frontendTimeout={"type": "integer"},
    keyRequired={"type": "boolean"},
    language=_object(source=_LANGUAGE, target=_LANGUAGE),
    suggestions={"type": "boolean"},
    supportedFilesFormat=_array(_TEXT),
)
SPEC: dict[str, Any] = {
    "swagger": "2.0",
    "info": {
        "title": "heedful",
        "version": __version__,
        "description": "LibreTranslate-compatible translation API. Requests may be forms or JSON; "
        "/openapi.json describes every path.",
    },
    "basePath": "/",
    "tags": [{"name": "translate"}, {"name": "misc"}],
    "paths": {
        "/translate": _post(
            *("translate", "Translate text", _TRANSLATED),
            *("q", "source", "target", "format", "alternatives", "api_key"),
        ),
        "/translate_file": _post(
            *("translate", "Translate a file", _object(translatedFileUrl=_TEXT)),
            *("file", "source", "target", "api_key"),
        ),
        "/detect": _post("translate", "Detect the language of a text", _array(_DETECTED), "q", "api_key"),
        "/languages": _get(
            "translate", "List the languages", _array(_object(code=_TEXT, name=_TEXT, targets=_array(_TEXT)))
        ),
        "/suggest": _post(
            "misc", "Suggest a better translation", _object(success={"type": "boolean"}), "q", "s", "source", "target"
        ),
        "/frontend/settings": _get("misc", "Settings of the web app", _SETTINGS),
        "/health": _get("misc", "Health check", _object(status=_TEXT)),
    },
}

_SWAGGER_UI = Path(__file__).parent / "page" / "swagger"
_FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript", "start.js": "text/javascript"}
# Swagger UI's style sheet uses data: URLs. Styles set from its script are not restricted by CSP.
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def add_spec_routes(app: FastAPI) -> None:
    """Add GET /spec, GET /docs and the files of Swagger UI below /docs/."""

    @app.get("/spec", include_in_schema=False)
    async def spec() -> dict[str, Any]:
        return SPEC

    page = (_SWAGGER_UI / "docs.html").read_text(encoding="utf-8")
    # LibreTranslate's page is at /docs/. Links are relative, so that a proxy can serve it below another path.
    for path, content in {"/docs": page, "/docs/": page.replace('="docs/', '="')}.items():
        app.add_api_route(path, _page(content), include_in_schema=False, response_class=HTMLResponse)
    for name, kind in _FILES.items():
        app.add_api_route(f"/docs/{name}", _file(name, kind), include_in_schema=False, response_model=None)


def _page(content: str) -> Any:
    async def page() -> HTMLResponse:
        return HTMLResponse(content, headers={"Content-Security-Policy": DOCS_POLICY})

    return page


def _file(name: str, kind: str) -> Any:
    path = _SWAGGER_UI / name

    async def file(request: Request) -> Response:
        headers = {"Cache-Control": "no-cache"}  # revalidated by ETag
        whole = FileResponse(path, media_type=kind, headers=headers, stat_result=path.stat())
        etag = whole.headers["etag"]
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers={**headers, "ETag": etag})
        return whole

    return file
