"""Output paths that commands may overwrite, --languages, and empty translations."""

from __future__ import annotations

import gzip
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

import synthetic_tasks as tasks
from heedful.decoding.translator import Translator
from heedful.storage.model_directory import read_model, write_model
from heedful.text.builtin_corpus import BuiltinCorpus
from heedful.text.corpus_checks import empty_translations
from synthetic_tasks import Program


def test_user_model_survives_a_failed_start(heedful: Program, corpus: dict[str, str], tmp_path: Path) -> None:
    """A failed start leaves nothing that the next one could mistake for a run."""
    out, latin = tmp_path / "out", tmp_path / "latin"
    latin.write_bytes("Übung\n".encode("latin-1"))
    options = (*tasks.set_options({**tasks.TINY, "training.steps": 1}), "--out", out)
    out.mkdir()
    failed = heedful("train", *tasks.file_options({**corpus, "data.source": str(latin)}), *options)
    assert failed.code == 3
    assert list(out.iterdir()) == []
    (out / "model").mkdir()
    (out / "model" / "weights").write_text("mine")
    refused = heedful("train", *tasks.file_options(corpus), *options)
    assert refused.code == 2
    assert "is not a heedful run, and training would overwrite model in it" in refused.err
    assert [str(path.relative_to(out)) for path in out.rglob("*")] == ["model", "model/weights"]
    assert (out / "model" / "weights").read_text() == "mine"


INSIDE = ["config.toml", "log.jsonl", "tokenizer.model", ".heedful", "model/config.json", "best/new.txt", "model/new"]


@pytest.mark.parametrize("name", [*INSIDE, "checkpoints/{}/state.json", "data/training/new", "checkpoints/new"])
@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_no_output_replaces_a_file_of_a_run(
    heedful: Program, own_run: Path, corpus: dict[str, str], command: str, name: str
) -> None:
    step = sorted((own_run / "checkpoints").iterdir())[-1].name
    before = {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()}
    files = {"translate": ["--input"], "evaluate": ["--reference", corpus["data.valid_target"], "--source"]}[command]
    options = [*files, corpus["data.valid_source"], "--output", own_run / name.format(step)]
    refused = heedful(command, own_run, *options)
    assert refused.code == 2
    assert "Choose another" in refused.err
    assert {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_output_with_a_name_in_gz_is_compressed(
    heedful: Program, tiny_run: Path, corpus: dict[str, str], tmp_path: Path, command: str
) -> None:
    """What heedful writes it can read; the text is that of a plain file."""
    files = {"translate": ["--input"], "evaluate": ["--reference", corpus["data.valid_target"], "--source"]}[command]
    written = {}
    for name in ("plain", "x.gz", "again.gz"):
        output = ["--output", tmp_path / name]
        assert heedful(command, tiny_run, *files, corpus["data.valid_source"], *output).code == 0
        written[name] = (tmp_path / name).read_bytes()
    assert gzip.decompress(written["x.gz"]) == written["plain"] != b""
    assert written["x.gz"][10:] == written["again.gz"][10:].replace(b"again", b"x"), "the same but for the name"
    assert heedful("translate", tiny_run, "--input", tmp_path / "x.gz").code == 0


def test_an_interrupted_translation_says_that_nothing_was_written(
    heedful: Program, tiny_run: Path, corpus: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "out"
    out.write_text("before")
    monkeypatch.setattr(Translator, "translate", interrupt)
    stopped = heedful("translate", tiny_run, "--input", corpus["data.valid_source"], "--output", out)
    assert stopped.code == 130
    assert f"Nothing was written to {out}" in stopped.err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"out": "before"}


def test_no_page_replaces_a_file_of_a_run_or_model(heedful: Program, own_run: Path) -> None:
    attention, inside = own_run / "attention.html", own_run / "model" / "page.html"
    attention.write_text("heedful's")
    for out in (attention, inside):
        assert heedful("attend", own_run, "ba", "--out", out).code == 2
        assert heedful("info", own_run, "--out", out).code == 2
        assert heedful("compare", own_run, own_run, "--reference", own_run, "--out", out).code == 2
    assert attention.read_text() == "heedful's"
    assert not inside.exists()
    assert heedful("export", own_run, "--to", "argos", "--out", own_run / "model" / "x.argosmodel").code == 2


@pytest.mark.parametrize(
    "name", ["model", "best", "checkpoints/step-00000099", "model/new", "attention.png", "log.jsonl"]
)
def test_no_model_replaces_a_part_of_another_run(heedful: Program, tiny_run: Path, own_run: Path, name: str) -> None:
    before = {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()}
    out = ("--out", own_run / name)
    for arguments in (
        ("average", tiny_run, "--last", "2", *out),
        ("import", tiny_run, "--from", "marian", *out),
        ("treebank", tiny_run, *out),
        ("serve", tiny_run, "--suggestions", own_run / name),
    ):
        refused = heedful(*arguments)
        assert (refused.code, "Choose another path." in refused.err) == (2, True)
    assert {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["model/new", "checkpoints", "checkpoints/new"])
def test_no_run_starts_in_a_part_of_another(heedful: Program, corpus: dict[str, str], own_run: Path, name: str) -> None:
    options = (*tasks.set_options({**tasks.TINY, "training.steps": 1}), "--out", own_run / name)
    before = sorted(own_run.rglob("*"))
    assert heedful("train", *tasks.file_options(corpus), *options).code == 2
    assert sorted(own_run.rglob("*")) == before


@pytest.mark.parametrize("weights", ["model.safetensors", "model.bin"])
def test_no_output_replaces_a_file_of_an_exported_model(
    heedful: Program, tiny_run: Path, tmp_path: Path, weights: str
) -> None:
    for name in (weights, "config.json"):
        (tmp_path / name).write_text("exported")
    assert heedful("translate", tiny_run, "--output", tmp_path / "config.json", stdin=b"a b\n").code == 2
    assert (tmp_path / "config.json").read_text() == "exported"
    assert heedful("translate", tiny_run, "--output", tmp_path / "new.txt", stdin=b"a b\n").code == 0


def test_a_path_through_a_link_is_that_of_the_system(heedful: Program, tiny_run: Path, tmp_path: Path) -> None:
    """LINK/.. is the parent of the linked directory, not of the link."""
    (tmp_path / "far" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/below")
    (tmp_path / "out.txt").write_text("mine")
    out = os.path.join(tmp_path, "link", "..", "out.txt")
    assert heedful("translate", tiny_run, "--output", out, stdin=b"a b\n").code == 0
    assert (tmp_path / "out.txt").read_text() == "mine"
    assert (tmp_path / "far" / "out.txt").is_file()


def test_an_edited_model_in_a_run_is_not_replaced(heedful: Program, own_run: Path) -> None:
    average = ("average", own_run, "--last", "2", "--out", own_run / "mine")
    assert heedful(*average).code == 0
    (own_run / "mine" / "config.json").write_text("edited")
    assert heedful(*average).code == 2
    assert (own_run / "mine" / "config.json").read_text() == "edited"


def test_a_page_beside_a_runs_own_files_may_be_written_twice(heedful: Program, own_run: Path) -> None:
    assert [heedful("info", own_run, "--out", own_run / "page.html").code for _ in range(2)] == [0, 0]


def test_failed_start_removes_its_directory(heedful: Program, corpus: dict[str, str], tmp_path: Path) -> None:
    options = (*tasks.set_options({**tasks.TINY, "data.max_length": 3}), "--out", tmp_path / "out")
    assert heedful("train", *tasks.file_options(corpus), *options).code == 3
    assert list(tmp_path.iterdir()) == []


def test_user_treebank_files_are_not_replaced(heedful: Program, tmp_path: Path) -> None:
    """File names alone do not prove that heedful wrote them."""
    (tmp_path / "trees").mkdir()
    for number in range(20):
        (tmp_path / "trees" / f"{number:02}.mrg").write_text("( (S (NN a)) )\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "train.words").write_text("mine")
    assert heedful("treebank", tmp_path / "trees", "--out", tmp_path / "out").code == 2
    assert (tmp_path / "out" / "train.words").read_text() == "mine"


def test_an_edited_model_is_not_replaced(heedful: Program, tiny_run: Path, tmp_path: Path) -> None:
    average = ("average", tiny_run, "--last", "2", "--out", tmp_path / "model")
    assert [heedful(*average).code for _ in range(2)] == [0, 0]
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text().replace("4", "5", 1))
    edited = config.read_bytes()
    assert heedful(*average).code == 2
    assert config.read_bytes() == edited


def test_user_report_is_not_replaced(heedful: Program, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "order").mkdir()
    (tmp_path / "order" / "report.md").write_text("mine")
    assert heedful("lab", "order", "--out", tmp_path).code == 2
    assert (tmp_path / "order" / "report.md").read_text() == "mine"


@pytest.mark.parametrize("command", ["prepare", "compare"])
def test_no_page_replaces_an_input(heedful: Program, corpus: dict[str, str], tmp_path: Path, command: str) -> None:
    """Also under another name of the same file. Nothing is prepared or translated before."""
    source = tmp_path / "source.html"
    source.write_text(Path(corpus["data.source"]).read_text())
    text, page = source.read_bytes(), tmp_path / "page.html"
    page.hardlink_to(source)
    given: dict[str, list[str | Path]] = {
        "prepare": ["--source", source, "--target", corpus["data.target"], "--out", tmp_path / "out", "--report", page],
        "compare": [source, corpus["data.target"], "--reference", corpus["data.target"], "--out", page],
    }
    done = heedful(command, *given[command])
    assert done.code == 2
    assert "is one of the input files" in done.err
    assert (page.read_bytes(), source.read_bytes()) == (text, text)
    assert {path.name for path in tmp_path.iterdir()} == {"source.html", "page.html"}


def test_a_preparation_report_is_a_page(heedful: Program, corpus: dict[str, str], tmp_path: Path) -> None:
    """A text file named by mistake is not replaced."""
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    files = ("--source", corpus["data.source"], "--target", corpus["data.target"])
    done = heedful("prepare", *files, "--out", tmp_path / "out", "--report", notes)
    assert (done.code, notes.read_text()) == (2, "mine")
    assert "must end in .html" in done.err


Names = Callable[[str], list[str | Path]]
FILES: dict[str, Names] = {
    "translate": lambda out: ["--output", out],
    "attend": lambda out: ["a b", "--out", out],
    "info": lambda out: ["--out", out],
}


@pytest.mark.parametrize("command", FILES)
def test_symlink_is_not_followed(heedful: Program, tiny_run: Path, tmp_path: Path, command: str) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "mine.html").write_text("mine")
    (tmp_path / "link.html").symlink_to("mine.html")
    outcome = heedful(command, tiny_run, *FILES[command](str(tmp_path / "link.html")), stdin=b"a b\n")
    assert (outcome.code, "is a symbolic link" in outcome.err) == (2, True)
    assert (tmp_path / "mine.html").read_text() == "mine"
    assert (tmp_path / "link.html").is_symlink()


def test_serve_takes_languages(tiny_run: Path) -> None:
    pytest.importorskip("fastapi")
    from heedful.cli.serve import _loaded

    [plain, named], _ = _loaded([str(tiny_run), f"{tiny_run}:en:pt_br"], "heedful", "fp32")
    assert plain.model.text.source_language == ""
    assert (named.model.text.source_language, named.model.text.target_language) == ("en", "pt-BR")


def test_serve_refuses_what_is_not_a_code(heedful: Program, tiny_run: Path) -> None:
    pytest.importorskip("fastapi")
    outcome = heedful("serve", f"{tiny_run}:en:xx-nonsense", "--port", "0")
    assert (outcome.code, '"xx-nonsense" is not a language code' in outcome.err) == (2, True)


@pytest.mark.parametrize(
    ("source", "reference", "said"), [(0, 1, []), (1, 0, ["`--source`", "`--reference`"]), (0, 0, ["`--reference`"])]
)
def test_evaluate_warns_of_another_language(
    heedful: Program,
    tiny_run: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    source: int,
    reference: int,
    said: list[str],
) -> None:
    model = read_model(tiny_run / "model")
    write_model(
        tmp_path / "model", replace(model, text=replace(model.text, source_language="en", target_language="de"))
    )
    sides = list(zip(*islice(BuiltinCorpus("test", 20).pairs(), 20), strict=True))
    for name, number in (("source", source), ("reference", reference)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in sides[number]), encoding="utf-8")
    files = ("--source", tmp_path / "source", "--reference", tmp_path / "reference")
    assert heedful("evaluate", tmp_path / "model", *files, "--beam", "1").code == 0
    warned = [record.getMessage() for record in caplog.records if "looks like" in record.getMessage()]
    assert [message.split()[0] for message in warned] == said
    assert all(
        message.endswith("but the model translates from English to German. Check the file.") for message in warned
    )


def test_warnings_have_the_style_of_training(own_run: Path) -> None:
    shutil.rmtree(own_run / "model")
    command = [sys.executable, "-m", "heedful", "translate", str(own_run), "--engine", "heedful"]
    done = subprocess.run(command, input=b"a b\n", capture_output=True)
    assert done.returncode == 0
    assert done.stderr.decode().startswith(f"warning: {own_run} has no averaged model yet")


def test_export_takes_languages(heedful: Program, tiny_run: Path, tmp_path: Path) -> None:
    export = ("export", tiny_run, "--to", "marian", "--out", tmp_path / "out", "--languages")
    wrong = heedful(*export, "en", "xx-nonsense")
    assert (wrong.code, "`--languages`: " in wrong.err, (tmp_path / "out").exists()) == (2, True, False)
    assert heedful(*export, "en", "pt_br").code == 0
    text = json.loads((tmp_path / "out" / "config.json").read_text())["heedful"]["text"]
    assert (text["source_language"], text["target_language"]) == ("en", "pt-BR")


@pytest.mark.parametrize("command", ["translate", "evaluate"])
@pytest.mark.parametrize("silent", [0, 3])
def test_warning_for_many_empty_translations(
    heedful: Program,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    command: str,
    silent: int,
) -> None:
    """Empty lines stay empty, and do not count."""
    text = tmp_path / "text"
    text.write_text("a b\nc d\na c\nb a\n" + "\n" * 20)
    found, translate = [], Translator.translate

    def speechless(self: Translator, lines: list[str], **options: object) -> object:
        results = translate(self, lines, **options)  # type: ignore[call-overload]
        for number, result in enumerate(results[:4]):
            object.__setattr__(result, "text", "" if number < silent else "x")
        found.append(results)
        return results

    monkeypatch.setattr(Translator, "translate", speechless)
    options = ["--input", text] if command == "translate" else ["--source", text, "--reference", text]
    with caplog.at_level(logging.WARNING, "heedful"):
        assert heedful(command, model, *options).code == 0
    assert found
    assert caplog.messages == ([empty_translations(3, 4)] if silent else [])
