"""`heedful treebank` and `heedful evaluate --trees`: from trees to a scored parser."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import heedful as api
import synthetic_tasks as tasks
from heedful.parsing.bracket_scores import score_outputs
from heedful.parsing.linearization import linearize
from heedful.parsing.trees import read_trees
from synthetic_tasks import Program

NOUNS, VERBS = "abcd", "efgh"


def noun_phrase(draw: random.Random, depth: int) -> str:
    """A noun, or a noun phrase with another behind a p."""
    if depth and draw.random() < 0.5:
        inner = noun_phrase(draw, depth - 1)
        return f"(NP (NP (NN {draw.choice(NOUNS)})) (PP (IN p) {inner}))"
    return f"(NP-SBJ-1 (NN {draw.choice(NOUNS)}) )"


def sentence(number: int) -> str:
    draw = random.Random(number)
    verb = f"(VP (VB {draw.choice(VERBS)}) {noun_phrase(draw, 1)} (S (NP (-NONE- *T*-1)) ))"
    return f"( (S {noun_phrase(draw, 1)}\n  {verb}\n  (. .) ))\n"


def write_treebank(top: Path, files: int, each: int) -> Path:
    for number in range(files):
        path = top / f"{number % 3}" / f"made_{number:04d}.mrg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(sentence(1_000 * number + place) for place in range(each)))
    return top


@pytest.fixture
def texts(heedful: Program, tmp_path: Path) -> Path:
    """The output of the command for 20 files of two trees each."""
    assert heedful("treebank", write_treebank(tmp_path / "made", 20, 2), "--out", tmp_path / "texts").code == 0
    return tmp_path / "texts"


def test_splits_consist_of_whole_files(heedful: Program, tmp_path: Path) -> None:
    top = write_treebank(tmp_path / "made", 20, 2)
    outcome = heedful("treebank", top, "--out", tmp_path / "texts")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert [line.split(" trees")[0] for line in lines] == [
        "train: 16 files, 32",
        "valid: 2 files, 4",
        "test: 2 files, 4",
    ]
    written = [path for path in (tmp_path / "texts").iterdir() if path.name != "MANIFEST.json"]
    found = {path.name: path.read_text().removesuffix("\n").split("\n") for path in written}
    assert sorted(found) == sorted(
        f"{p}.{kind}" for p in ("train", "valid", "test") for kind in ("words", "trees", "gold")
    )
    last = sorted(top.rglob("*.mrg"))[-2:]
    expected = [tree for path in last for tree in read_trees(path)]
    assert found["test.words"] == [" ".join(tree.words) for tree in expected]
    assert found["test.trees"] == [linearize(tree.brackets, tree.tags) for tree in expected]
    assert list(read_trees(tmp_path / "texts" / "test.gold")) == expected
    assert len(found["test.gold"]) == 4
    assert not any(mark in line for line in found["test.gold"] for mark in ("-NONE-", "SBJ", "(S)"))
    assert lines[2].endswith(f", {sum(len(tree.words) for tree in expected)} words")


def test_second_run_replaces_the_first(heedful: Program, texts: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in texts.iterdir()}
    assert heedful("treebank", tmp_path / "made", "--out", texts).code == 0
    assert {path.name: path.read_bytes() for path in texts.iterdir()} == before
    next((tmp_path / "made").rglob("*.mrg")).write_text("(S (NN a)")
    assert heedful("treebank", tmp_path / "made", "--out", texts).code == 3
    assert {path.name: path.read_bytes() for path in texts.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "texts"]


def test_evaluate_scores_the_model_output(heedful: Program, model: Path, texts: Path, tmp_path: Path) -> None:
    """A model that has never seen a tree: every output is repaired, and still scored."""
    arguments = ("--source", texts / "test.words", "--reference", texts / "test.gold", "--beam", "1")
    outcome = heedful("evaluate", model, *arguments, "--trees", "--json", "--output", tmp_path / "parsed")
    assert (outcome.code, outcome.err) == (0, "")
    outputs = heedful("translate", model, "--input", texts / "test.words", "--beam", "1").out.splitlines()
    gold = list(read_trees(texts / "test.gold"))
    expected = score_outputs(gold, outputs)
    content = json.loads(outcome.out)
    assert content["all"]["f1"] == expected.all.f1
    assert content["up_to_40_words"]["right"] == expected.short.right
    assert content["well_formed"] == expected.well_formed_share == 0
    assert (content["sentences"], content["rules"]) == (4, "evalb COLLINS.prm")
    parsed = list(read_trees(tmp_path / "parsed"))
    assert [(tree.words, tree.tags) for tree in parsed] == [(tree.words, tree.tags) for tree in gold]
    plain = heedful("evaluate", model, *arguments, "--trees")
    assert plain.out == f"{expected}\n"


SETTINGS = {
    "data.vocab_size": 320,
    "data.max_ratio": 10,
    "model.N": 1,
    "model.d_model": 48,
    "model.d_ff": 96,
    "model.h": 4,
    "model.dropout": 0.0,
    "training.steps": 400,
    "training.batch_tokens": 512,
    "training.warmup_steps": 30,
    "training.learning_rate": 0.25,
    "training.label_smoothing": 0.0,
    "training.clip_norm": 1.0,
    "training.validate_every": 400,
    "training.save_every": 25,
    "training.average": 3,
    "training.patience": 0,
    "training.threads": 1,
    "decoding.max_extra": 300,
}


def test_grammar_is_learned(heedful: Program, tmp_path: Path) -> None:
    """Train a parser end to end and score it on unseen sentences."""
    write_treebank(tmp_path / "made", 20, 100)
    texts = tmp_path / "texts"
    assert heedful("treebank", tmp_path / "made", "--out", texts).code == 0
    files = [
        ("source", "train.words"),
        ("target", "train.trees"),
        ("valid-source", "valid.words"),
        ("valid-target", "valid.trees"),
    ]
    given = [part for option, name in files for part in (f"--{option}", texts / name)]
    trained = heedful("train", *given, "--out", tmp_path / "run", *tasks.set_options(SETTINGS))
    assert trained.code == 0, trained.err
    arguments = ("--source", texts / "test.words", "--reference", texts / "test.gold")
    content = json.loads(heedful("evaluate", tmp_path / "run", *arguments, "--trees", "--json").out)
    assert content["all"]["f1"] > 95
    assert content["well_formed"] > 90


def test_one_tree_per_line(heedful: Program, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sentences in one tree are one source line, which must not be split."""
    (tmp_path / "words").write_text("abc efg . Bcd fgh .\n")
    tree = "( (S (S (NP (NN abc)) (VP (VB efg)) (. .)) (S (NP (NN Bcd)) (VP (VB fgh)) (. .))))\n"
    (tmp_path / "gold").write_text(tree)
    seen, search = [], api.Translator.search

    def counted(self: api.Translator, sources: list[list[int]], **given: Any) -> Any:
        seen.append(len(sources))
        return search(self, sources, **given)

    monkeypatch.setattr(api.Translator, "search", counted)
    files = ("--source", tmp_path / "words", "--reference", tmp_path / "gold")
    assert heedful("evaluate", model, *files, "--trees").code == 0
    assert heedful("translate", model, "--input", tmp_path / "words").code == 0
    assert seen == [1, 2]
