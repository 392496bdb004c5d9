"""The LibreTranslate-compatible HTTP API and the web app.

POST /translate · POST /detect · GET /languages · /health · /frontend/settings · /metrics
The web app, files, suggestions and the API description have their own modules.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from heedful.errors import HeedfulError
from heedful.serving import openapi_schema
from heedful.serving.access_control import Access
from heedful.serving.access_middleware import AccessMiddleware, RateLimitMiddleware, SecurityHeadersMiddleware
from heedful.serving.batcher import OverloadError
from heedful.serving.disconnects import until_disconnected
from heedful.serving.file_routes import add_file_routes
from heedful.serving.head_requests import HeadMiddleware
from heedful.serving.inspection_routes import add_inspection_routes
from heedful.serving.metrics import Metrics, TimingMiddleware
from heedful.serving.request_handling import checked_fields
from heedful.serving.request_log import RequestLog
from heedful.serving.requests import RequestError, detect_request, translate_request
from heedful.serving.security_headers import SECURITY_HEADERS
from heedful.serving.service import TranslationService
from heedful.serving.suggestions import Suggestions, add_suggestion_routes
from heedful.serving.swagger import add_spec_routes
from heedful.version import __version__

_TEXT_THREADS = 2  # for parsing, segmentation and language detection
_CLIENT_DISCONNECTED = 499  # for the metrics: the client closed the connection before the response


def create_app(
    service: TranslationService,
    suggestions: Suggestions | None = None,
    *,
    access: Access | None = None,
    request_log: RequestLog | None = None,
) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Few threads: each holds the GIL for milliseconds, and the event loop waits for all of them in turn.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_TEXT_THREADS, "text"))
        service.batcher.start()
        yield
        await service.batcher.close()

    access = access or Access()
    app = FastAPI(title="heedful", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.access = access
    metrics = Metrics(service.batcher)
    _add_translation(app, service, metrics)
    add_inspection_routes(app, service)
    _add_facts(app, service, metrics, access, suggestions is not None)
    add_file_routes(app, service)
    add_suggestion_routes(app, suggestions, service.limits, checked_fields)
    add_spec_routes(app)
    _add_errors(app)
    _add_middleware(app, metrics, access, request_log)
    return app


def _add_middleware(app: FastAPI, metrics: Metrics, access: Access, request_log: RequestLog | None) -> None:
    """Add the middleware; a request passes the last one added first."""
    paths = {getattr(route, "path", "") for route in app.routes}

    def note(scope: Scope, status: int, seconds: float) -> None:
        # Only known paths become labels, so that clients cannot grow the metrics without bound.
        metrics.note(scope["path"] if scope["path"] in paths else "other", status, seconds)
        if request_log is not None:
            path = scope.get("raw_path", b"").partition(b"?")[0].decode("latin-1")
            request_log.note(access.client(scope), scope["method"], path, status, seconds)

    app.add_middleware(HeadMiddleware)
    if access.rate_limit:  # inside CORS, so that a page of an allowed origin can read the 429
        app.add_middleware(RateLimitMiddleware, access=access, limit=access.rate_limit)
    if access.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=access.cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(AccessMiddleware, access=access)  # outside CORS, so that preflight requests are checked too
    app.add_middleware(SecurityHeadersMiddleware)
    app.add_middleware(TimingMiddleware, note=note)


def _add_translation(app: FastAPI, service: TranslationService, metrics: Metrics) -> None:
    limits = service.limits

    @app.post(
        "/translate", openapi_extra=openapi_schema.body(openapi_schema.TRANSLATE), responses=openapi_schema.ERRORS
    )
    async def translate(request: Request) -> Response:
        wanted = translate_request(await checked_fields(request, limits), limits)
        metrics.characters.inc(sum(map(len, wanted.texts)))
        return JSONResponse(await until_disconnected(request, service.translate(wanted)))

    @app.post("/detect", openapi_extra=openapi_schema.body(openapi_schema.DETECT), responses=openapi_schema.ERRORS)
    async def detect(request: Request) -> JSONResponse:
        text = detect_request(await checked_fields(request, limits), limits)
        return JSONResponse(await asyncio.to_thread(service.detect, text))


def _add_facts(
    app: FastAPI, service: TranslationService, metrics: Metrics, access: Access, has_suggestions: bool
) -> None:
    @app.get("/languages")
    async def languages() -> list[dict[str, Any]]:
        return service.languages()

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        has_keys = bool(access.api_keys)
        return {**service.settings(has_suggestions), "apiKeys": has_keys, "keyRequired": has_keys}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics_page(request: Request) -> Response:
        if not access.is_local(request.scope) and not access.has_key(request.headers, request.query_params):
            raise RequestError("/metrics is available only to clients on this machine or with an API key.", 403)
        return Response(metrics.page(), media_type=metrics.content_type)


def _add_errors(app: FastAPI) -> None:
    """Make every error response {"error": "…"}, as in LibreTranslate."""

    @app.exception_handler(RequestError)
    async def refused(_: Request, error: RequestError) -> JSONResponse:
        return _error(error.status, str(error), error.headers)

    @app.exception_handler(ClientDisconnect)
    async def disconnected(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=_CLIENT_DISCONNECTED)

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
    async def crashed(_: Request, error: Exception) -> JSONResponse:
        # Starlette sends this response outside the middleware, so the headers are added here.
        message = f"Internal error: {type(error).__name__}. See the server log for details."
        return _error(500, message, SECURITY_HEADERS)


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    message = message.encode("utf-8", "replace").decode("utf-8")  # it may contain a lone surrogate
    return JSONResponse({"error": message}, status, headers)
