"""What every route does first: read the fields of the request and check its API key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request

from heedful.serving.limits import Limits
from heedful.serving.request_body import read_body, read_fields, request_fields


async def checked_fields(request: Request, limits: Limits) -> Mapping[str, Any]:
    """Return the fields of a request. Reject it if a required API key is missing."""
    fields = await request_fields(request, limits)
    request.app.state.access.check_key(request.headers, {**request.query_params, **fields})
    return fields


async def checked_query(request: Request, limits: Limits) -> Mapping[str, Any]:
    """Return the fields of a GET query string. A body is read and ignored."""
    await read_body(request, limits)
    fields = read_fields(b"", "application/x-www-form-urlencoded", request.url.query)
    request.app.state.access.check_key(request.headers, fields)
    return fields
