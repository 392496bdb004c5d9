"""The HTTP server, run in this process."""

from __future__ import annotations

import gc
import os
import signal

from starlette.applications import Starlette

from heedful.serving.limits import Limits
from heedful.serving.server import bind, run


def test_garbage_collection_skips_what_was_loaded_before() -> None:
    """A collection of a hundred thousand modules, functions and tensors blocks every client."""
    frozen = []

    def ready() -> None:
        frozen.append(gc.get_freeze_count())
        os.kill(os.getpid(), signal.SIGTERM)

    with bind("127.0.0.1", 0) as listener:
        run(Starlette(), listener, Limits(), ready)
    assert frozen[0] > 10_000
    assert gc.get_freeze_count() == 0
