"""`heedful serve`: models over HTTP."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from heedful.decoding.load import load
from heedful.errors import UsageError


def serve(arguments: argparse.Namespace) -> None:
    try:
        from heedful.serving.app import create_app
        from heedful.serving.engine import ServedModel
        from heedful.serving.limits import Limits
        from heedful.serving.server import bind, run
        from heedful.serving.service import TranslationService
        from heedful.serving.suggestions import Suggestions
    except ModuleNotFoundError as error:
        raise UsageError(f"Serving needs {error.name}: pip install 'heedful[serve]'.") from None
    limits = Limits()
    file = arguments.suggestions
    suggestions = Suggestions(Path(file), limits.suggestions_bytes) if file else None
    with bind(arguments.host, arguments.port) as listener:
        models = [ServedModel(load(Path(name)), arguments.engine) for name in arguments.models]
        service = TranslationService(models, limits)
        pairs = ", ".join(f"{source} → {target}" for source, target in service.models)
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        address = f"http://{host}:{listener.getsockname()[1]}"

        def ready() -> None:
            print(f"{pairs} on {address} (Ctrl-C ends)", file=sys.stderr, flush=True)

        run(create_app(service, suggestions), listener, limits, ready)
