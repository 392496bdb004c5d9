"""`heedful train` from files and recipes; standard output has only the run's path."""

from __future__ import annotations

import gzip
import json
import signal
from pathlib import Path
from typing import Any

import pytest

import heedful as api
import synthetic_tasks as tasks
from synthetic_tasks import Program


def test_train_from_files_prints_only_the_run(heedful: Program, corpus: dict[str, str], tmp_path: Path) -> None:
    settings = tasks.set_options({**tasks.TINY, "training.steps": 2})
    outcome = heedful("train", *tasks.file_options(corpus), "--out", tmp_path / "run", *settings)
    assert (outcome.code, outcome.out) == (0, f"{tmp_path / 'run'}\n")
    assert "done: 2 steps" in outcome.err
    last = outcome.err[outcome.err.index("next:\n") :].splitlines()[1:]
    assert [line.split()[1] for line in last] == ["translate", "evaluate", "serve", "info"]
    assert all(f" {tmp_path / 'run'}" in line for line in last)
    assert "chosen: training.clip_norm" not in outcome.err
    again = heedful("train", "--out", tmp_path / "run")
    assert (again.code, again.out) == (0, f"{tmp_path / 'run'}\n")
    assert "is finished: 2 steps" in again.err
    more = heedful("train", "--out", tmp_path / "run", "--set", "training.steps=3")
    assert more.code == 0
    assert "continuing" in more.err
    assert "at step 2 of 3" in more.err


def test_train_from_a_recipe_with_data_root(
    heedful: Program, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sections: dict[str, list[str]] = {"data": [], "model": [], "training": []}
    for key, value in {**tasks.corpus_in(Path()), **tasks.TINY}.items():
        section, name = key.split(".")
        sections[section].append(f"{name} = {json.dumps(value)}")
    recipe = "\n".join(line for name, lines in sections.items() for line in (f"[{name}]", *lines))
    (tmp_path / "mine.toml").write_text(recipe)
    root = tiny_run.parent / "text"
    outcome = heedful("train", "mine.toml", "--data-root", root, "--set", "training.steps=1")
    assert (outcome.code, outcome.out) == (0, f"{tmp_path / 'runs' / 'mine'}\n")
    resolved = (tmp_path / "runs" / "mine" / "config.toml").read_text()
    assert str(root / "train.src") in resolved


def test_train_with_preset_tsv_and_gz(heedful: Program, tmp_path: Path) -> None:
    pairs = tasks.pairs(tasks.copy, range(30))
    table = "".join(f"{source}\t{target}\n" for source, target in pairs)
    (tmp_path / "train.tsv.gz").write_bytes(gzip.compress(table.encode()))
    (tmp_path / "valid.tsv").write_text(table[:60].rsplit("\n", 1)[0] + "\n")
    outcome = heedful(
        *("train", "--source", tmp_path / "train.tsv.gz", "--valid-source", tmp_path / "valid.tsv"),
        *("--out", tmp_path / "run", "--preset", "tiny"),
        *tasks.set_options({"training.steps": 1, "training.threads": 1, "model.d_ff": 64}),
    )
    assert outcome.code == 0, outcome.err
    assert "30 of 30 pairs kept" in outcome.err
    shape = api.load(tmp_path / "run").model.transformer.config
    assert (shape.N, shape.d_model, shape.d_ff, shape.h) == (2, 128, 64, 4)


def test_fine_tune_a_model(heedful: Program, model: Path, corpus: dict[str, str], tmp_path: Path) -> None:
    options = tasks.set_options({"training.steps": 1, "training.threads": 1})
    files = tasks.file_options(corpus)
    outcome = heedful("train", *files, "--out", tmp_path / "run", "--init", model, *options)
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == (model / "tokenizer.model").read_bytes()


def test_signal_exit_code(
    heedful: Program, corpus: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.training.trainer import Trainer

    train_step = Trainer.train_step

    def interrupted(self: Trainer, batches: Any) -> Any:
        signal.raise_signal(signal.SIGINT if self.progress.step == 1 else signal.SIGTERM)
        return train_step(self, batches)

    monkeypatch.setattr(Trainer, "train_step", interrupted)
    arguments = ("train", *tasks.file_options(corpus), "--out", tmp_path / "run", *tasks.set_options(tasks.TINY))
    for code in (143, 130):
        outcome = heedful(*arguments)
        assert (outcome.code, outcome.out) == (code, "")
        assert outcome.err.splitlines()[-1].endswith("Run the same command to continue.")


@pytest.mark.parametrize("damaged", ["newest", "all"])
def test_damaged_checkpoints_of_a_run(
    heedful: Program, own_run: Path, damaged: str, caplog: pytest.LogCaptureFixture
) -> None:
    for path in sorted((own_run / "checkpoints").iterdir())[-1 if damaged == "newest" else 0 :]:
        (path / "optimizer.safetensors").write_bytes(b"")
    outcome = heedful("train", "--out", own_run)
    if damaged == "newest":
        assert outcome.code == 0
        assert "at step 8 of 12" in outcome.err
        assert "skipping a damaged checkpoint" in caplog.text
    else:
        assert (outcome.code, outcome.out) == (3, "")
        assert "None of the checkpoints" in outcome.err
