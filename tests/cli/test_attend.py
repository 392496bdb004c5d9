"""`heedful attend`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import heedful as api
from synthetic_tasks import Program


def test_weights_match_the_translation(heedful: Program, model: Path, tmp_path: Path) -> None:
    done = heedful("attend", model, "a b c", "--out", tmp_path / "data.json")
    assert (done.code, done.out, done.err) == (0, f"{tmp_path / 'data.json'}\n", "")
    (content,) = json.loads((tmp_path / "data.json").read_text(encoding="utf-8"))["sentences"]
    expected = api.load(model, device="cpu").translate("a b c", attention=True)
    assert expected.attention is not None
    assert content["target"] == [*expected.tokens, "</s>"]
    torch.testing.assert_close(torch.tensor(content["cross"]), expected.attention.cross, rtol=0, atol=1e-5)


def test_given_translation(heedful: Program, tiny_run: Path, tmp_path: Path) -> None:
    assert heedful("attend", tiny_run, "a b c", "--target", "c b", "--out", tmp_path / "data.json").code == 0
    (content,) = json.loads((tmp_path / "data.json").read_text(encoding="utf-8"))["sentences"]
    assert content["target_text"] == "c b"
    for row in content["cross"][0][0]:
        assert sum(row) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("name", ["page.html", "figure.png", "figure.svg"])
def test_page_and_figure_formats(heedful: Program, model: Path, tmp_path: Path, name: str) -> None:
    if name != "page.html":
        pytest.importorskip("matplotlib")
    assert heedful("attend", model, "a b c", "--target", "c b a", "--out", tmp_path / name).code == 0
    assert (tmp_path / name).stat().st_size > 5_000


def test_all_sentences_or_the_selected_one(heedful: Program, model: Path, tmp_path: Path) -> None:
    assert heedful("attend", model, "a b. C d.", "--out", tmp_path / "all.json").code == 0
    assert heedful("attend", model, "a b. C d.", "--sentence", "2", "--out", tmp_path / "one.json").code == 0
    sentences, chosen = (
        json.loads((tmp_path / name).read_text(encoding="utf-8"))["sentences"] for name in ("all.json", "one.json")
    )
    assert [one["source_text"] for one in sentences] == ["a b.", "C d."]
    assert chosen == sentences[1:]


def test_one_figure_per_sentence(heedful: Program, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = heedful("attend", model, "a b. C d.", "--out", tmp_path / "figure.png")
    assert done.out == f"{tmp_path / 'figure-1.png'}\n{tmp_path / 'figure-2.png'}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure-1.png", "figure-2.png"]
    done = heedful("attend", model, "a b. C d.", "--sentence", "1", "--out", tmp_path / "chosen.png")
    assert done.out == f"{tmp_path / 'chosen.png'}\n"


def test_non_utf8_file_name_and_tokens_that_look_like_formulas(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = os.fsencode(tmp_path) + b"/p\xff.png"
    call = [sys.executable, "-m", "heedful", "attend", model, "a $$ b $_$", "--target", "$$ $x$", "--out", out]
    done = subprocess.run(call, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, out + b"\n"), done.stderr
    assert os.path.exists(out)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["a b", "--out", "page.pdf"], 2, ".html, .png, .svg, .json"),
        (["a b"], 2, "--out"),
        (["", "--out", "page.html"], 3, "TEXT is empty"),
        (["a b", "--target", "  ", "--out", "page.html"], 3, "`--target` is empty"),
        (
            ["a", "--target", " ".join("abcdefgh" * 20), "--out", "page.html"],
            3,
            "tokens, more than the training maximum of 40",
        ),
        (
            ["a b. C d.", "--sentence", "3", "--out", "page.html"],
            3,
            "`--sentence 3` is out of range: TEXT has 2 sentences",
        ),
        (["a \udc80", "--out", "page.html"], 3, "lone surrogate"),
    ],
)
def test_wrong_usage(
    heedful: Program,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = heedful("attend", model, *arguments)
    assert (done.code, message in done.err) == (code, True), done.err
    assert not list(tmp_path.iterdir())


def test_numbered_figures_do_not_overwrite_files(heedful: Program, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    mine = tmp_path / "figure-2.png"
    mine.write_text("mine", encoding="utf-8")
    outcome = heedful("attend", model, "A b. C d.", "--out", tmp_path / "figure.png")
    assert outcome.code == 2, outcome.err
    assert "figure-2.png already exists" in outcome.err
    assert mine.read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["figure-2.png"]
