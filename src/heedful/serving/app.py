"""The API: LibreTranslate's, as its clients use it, and the pages.

POST /translate · POST /detect · GET /languages · /health · /frontend/settings · /metrics · / · /attend
Files, suggestions and the API's description have modules of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect

from heedful.errors import HeedfulError
from heedful.serving import schema
from heedful.serving.batcher import OverloadError
from heedful.serving.files import add_file_routes
from heedful.serving.head import HeadAsGet
from heedful.serving.limits import Limits
from heedful.serving.metrics import Metrics
from heedful.serving.requests import RequestError, detect_request, read_fields, translate_request
from heedful.serving.service import TranslationService
from heedful.serving.spec import add_spec_routes
from heedful.serving.suggestions import Suggestions, add_suggestion_routes
from heedful.version import __version__

T = TypeVar("T")
_PAGE = Path(__file__).parent / "page"
_GONE = 499  # nobody reads it: the client has closed the connection


def create_app(service: TranslationService, suggestions: Suggestions | None = None) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        await service.batcher.close()

    app = FastAPI(title="heedful", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    metrics = Metrics(service.batcher)
    _add_translation(app, service, metrics)
    _add_facts(app, service, metrics, suggestions is not None)
    add_file_routes(app, service)
    add_suggestion_routes(app, suggestions, service.limits, _fields)
    add_spec_routes(app)
    _add_errors(app)
    app.add_middleware(HeadAsGet)
    app.add_middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST"], allow_headers=["*"])
    app.add_middleware(metrics.middleware)
    return app


def _add_translation(app: FastAPI, service: TranslationService, metrics: Metrics) -> None:
    limits = service.limits

    @app.post("/translate", openapi_extra=schema.body(schema.TRANSLATE), responses=schema.ERRORS)
    async def translate(request: Request) -> Response:
        asked = translate_request(await _fields(request, limits), limits)
        metrics.characters.inc(sum(map(len, asked.texts)))
        answer = await _unless_gone(request, service.translate(asked))
        return Response(status_code=_GONE) if answer is None else JSONResponse(answer)

    @app.post("/detect", openapi_extra=schema.body(schema.DETECT), responses=schema.ERRORS)
    async def detect(request: Request) -> JSONResponse:
        return JSONResponse(service.detect(detect_request(await _fields(request, limits), limits)))

    @app.post("/attend", openapi_extra=schema.body(schema.ATTEND), responses=schema.ERRORS, response_class=HTMLResponse)
    async def attend(request: Request) -> Response:
        asked = translate_request(await _fields(request, limits), limits)
        page = await _unless_gone(request, service.attend(asked))
        return Response(status_code=_GONE) if page is None else HTMLResponse(page)


def _add_facts(app: FastAPI, service: TranslationService, metrics: Metrics, has_suggestions: bool) -> None:
    page = _page()

    @app.get("/", response_class=HTMLResponse)
    async def front() -> HTMLResponse:
        return HTMLResponse(page)

    @app.get("/languages")
    async def languages() -> list[dict[str, Any]]:
        return service.languages()

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        return service.settings(has_suggestions)

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics_page() -> Response:
        return Response(metrics.page(), media_type=metrics.content_type)


def _page() -> str:
    """One document with nothing to fetch but translations."""
    parts = {name: (_PAGE / f"translate.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    return parts["html"].replace("@STYLE@", parts["css"]).replace("@SCRIPT@", parts["js"])


def _add_errors(app: FastAPI) -> None:
    """Every error is {"error": "…"}, as LibreTranslate's are."""

    @app.exception_handler(RequestError)
    async def refused(_: Request, error: RequestError) -> JSONResponse:
        return _error(error.status, str(error))

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=_GONE)

    @app.exception_handler(OverloadError)
    async def overloaded(_: Request, error: OverloadError) -> JSONResponse:
        return _error(503, str(error), {"Retry-After": str(error.seconds)})

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        return _error(error.status_code, error.detail, dict(error.headers or {}))

    @app.exception_handler(HeedfulError)
    async def failed(_: Request, error: HeedfulError) -> JSONResponse:
        return _error(500, str(error))

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSONResponse:
        return _error(500, f"The server failed: {type(error).__name__}. Its log says more.")


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)


async def _fields(request: Request, limits: Limits) -> Any:
    """The body is counted as it comes, and left where it exceeds the limit."""
    too_large = RequestError(f"The body is larger than the {limits.body:,} bytes of a request.", 413)
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:18]) > limits.body:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.body:
            raise too_large
    return read_fields(bytes(body), request.headers.get("content-type", ""), request.url.query)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work gives; None, and no more work, where the client closes the connection before."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
        gone.cancel()
