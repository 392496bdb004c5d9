"""Exporter for Argos packages, which Argos Translate and LibreTranslate install.

A .argosmodel file is a zip archive of one directory:
metadata.json · model/ (CTranslate2) · sentencepiece.model · minisbd/CODE.onnx · README.md
"""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from pathlib import Path

from heedful.atomic_files import write_durably
from heedful.errors import UsageError
from heedful.interop.ctranslate2_export import TOKENIZER, write_ctranslate2
from heedful.interop.sentence_splitter_onnx import build_sentence_splitter
from heedful.storage.file_names import MARIAN_TOKENIZER
from heedful.storage.model_directory import Model
from heedful.text.languages import language_name

SUFFIX = ".argosmodel"
_PACKAGE_VERSION, _ARGOS_VERSION = "1.0", "1.11"  # versions of the package and of Argos Translate
_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]{2,8})*")


def write_argos(model: Model, path: Path, quantization: str | None = None) -> None:
    """Write an Argos package atomically; the same model gives the same bytes."""
    source, target = model.text.source_language, model.text.target_language
    for side, code in (("source", source), ("target", target)):
        if not _LANGUAGE_CODE.fullmatch(code):
            raise UsageError(
                f'The {side} language of this model is "{code}", but an Argos package needs two language codes. '
                "Pass them, for example `--languages en de`."
            )
    top = f"translate-{source}_{target}-{_PACKAGE_VERSION.replace('.', '_')}"
    with tempfile.TemporaryDirectory(prefix="heedful-") as scratch:
        ctranslate2_model = Path(scratch) / "model"
        write_ctranslate2(model, ctranslate2_model, quantization)
        files = {
            f"model/{one.name}": one.read_bytes()
            for one in sorted(ctranslate2_model.iterdir())
            if one.name not in (TOKENIZER, *MARIAN_TOKENIZER)
        }
        files |= {
            "metadata.json": json.dumps(_metadata(source, target), indent=1, ensure_ascii=False).encode("utf-8"),
            TOKENIZER: model.tokenizer.model,  # Argos only encodes with it; it decodes by joining the tokens
            f"minisbd/{source}.onnx": build_sentence_splitter(source),
            "README.md": _readme(source, target).encode("utf-8"),
        }
        archive_path = Path(scratch) / "package.zip"
        with zipfile.ZipFile(archive_path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(_zip_entry(f"{top}/{name}"), content)
        write_durably(path, archive_path.read_bytes())


def _zip_entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # the default time stamp (1980) keeps the archive reproducible
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _metadata(source: str, target: str) -> dict[str, str]:
    return {
        "package_version": _PACKAGE_VERSION,
        "argos_version": _ARGOS_VERSION,
        "from_code": source,
        "from_name": language_name(source),
        "to_code": target,
        "to_name": language_name(target),
    }


def _readme(source: str, target: str) -> str:
    return f"# {language_name(source)} to {language_name(target)}\n\nA Transformer trained with heedful.\n"
