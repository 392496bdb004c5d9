"""Server metrics in Prometheus format."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.serving.batcher import Batcher

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    def __init__(self, batcher: Batcher) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("heedful_requests", "requests answered", ["path", "status"], registry=self.registry)
        self.seconds = Histogram(
            "heedful_request_seconds", "seconds to the response", ["path"], registry=self.registry, buckets=_SECONDS
        )
        self.characters = Counter("heedful_characters", "characters to translate", registry=self.registry)
        for name, what, value in (
            ("heedful_queued_tokens", "tokens of requests in the queue", lambda: batcher.tokens),
            ("heedful_tokens_per_second", "source tokens translated per second, recently", lambda: batcher.speed),
        ):
            Gauge(name, what, registry=self.registry).set_function(value)
        self.registry.register(_Batches(batcher))
        self.content_type = CONTENT_TYPE_LATEST

    def page(self) -> bytes:
        return generate_latest(self.registry)

    def note(self, path: str, status: int, seconds: float) -> None:
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)


class _Batches(Collector):
    """Exports the batcher's own count of batches."""

    def __init__(self, batcher: Batcher) -> None:
        self.batcher = batcher

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily("heedful_batches", "batches translated", value=self.batcher.batches)


class TimingMiddleware:
    """Middleware that calls `note(scope, status, seconds)` after every request."""

    def __init__(self, app: ASGIApp, note: Callable[[Scope, int, float], None]) -> None:
        self.app, self.note = app, note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        start, status = time.perf_counter(), 500

        async def send_and_keep_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_keep_status)
        finally:
            self.note(scope, status, time.perf_counter() - start)
        return None
