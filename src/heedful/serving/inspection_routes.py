"""The web app's pages (GET /, /attend, /inside) and their data (POST /inspect, …)."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from heedful.serving import openapi_schema
from heedful.serving.disconnects import until_disconnected
from heedful.serving.inspection_service import InspectionService
from heedful.serving.request_handling import checked_fields, checked_query
from heedful.serving.requests import integer_field, text_field
from heedful.serving.security_headers import content_policy, html_page
from heedful.serving.service import TranslationService
from heedful.views.app_page import app_page, app_template

_TITLES = {"translate": "heedful: translate", "attend": "heedful: attention", "inside": "heedful: inside"}


def add_inspection_routes(app: FastAPI, service: TranslationService) -> None:
    inspections = InspectionService(service)
    _add_pages(app, inspections)
    _add_data(app, inspections)


def _add_pages(app: FastAPI, inspections: InspectionService) -> None:
    policy = content_policy(app_template())

    def page(view: str, data: Mapping[str, Any]) -> HTMLResponse:
        content = {"view": view, "server": True, "chosen": 1, "sentences": [], **data}
        return html_page(app_page(_TITLES[view], content), policy)

    async def inspected(request: Request, view: str) -> Response:
        if "q" not in request.query_params:
            return page(view, {})  # the page asks for a sentence
        fields = await checked_query(request, inspections.limits)
        return page(view, await until_disconnected(request, inspections.data(inspections.request(fields))))

    @app.get("/", response_class=HTMLResponse)
    async def translate_page() -> HTMLResponse:
        return page("translate", {})

    described: dict[str, Any] = {
        "openapi_extra": openapi_schema.query(openapi_schema.INSPECT),
        "responses": openapi_schema.ERRORS,
        "response_class": HTMLResponse,
    }

    @app.get("/attend", **described)
    async def attend(request: Request) -> Response:
        return await inspected(request, "attend")

    @app.get("/inside", **described)
    async def inside(request: Request) -> Response:
        return await inspected(request, "inside")


def _add_data(app: FastAPI, inspections: InspectionService) -> None:
    async def answer(request: Request, work: Coroutine[Any, Any, dict[str, Any]]) -> Response:
        return JSONResponse(await until_disconnected(request, work))

    def described(schema: dict[str, Any]) -> dict[str, Any]:
        return {"openapi_extra": openapi_schema.body(schema), "responses": openapi_schema.ERRORS}

    @app.post("/inspect", **described(openapi_schema.INSPECT))
    async def inspect(request: Request) -> Response:
        fields = await checked_fields(request, inspections.limits)
        return await answer(request, inspections.data(inspections.request(fields)))

    @app.post("/inspect/contrast", **described(openapi_schema.CONTRAST))
    async def contrast(request: Request) -> Response:
        fields = await checked_fields(request, inspections.limits)
        position, other = integer_field(fields, "position"), integer_field(fields, "other")
        return await answer(request, inspections.contrast(inspections.request(fields), position, other))

    @app.post("/inspect/steps", **described(openapi_schema.STEPS))
    async def steps(request: Request) -> Response:
        fields = await checked_fields(request, inspections.limits)
        layer, head, position = (integer_field(fields, name) for name in ("layer", "head", "position"))
        kind = text_field(fields, "kind")
        return await answer(request, inspections.steps(inspections.request(fields), kind, layer, head, position))
