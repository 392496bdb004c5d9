"""`heedful.load`: a translator from a MODEL or a RUN."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from heedful.decoding.projection_kernels import Precision
from heedful.decoding.translator import Translator
from heedful.devices import pick_device
from heedful.engines.choice import Choice, Use, choose_engine
from heedful.errors import UsageError
from heedful.storage.model_directory import Model
from heedful.storage.run_directory import open_model

log = logging.getLogger("heedful")


def load(
    path: str | Path,
    *,
    checkpoint: str | None = None,
    device: str = "auto",
    precision: Precision = "fp32",
    engine: str = "heedful",
) -> Translator:
    """Load a MODEL or a RUN as a translator.

    `checkpoint` selects the model of a RUN: "averaged" (the default), "best" or "last". `precision` is "fp32", "bf16"
    or "int8" (8-bit weights in the decoder, CPU only); the lower precisions change few translations. `engine` is
    "heedful", "ctranslate2", or "auto" for the faster one, which is logged.
    """
    [translator], choice = load_all([path], Use(), checkpoint, device, precision, engine)
    if engine == "auto":
        log.info("%s", choice)
    return translator


def load_all(
    paths: Sequence[str | Path],
    use: Use,
    checkpoint: str | None = None,
    device: str = "auto",
    precision: Precision = "fp32",
    engine: str = "auto",
) -> tuple[list[Translator], Choice]:
    """Load several models with the same engine, because a process may use only one."""
    if "" in map(str, paths):
        raise UsageError('The path of the model is empty (""). Pass a MODEL or a RUN.')
    on = pick_device("cpu" if device == "auto" and (precision == "int8" or engine == "ctranslate2") else device)
    models = [open_model(Path(path), checkpoint, on) for path in paths]
    choice = choose_engine(engine, [model.transformer for model in models], use, precision)
    return [_translator(model, choice.engine, precision) for model in models], choice


def _translator(model: Model, engine: str, precision: Precision) -> Translator:
    if engine == "heedful":
        return Translator(model, precision)
    from heedful.engines.ctranslate2 import CTranslate2Searcher

    return Translator(model, searcher=CTranslate2Searcher(model))
