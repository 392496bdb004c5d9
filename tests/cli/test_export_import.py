"""`heedful export` and `heedful import`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import heedful as api
from synthetic_tasks import Program

LINES = ["a b c", "h g f e d", "b"]


@pytest.mark.parametrize(("tool", "name"), [("ctranslate2", "ct2"), ("argos", "en_de.argosmodel"), ("marian", "hf")])
def test_every_format_exports_from_a_run(
    heedful: Program, tiny_run: Path, tmp_path: Path, tool: str, name: str
) -> None:
    if tool != "marian":
        pytest.importorskip("ctranslate2")
    languages = [] if tool == "ctranslate2" else ["--languages", "en", "de"]
    done = heedful("export", tiny_run, "--to", tool, "--out", tmp_path / name, *languages)
    assert (done.code, done.out, done.err) == (0, f"{tmp_path / name}\n", "")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_existing_output_is_not_replaced(
    heedful: Program, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even files that heedful wrote, because they may have been fine-tuned since."""
    assert heedful("export", model, "--to", "marian", "--out", tmp_path / "hf").code == 0
    again = heedful("export", model, "--to", "marian", "--out", tmp_path / "hf")
    assert (again.code, "exists" in again.err) == (2, True)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for here in (".", ""):
        assert heedful("export", model, "--to", "marian", "--out", here).code == 2


def test_ctranslate2_translates_like_heedful(heedful: Program, model: Path, tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    import sentencepiece

    assert heedful("export", model, "--to", "ctranslate2", "--out", tmp_path / "out").code == 0
    translator = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "out" / "sentencepiece.model"))
    ours = api.load(model, device="cpu")
    for line in LINES:
        limit = len(ours.ids(line)) + ours.model.decoding.max_extra - 1
        tokens = processor.encode(line, out_type=str)
        [found] = translator.translate_batch([tokens], beam_size=1, max_decoding_length=limit)
        assert processor.decode(found.hypotheses[0]) == ours.translate(line, beam=1).text


def test_marian_round_trip(heedful: Program, model: Path, tmp_path: Path) -> None:
    assert heedful("export", model, "--to", "marian", "--out", tmp_path / "hf").code == 0
    done = heedful("import", tmp_path / "hf", "--from", "marian", "--out", tmp_path / "back")
    assert (done.code, done.out, done.err) == (0, f"{tmp_path / 'back'}\n", "")
    text = "".join(f"{line}\n" for line in LINES).encode()
    assert heedful("translate", tmp_path / "back", stdin=text) == heedful("translate", model, stdin=text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "onnx", "--out", "x"], "onnx"),
        (["--to", "marian"], "--out"),
        (["--to", "argos", "--out", "x.zip"], "must end in .argosmodel"),
        (["--to", "marian", "--out", "x", "--quantization", "int8"], "`--quantization` applies only to ctranslate2"),
        (
            ["--to", "ctranslate2", "--out", "x", "--languages", "en", "de"],
            "`--languages` applies only to argos and marian",
        ),
        (["--to", "marian", "--out", "x", "--languages", "\udcff", "de"], r'"\udcff" is not a language code'),
        (["--to", "argos", "--out", "full/file/x.argosmodel", "--languages", "en", "de"], "Cannot write"),
        (["--to", "argos", "--out", "x.argosmodel"], "needs two language codes"),
        (["--to", "ctranslate2", "--out", "full"], "exists. Choose another name"),
        (["--to", "marian", "--out", "full/file"], "exists. Choose another name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage(
    heedful: Program, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    if "argos" in arguments:
        pytest.importorskip("ctranslate2")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    done = heedful("export", model, *arguments)
    assert done.code == 2
    assert message in done.err
    assert (tmp_path / "full" / "file").read_text() == "mine"


def test_missing_model_and_missing_package(
    heedful: Program, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = heedful("export", tmp_path / "none", "--to", "marian", "--out", tmp_path / "x")
    assert (missing.code, "is not a model directory" in missing.err) == (3, True)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    without = heedful("export", model, "--to", "ctranslate2", "--out", tmp_path / "x")
    assert (without.code, "heedful[export]" in without.err) == (2, True)


def test_invalid_imports(heedful: Program, model: Path, tmp_path: Path) -> None:
    ours = heedful("import", model, "--from", "marian", "--out", tmp_path / "x")
    assert (ours.code, "model_type" in ours.err) == (3, True)
    empty = heedful("import", tmp_path, "--from", "marian", "--out", tmp_path / "x")
    assert (empty.code, "has no config.json" in empty.err) == (3, True)
    nothing = heedful("import", tmp_path / "none", "--from", "marian", "--out", tmp_path / "x")
    assert (nothing.code, "does not exist" in nothing.err) == (3, True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    full = heedful("import", model, "--from", "marian", "--out", tmp_path / "full")
    assert (full.code, "heedful replaces only directories that it wrote" in full.err) == (2, True)
