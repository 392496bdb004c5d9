"""The ladder of variants: it trains each on the first pairs of a corpus and tabulates validation scores."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import synthetic_tasks as tasks

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import ladder


def test_each_variant_is_trained_and_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = tasks.tiny_corpus(tmp_path / "text")
    automatic = {key: value for key, value in tasks.TINY.items() if "warmup" not in key and "rate" not in key}
    # Keys of a variant come last, so they override these.
    monkeypatch.setattr(ladder, "VARIANTS", {"default": automatic, "deep": {**automatic, "model.N": 2}})
    named = [part for key, path in files.items() for part in (f"--{key.removeprefix('data.').replace('_', '-')}", path)]
    table = tmp_path / "ladder.json"
    arguments = ["--out", str(tmp_path / "runs"), "--pairs", "40", "--table", str(table), "--threads", "1"]
    monkeypatch.setattr(sys, "argv", ["ladder.py", *named, *arguments])
    ladder.main()
    (found,) = json.loads(table.read_text())
    assert [row[:2] for row in found["rows"]] == [["40", "default"], ["40", "deep"]]
    assert all(raw["steps"] == 12 and raw["alpha"] >= 0 for raw in found["raw"].values())
    assert len((tmp_path / "runs" / "text" / "40.source").read_text().splitlines()) == 40
    assert "default" in capsys.readouterr().out
