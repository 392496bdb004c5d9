"""Middleware that enforces the access rules and adds the security headers."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.serving.access_control import Access, rate_limit_group
from heedful.serving.rate_limit import RateLimiter
from heedful.serving.requests import RequestError
from heedful.serving.security_headers import SECURITY_HEADERS

_NOT_COUNTED = "/health"  # a health check must not fail because of the rate limit


class SecurityHeadersMiddleware:
    """Adds the security headers. A Content-Security-Policy that a page sets itself is kept."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers)


class AccessMiddleware:
    """Rejects requests by Host and Origin. API keys are checked with the request fields."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            try:
                self.access.check_host(headers)
                self.access.check_origin(scope["method"], headers)
            except RequestError as error:
                return await _rejection(error)(scope, receive, send)
            scope["scheme"] = self.access.scheme(scope)  # used in links and redirects
        return await self.app(scope, receive, send)


class RateLimitMiddleware:
    """Rejects requests above the rate limit."""

    def __init__(self, app: ASGIApp, access: Access, limit: int) -> None:
        self.app, self.access, self.rate = app, access, RateLimiter(limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != _NOT_COUNTED:
            client = rate_limit_group(self.access.client(scope))
            if seconds := self.rate.seconds_to_wait(client):
                error = RequestError(
                    f"Rate limit of {self.rate.limit:,} requests per minute exceeded. Try again in {seconds} s.",
                    429,
                    {"Retry-After": str(seconds)},
                )
                return await _rejection(error)(scope, receive, send)
        return await self.app(scope, receive, send)


def _rejection(error: RequestError) -> JSONResponse:
    return JSONResponse({"error": str(error)}, error.status, error.headers)
