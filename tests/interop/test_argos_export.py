"""The contents of Argos packages; `make formats` installs them into Argos Translate."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.errors import UsageError
from heedful.interop.argos_export import write_argos
from heedful.storage.model_directory import Model

pytest.importorskip("ctranslate2")


def test_package_contents(model: Model, tmp_path: Path) -> None:
    write_argos(model, tmp_path / "deep" / "en_de.argosmodel")
    with zipfile.ZipFile(tmp_path / "deep" / "en_de.argosmodel") as package:
        names = package.namelist()
        metadata = json.loads(package.read("translate-en_de-1_0/metadata.json"))
        tokenizer = package.read("translate-en_de-1_0/sentencepiece.model")
    assert {Path(name).parts[0] for name in names} == {"translate-en_de-1_0"}
    assert {name.partition("/")[2] for name in names} == {
        *("metadata.json", "sentencepiece.model", "minisbd/en.onnx", "README.md"),
        *(f"model/{name}" for name in ("model.bin", "config.json", "shared_vocabulary.json")),
    }
    assert (metadata["from_code"], metadata["from_name"]) == ("en", "English")
    assert (metadata["to_code"], metadata["to_name"]) == ("de", "German")
    assert tokenizer == model.tokenizer.model


def test_export_is_deterministic(model: Model, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_argos(model, tmp_path / f"{name}.argosmodel", "int8")
    assert (tmp_path / "one.argosmodel").read_bytes() == (tmp_path / "two.argosmodel").read_bytes()


@pytest.mark.parametrize("code", ["", "../x", "e", "en/de", "de fr"])
def test_invalid_language_code_is_rejected(model: Model, tmp_path: Path, code: str) -> None:
    unknown = replace(model, text=replace(model.text, target_language=code))
    with pytest.raises(UsageError, match=r"target language of this model.*`--languages en de`"):
        write_argos(unknown, tmp_path / "x.argosmodel")
    assert not list(tmp_path.iterdir())


def test_unknown_language_is_named_by_its_code(model: Model, tmp_path: Path) -> None:
    rare = replace(model, text=replace(model.text, source_language="hsb"))
    write_argos(rare, tmp_path / "x.argosmodel")
    with zipfile.ZipFile(tmp_path / "x.argosmodel") as package:
        assert json.loads(package.read("translate-hsb_de-1_0/metadata.json"))["from_name"] == "hsb"
