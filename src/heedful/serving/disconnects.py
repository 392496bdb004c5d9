"""Work for a client that may disconnect before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")


async def until_disconnected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work.

    If the client disconnects first, cancel it and raise ClientDisconnect.

    Call it after the body was read.
    """
    task, disconnect = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        task.cancel()
        disconnect.cancel()
