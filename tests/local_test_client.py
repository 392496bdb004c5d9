"""A test client with a local address."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient
from starlette.types import ASGIApp


def local_client(app: ASGIApp, **options: Any) -> TestClient:
    return TestClient(app, base_url="http://127.0.0.1:5000", **{"client": ("127.0.0.1", 50_000), **options})
