"""The demo from end to end, with a tiny model."""

from pathlib import Path

import pytest

from heedful import demo, grammar, recipes
from heedful.engines.load import load
from heedful.errors import UsageError

pytest.importorskip("matplotlib")


def test_the_demo_prints_scores_examples_and_a_picture(tmp_path: Path) -> None:
    shrunk = {
        "data": {"builtin_pairs": 300, "vocab_size": 500},
        "model": {"N": 1, "d_model": 32, "d_ff": 64, "h": 2},
        "training": {"steps": 6, "validate_every": 6, "save_every": 3, "average": 2, "threads": 1},
    }
    printed = list(demo.demo(tmp_path / "run", recipes.merged(demo.SETTINGS, shrunk), test_pairs=40))
    text = "\n".join(printed)
    assert "Scores on 40 held-out sentences" in text
    assert "BLEU" in text
    assert "|tok:13a|" in text
    assert "exact match" in text
    assert "verb-final" in text
    assert (tmp_path / "run" / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path / "run" / "attention.png") in text
    assert str(tmp_path / "run" / "attention.html") in text
    assert "<!doctype html>" in (tmp_path / "run" / "attention.html").read_text(encoding="utf-8")
    first = next(grammar.pairs("test", 1))
    assert f"  English  {first.english}" in printed
    assert f"  correct  {first.german}" in printed
    assert f"  heedful  {load(tmp_path / 'run').translate(first.english).text}" in printed


def test_demo_does_not_touch_a_run_on_other_text(tmp_path: Path) -> None:
    recipe = recipes.build({"data": {"source": ("a",), "target": ("b",)}})
    (tmp_path / "config.toml").write_text(recipes.to_toml(recipe))
    with pytest.raises(UsageError, match=r"is a run that was trained on text files\. Choose another `--out`"):
        list(demo.demo(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


def test_no_test_sentence_is_in_what_the_demo_trains_on() -> None:
    trained = {pair.english for pair in grammar.pairs("train", 5_000)}
    assert not trained & {pair.english for pair in grammar.pairs("test", demo.TEST_PAIRS)}
