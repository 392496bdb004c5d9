"""log.jsonl: one object per line, truncated to the checkpoint when a run resumes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.storage.run_directory import RunDirectory
from heedful.training import run_log
from heedful.training.run_log import RunLog, read_log


@pytest.fixture(autouse=True)
def _no_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "_tensorboard", lambda _: None)


def test_one_object_per_line(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "log.jsonl")
    log.write(1, "train", loss=0.5, note="Größe\n\u2028")
    log.write(2, "save")
    lines = (tmp_path / "log.jsonl").read_bytes().decode().split("\n")
    assert [json.loads(line) for line in lines[:-1]] == [
        {"step": 1, "kind": "train", "loss": 0.5, "note": "Größe\n\u2028"},
        {"step": 2, "kind": "save"},
    ]
    assert lines[-1] == ""
    assert read_log(tmp_path / "log.jsonl")[0]["note"] == "Größe\n\u2028"
    log.close()


def test_entries_after_the_checkpoint_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = RunLog(path)
    log.write(1, "train")
    kept = log.length()
    log.write(2, "train")
    log.close()
    again = RunLog(path, keep_bytes=kept)
    again.write(2, "valid")
    again.close()
    assert [(entry["step"], entry["kind"]) for entry in read_log(path)] == [(1, "train"), (2, "valid")]


def test_length_is_the_file_size(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "log.jsonl")
    assert log.length() == 0
    log.write(1, "train")
    assert log.length() == (tmp_path / "log.jsonl").stat().st_size
    log.close()


def test_a_half_written_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"step": 1, "kind": "train"}\n\xff\xfe\n5\n{}\n{"step": 2, "kind": "tr')
    assert read_log(path) == [{"step": 1, "kind": "train"}]


def entries(run: Path, kind: str) -> list[dict[str, Any]]:
    return [entry for entry in read_log(RunDirectory(run).log) if entry["kind"] == kind]


def test_a_run_logs_what_the_contract_lists(tiny_run: Path) -> None:
    assert [entry["step"] for entry in entries(tiny_run, "train")] == list(range(1, 13))
    assert [entry["step"] for entry in entries(tiny_run, "valid")] == [6, 12]
    assert [entry["step"] for entry in entries(tiny_run, "save")] == [4, 8, 12]
    for entry in entries(tiny_run, "train"):
        assert {"loss", "nll", "perplexity", "lr", "tokens_per_second"} <= entry.keys()
    for entry in entries(tiny_run, "valid"):
        assert {"loss", "nll", "perplexity", "bleu"} <= entry.keys()
    [start] = entries(tiny_run, "start")
    assert start["step"] == 0
    assert 0 <= start["padding"] < 1


def test_logged_values_match_their_names(tiny_run: Path) -> None:
    for entry in entries(tiny_run, "train"):
        step = entry["step"]
        assert entry["perplexity"] == pytest.approx(2.718281828459045 ** entry["nll"], rel=1e-6)
        assert entry["lr"] == pytest.approx(0.2 * 16**-0.5 * min(step**-0.5, step * 4**-1.5), rel=1e-9)
        assert entry["tokens_per_second"] > 0
    tokens = [entry["tokens"] for entry in entries(tiny_run, "train")]
    assert tokens == sorted(tokens)


def test_tensorboard_is_written_where_it_is_installed(tiny_run: Path) -> None:
    pytest.importorskip("torch.utils.tensorboard")
    assert any((tiny_run / "tensorboard").iterdir())


def test_the_log_does_without_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    log = RunLog(tmp_path / "log.jsonl")
    log.write(1, "train", loss=1.0)
    log.close()
    assert not (tmp_path / "tensorboard").exists()
