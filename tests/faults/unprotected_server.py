"""A server with chosen limits and engine, optionally without one protection.

python unprotected_server.py RUN '{"limits": {…}, "access": {…}, "batch_seconds": 0.0, "without": "…"}'
It prints its port.
"""

from __future__ import annotations

import email
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h11

sys.path.append(str(Path(__file__).parent.parent))

from fake_engine import FirstSentenceEngine, UppercaseEngine
from heedful.decoding import translator
from heedful.engines.load import load
from heedful.serving import access_middleware, app, request_body, server, service
from heedful.serving.access_control import Access, proxies_from
from heedful.serving.limits import Limits
from heedful.serving.served_model import ServedModel


def without(protection: str) -> None:
    """Remove one protection, for a control."""
    if protection == "reading":  # bodies are believed
        request_body.read_fields = lambda body, *_: json.loads(body)
    elif protection == "order":  # answers in another order than the questions
        engine = UppercaseEngine.search
        UppercaseEngine.search = lambda self, *given: engine(self, *given)[::-1]  # type: ignore[method-assign]
    elif protection == "deadlines":
        server._Deadline.start = lambda self, connection, seconds: None  # type: ignore[method-assign]
    elif protection == "grace":  # a signal is the end
        server._Server.shutdown = _end_at_once  # type: ignore[method-assign,assignment]
    elif protection == "threads":  # bodies are parsed on the event loop, by a parser that follows nested forms
        request_body.asyncio = SimpleNamespace(to_thread=_on_the_loop)  # type: ignore[assignment]
        request_body.parse_multipart = _nested_parts  # type: ignore[assignment]
    elif protection == "access":
        access_middleware.RateLimiter.seconds_to_wait = lambda self, client: 0  # type: ignore[method-assign]
        Access.check_host = Access.check_origin = lambda self, *given: None  # type: ignore[method-assign]
        Access.check_key = lambda self, *given: None  # type: ignore[method-assign]
    elif protection == "framing":  # h11 as it is, and connections that go on after chunks
        server.StrictConnection = lambda: h11.Connection(h11.SERVER)  # type: ignore[assignment,misc]
        server._Connection._close_after_chunks = lambda self: None  # type: ignore[method-assign]
    elif protection == "segmentation":
        segment = translator.segment_text
        translator.segment_text = lambda *given: segment(*given[:3], False)
    elif protection == "leak":
        kept: list[Any] = []
        search = UppercaseEngine.search
        UppercaseEngine.search = lambda self, *given: kept.append(b"x" * 100_000) or search(self, *given)  # type: ignore[method-assign,func-returns-value]


async def _on_the_loop(work: Any, *given: Any) -> Any:
    return work(*given)


def _nested_parts(body: bytes, content_type: str) -> list[Any]:
    """Parse with the standard library, which follows nesting; the result does not matter."""
    email.message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    return []


async def _end_at_once(self: Any, sockets: Any = None) -> None:
    os._exit(0)


def main(run: str, options: dict[str, Any]) -> None:
    without(options.get("without", ""))
    limits = Limits(**options.get("limits", {}))
    given = options.get("access", {})
    keys, proxies = [key.encode() for key in given.pop("api_keys", ())], proxies_from(given.pop("trusted_proxies", ()))
    access = Access(**given, api_keys=tuple(keys), trusted_proxies=proxies)
    served = ServedModel(load(Path(run)))
    if options.get("first_sentence"):
        served.engine = FirstSentenceEngine(served.translator.model.tokenizer)
    elif (seconds := options.get("batch_seconds")) is not None:
        served.engine = UppercaseEngine(served.translator.model.tokenizer, seconds)
    with server.bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        server.run(
            app.create_app(service.TranslationService([served], limits), access=access),
            listener,
            limits,
            lambda: print(port, flush=True),
        )


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
