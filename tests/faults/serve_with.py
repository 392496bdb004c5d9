"""A server as `heedful serve` starts it, with limits, an engine and a missing protection of a test's choice.

python serve_with.py RUN '{"limits": {…}, "batch_seconds": 0.0, "without": "…"}'; it prints its port.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent))

from engines import FirstSentence, Shouting
from heedful.decoding import translator
from heedful.decoding.load import load
from heedful.serving import app, requests, server, service
from heedful.serving.engine import ServedModel
from heedful.serving.limits import Limits


def without(protection: str) -> None:
    """Takes one away: the controls."""
    if protection == "reading":  # bodies are believed
        app.read_fields = lambda body, kind: json.loads(body)  # type: ignore[attr-defined]
        requests.read_fields = app.read_fields  # type: ignore[attr-defined]
    elif protection == "order":  # answers in another order than the questions
        engine = Shouting.search
        Shouting.search = lambda self, *given: engine(self, *given)[::-1]  # type: ignore[method-assign]
    elif protection == "deadlines":
        server._Deadline.start = lambda self, connection, seconds: None  # type: ignore[method-assign]
    elif protection == "grace":  # a signal is the end
        server._Server.shutdown = _end_at_once  # type: ignore[method-assign,assignment]
    elif protection == "segmentation":
        segment = translator.segment_text
        translator.segment_text = lambda *given: segment(*given[:3], False)
    elif protection == "leak":
        kept: list[Any] = []
        search = Shouting.search
        Shouting.search = lambda self, *given: kept.append(b"x" * 100_000) or search(self, *given)  # type: ignore[method-assign,func-returns-value]


async def _end_at_once(self: Any, sockets: Any = None) -> None:
    os._exit(0)


def main(run: str, options: dict[str, Any]) -> None:
    without(options.get("without", ""))
    limits = Limits(**options.get("limits", {}))
    served = ServedModel(load(Path(run)))
    if options.get("first_sentence"):
        served.engine = FirstSentence(served.translator.model.tokenizer)
    elif (seconds := options.get("batch_seconds")) is not None:
        served.engine = Shouting(served.translator.model.tokenizer, seconds)
    with server.bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        server.run(
            app.create_app(service.TranslationService([served], limits)),
            listener,
            limits,
            lambda: print(port, flush=True),
        )


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
