"""The HTTP server, run in this process."""

from __future__ import annotations

import errno
import gc
import os
import signal
from unittest.mock import Mock

from starlette.applications import Starlette

from heedful.serving.limits import Limits
from heedful.serving.server import _Connection, bind, run


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


def test_a_client_that_has_reset_the_connection_is_not_an_error() -> None:
    """Closing our side fails then. A client could fill the log with tracebacks."""
    connection = object.__new__(_Connection)
    connection.transport, connection.flow = Mock(), Mock()
    connection.transport.write_eof.side_effect = OSError(errno.ENOTCONN, "Transport endpoint is not connected")
    connection._ignore_further_data()
    connection.transport.abort.assert_called_once_with()
