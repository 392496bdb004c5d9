"""What `heedful train` says of its text before it begins, and what it assumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import synthetic_tasks as tasks
from heedful.errors import UsageError
from heedful.storage.model_directory import read_model
from heedful.storage.run_directory import RunDirectory
from heedful.text.builtin_corpus import BuiltinCorpus
from heedful.training.run import train

TINY = {**tasks.TINY, "data.vocab_size": 400, "training.steps": 1, "training.validate_every": 100}
ENGLISH_GERMAN = "Languages: English (en) → German (de), from the file names train.en and train.de; set"


def corpus(directory: Path, source: str = "en", target: str = "de", pairs: int = 1_100) -> dict[str, Any]:
    """Four files of the built-in corpus, as recipe keys: English source, German target."""
    directory.mkdir()
    keys = {}
    for key, name, part, count in (("", "train", "train", pairs), ("valid_", "valid", "valid", 40)):
        read = list(dict.fromkeys(BuiltinCorpus(part, count).pairs()))
        for side, ending in (("source", source), ("target", target)):
            path = directory / f"{name}.{ending}"
            path.write_text("".join(f"{getattr(pair, side)}\n" for pair in read), encoding="utf-8")
            keys[f"data.{key}{side}"] = str(path)
    return keys


def said(tmp_path: Path, settings: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    train(out=tmp_path / "run", overrides={**TINY, **settings})
    return capsys.readouterr().err


def languages(tmp_path: Path) -> tuple[str, str]:
    data, text = RunDirectory(tmp_path / "run").recipe().data, read_model(tmp_path / "run" / "model").text
    assert (data.source_language, data.target_language) == (text.source_language, text.target_language)
    return text.source_language, text.target_language


def test_languages_come_from_the_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard = said(tmp_path, corpus(tmp_path / "text"), capsys)
    assert heard.startswith(ENGLISH_GERMAN)
    assert "warning" not in heard
    assert languages(tmp_path) == ("en", "de")
    # The run goes on with them, and does not say it again.
    train(out=tmp_path / "run", overrides={"training.steps": 2})
    assert "Languages" not in capsys.readouterr().err
    assert languages(tmp_path) == ("en", "de")


def test_languages_come_from_the_text_where_names_say_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = said(tmp_path, corpus(tmp_path / "text", "src", "tgt"), capsys)
    assert "Languages: English (en) → German (de), identified from the text; set data.source_language" in heard
    assert languages(tmp_path) == ("en", "de")


def test_languages_that_nothing_shows_stay_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard = said(tmp_path, tasks.tiny_corpus(tmp_path / "text"), capsys)
    assert "Languages: unknown. The model calls them source and target; set data.source_language" in heard
    assert languages(tmp_path) == ("", "")


def test_languages_that_are_set_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"data.source_language": "en_gb", "data.target_language": "de-AT"}
    heard = said(tmp_path, {**corpus(tmp_path / "text"), **given}, capsys)
    assert "Languages" not in heard
    assert "warning" not in heard
    assert languages(tmp_path) == ("en-GB", "de-AT")


def test_one_language_that_is_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(tmp_path, {**corpus(tmp_path / "text"), "data.source_language": "en-GB"}, capsys)
    assert languages(tmp_path) == ("en-GB", "de")


def test_names_that_the_text_contradicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard = said(tmp_path, corpus(tmp_path / "text", "de", "en"), capsys)
    assert "warning: The source language is German (de), but the source text looks like English (en)." in heard
    assert "warning: The target language is English (en), but the target text looks like German (de)." in heard
    assert languages(tmp_path) == ("de", "en")  # a warning: the user may know better


@pytest.mark.parametrize("key", ["data.source_language", "data.target_language"])
def test_a_wrong_code_is_refused_before_anything_is_written(tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match=f'{key}: "xx-nonsense" is not a language code'):
        train(out=tmp_path / "run", overrides={**TINY, **corpus(tmp_path / "text"), key: "xx-nonsense"})
    assert not (tmp_path / "run").exists()


def test_a_reversed_validation_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = corpus(tmp_path / "text")
    keys["data.valid_source"], keys["data.valid_target"] = keys["data.valid_target"], keys["data.valid_source"]
    assert "warning: Validation source and target seem to be swapped" in said(tmp_path, keys, capsys)


FRENCH = ["Il voit le chien.\n", "Elle est une amie.\n"] * 20


@pytest.mark.parametrize(("side", "language"), [("source", "English (en)"), ("target", "German (de)")])
def test_validation_text_in_another_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], side: str, language: str
) -> None:
    keys = corpus(tmp_path / "text")
    path = Path(keys[f"data.valid_{side}"])
    count = len(path.read_text(encoding="utf-8").splitlines())
    path.write_text("".join(FRENCH[:count]), encoding="utf-8")
    heard = said(tmp_path, keys | {"data.max_length": 60, "data.max_ratio": 20.0}, capsys)
    assert f"The validation {side} text looks like French (fr), but the training {side} text is {language}." in heard
    assert heard.count("warning: The validation") == 1


def test_the_same_file_on_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = corpus(tmp_path / "text")
    keys["data.target"] = keys["data.source"]
    assert "warning: In 100% of the first" in said(tmp_path, keys, capsys)


def test_validation_text_from_the_training_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = corpus(tmp_path / "text")
    for side in ("source", "target"):
        lines = Path(keys[f"data.{side}"]).read_text(encoding="utf-8").splitlines(keepends=True)
        Path(keys[f"data.valid_{side}"]).write_text("".join(lines[:40]), encoding="utf-8")
    assert "warning: 40 of 40 validation pairs (100%) are also in the training text" in said(tmp_path, keys, capsys)


def test_a_small_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard = said(tmp_path, corpus(tmp_path / "text", pairs=200), capsys)
    assert "warning: The training text has only" in heard


def test_the_built_in_corpus_is_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard = said(tmp_path, {"data.builtin": True, "data.builtin_pairs": 300}, capsys)
    assert "Languages" not in heard
    assert "warning" not in heard
    assert languages(tmp_path) == ("en", "de")
