"""`heedful serve`: models over HTTP."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from heedful.decoding.load import load
from heedful.decoding.translator import Translator
from heedful.errors import UsageError
from heedful.text.languages import with_languages


def serve(arguments: argparse.Namespace) -> None:
    try:
        from heedful.serving.app import create_app
        from heedful.serving.engine import ServedModel
        from heedful.serving.limits import Limits
        from heedful.serving.server import bind, run
        from heedful.serving.service import TranslationService
    except ModuleNotFoundError as error:
        raise UsageError(f"Serving needs {error.name}: pip install 'heedful[serve]'.") from None
    limits = Limits()
    with bind(arguments.host, arguments.port) as listener:
        models = [ServedModel(_loaded(name), arguments.engine) for name in arguments.models]
        service = TranslationService(models, limits)
        pairs = ", ".join(f"{source} → {target}" for source, target in service.models)
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        address = f"http://{host}:{listener.getsockname()[1]}"

        def ready() -> None:
            print(f"{pairs} on {address} (Ctrl-C ends)", file=sys.stderr, flush=True)

        run(create_app(service), listener, limits, ready)


def _loaded(name: str) -> Translator:
    """A MODEL, or MODEL:en:fr to name its languages."""
    path, languages = with_languages(name)
    translator = load(Path(path))
    if languages is not None:
        model = translator.model
        text = replace(model.text, source_language=languages.source, target_language=languages.target)
        translator.model = replace(model, text=text)
    return translator
