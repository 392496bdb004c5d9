"""`heedful export` and `heedful import`: other tools' formats."""

from __future__ import annotations

import argparse
import logging
import os
from dataclasses import replace
from pathlib import Path

from heedful.atomic_files import require_replaceable
from heedful.cli.output_file import require_not_in_a_model
from heedful.errors import UsageError
from heedful.interop import ctranslate2_export, marian_export
from heedful.interop.argos_export import SUFFIX, write_argos
from heedful.interop.marian_import import read_marian
from heedful.storage.model_directory import Model, is_model, write_model
from heedful.storage.run_directory import open_model
from heedful.text.languages import require_code

log = logging.getLogger("heedful")


def export(arguments: argparse.Namespace) -> None:
    out = Path(arguments.out)
    _check(arguments, out)
    model = _in_languages(open_model(Path(arguments.model)), arguments.languages)
    if model.text.lowercase:
        log.warning("this model was trained on lowercased text; pass lowercased text to %s too", arguments.to)
    if arguments.to == "ctranslate2":
        ctranslate2_export.write_ctranslate2(model, out, arguments.quantization)
    elif arguments.to == "argos":
        write_argos(model, out, arguments.quantization)
    else:
        marian_export.write_marian(model, out)
    print(out)


def _check(arguments: argparse.Namespace, out: Path) -> None:
    """Raise for options that do not apply and for existing output, before anything is read."""
    if arguments.to == "marian" and arguments.quantization:
        raise UsageError(
            "`--quantization` applies only to ctranslate2 and argos. Remove it: transformers quantizes on loading."
        )
    if arguments.to == "ctranslate2" and arguments.languages:
        raise UsageError(
            "`--languages` applies only to argos and marian. Remove it: a CTranslate2 model stores no languages."
        )
    if arguments.to == "argos" and out.suffix != SUFFIX:
        raise UsageError(f'`--out` must end in {SUFFIX} for argos, not "{out.name}".')
    require_not_in_a_model(out, "--out")
    if os.path.lexists(out):
        raise UsageError(f"`--out {out}` already exists. Choose another name, or remove it first.")


def _in_languages(model: Model, codes: list[str] | None) -> Model:
    if codes is None:
        return model
    source, target = (require_code(code, "`--languages`") for code in codes)
    return replace(model, text=replace(model.text, source_language=source, target_language=target))


def import_model(arguments: argparse.Namespace) -> None:
    out = Path(arguments.out)
    require_not_in_a_model(out, "--out")
    require_replaceable(out, is_model)
    write_model(out, read_marian(Path(arguments.path)))
    print(out)
