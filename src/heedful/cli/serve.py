"""`heedful serve`: run the HTTP server."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from heedful.cli.output_file import require_not_in_a_model
from heedful.decoding.projection_kernels import Precision
from heedful.decoding.translator import Translator
from heedful.engines.choice import Choice, Use
from heedful.engines.load import load_all
from heedful.errors import UsageError
from heedful.text.languages import with_languages


def serve(arguments: argparse.Namespace) -> None:
    try:
        from heedful.serving.access_control import Access, hosts_from, origins_from, proxies_from, read_api_keys
        from heedful.serving.app import create_app
        from heedful.serving.limits import limits_from
        from heedful.serving.request_log import RequestLog
        from heedful.serving.served_model import ServedModel
        from heedful.serving.server import bind, run
        from heedful.serving.service import TranslationService
        from heedful.serving.suggestions import Suggestions
    except ModuleNotFoundError as error:
        raise UsageError(
            f"heedful serve requires the package {error.name}. Run: pip install 'heedful[serve]'"
        ) from None
    if arguments.rate_limit is not None and arguments.rate_limit < 1:
        raise UsageError(f"`--rate-limit` must be at least 1 request per minute, not {arguments.rate_limit}.")
    limits = limits_from(arguments.limit)
    access = Access(
        host=arguments.host,
        allowed_hosts=hosts_from(arguments.allowed_host),
        cors_origins=origins_from(arguments.cors_origin),
        api_keys=read_api_keys(Path(arguments.api_keys)) if arguments.api_keys else (),
        rate_limit=arguments.rate_limit,
        trusted_proxies=proxies_from(arguments.trusted_proxy),
    )
    file = arguments.suggestions
    if file:
        require_not_in_a_model(Path(file), "--suggestions")
    suggestions = Suggestions(Path(file), limits.suggestions_bytes) if file else None
    with bind(arguments.host, arguments.port) as listener:
        translators, choice = _loaded(arguments.models, arguments.engine, arguments.precision)
        service = TranslationService([ServedModel(translator) for translator in translators], limits)
        pairs = ", ".join(f"{source} → {target}" for source, target in service.models)
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        address = f"http://{host}:{listener.getsockname()[1]}"

        def ready() -> None:
            lines = f"Serving {pairs} on {address} with {choice} (press Ctrl-C to stop)", *access.exposure()
            print(*lines, sep="\n", file=sys.stderr, flush=True)

        log = RequestLog()
        run(create_app(service, suggestions, access=access, request_log=log), listener, limits, ready)
        log.close()


def _loaded(names: list[str], engine: str, precision: Precision) -> tuple[list[Translator], Choice]:
    """Load the models, each given as MODEL, or as MODEL:en:fr with its languages."""
    named = [with_languages(name) for name in names]
    translators, choice = load_all([path for path, _ in named], Use(), precision=precision, engine=engine)
    for translator, (_, languages) in zip(translators, named, strict=True):
        if languages is not None:
            model = translator.model
            text = replace(model.text, source_language=languages.source, target_language=languages.target)
            translator.model = replace(model, text=text)
    return translators, choice
