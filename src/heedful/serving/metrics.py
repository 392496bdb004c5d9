"""What the server counts, in the form that Prometheus reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.serving.batcher import Batcher

_PATHS = (
    *("/", "/translate", "/translate_file", "/detect", "/suggest", "/attend", "/languages", "/health"),
    *("/frontend/settings", "/metrics", "/spec", "/docs"),
)
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    def __init__(self, batcher: Batcher) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("heedful_requests", "answered", ["path", "status"], registry=self.registry)
        self.seconds = Histogram(
            "heedful_request_seconds", "until the answer", ["path"], registry=self.registry, buckets=_SECONDS
        )
        self.characters = Counter("heedful_characters", "asked to be translated", registry=self.registry)
        for name, what, value in (
            ("heedful_queued_tokens", "of requests that wait or are translated", lambda: batcher.tokens),
            ("heedful_batches", "translated since the start", lambda: batcher.batches),
            ("heedful_tokens_per_second", "of source text, lately", lambda: batcher.speed),
        ):
            Gauge(name, what, registry=self.registry).set_function(value)
        self.content_type = CONTENT_TYPE_LATEST

    def page(self) -> bytes:
        return generate_latest(self.registry)

    def note(self, path: str, status: int, seconds: float) -> None:
        """Paths of our own are told apart, the others are one: nobody can make the list grow."""
        path = path if path in _PATHS else "other"
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    @property
    def middleware(self) -> Callable[[ASGIApp], Any]:
        def counted(app: ASGIApp) -> ASGIApp:
            async def call(scope: Scope, receive: Receive, send: Send) -> None:
                if scope["type"] != "http":
                    return await app(scope, receive, send)
                began, status = time.perf_counter(), 500

                async def noted(message: Message) -> None:
                    nonlocal status
                    if message["type"] == "http.response.start":
                        status = message["status"]
                    await send(message)

                try:
                    await app(scope, receive, noted)
                finally:
                    self.note(scope["path"], status, time.perf_counter() - began)
                return None

            return call

        return counted
