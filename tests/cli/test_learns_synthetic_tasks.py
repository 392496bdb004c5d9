"""End-to-end training by command line on synthetic tasks, scored on unseen lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import synthetic_tasks as tasks
from synthetic_tasks import Program, Task

SHAPE = {"N": 2, "d_model": 64, "d_ff": 128, "h": 4, "dropout": 0.0}
# A short warmup to a low peak, and an average over the last 150 steps: the same end whatever the seed.
TRAINING = {
    "steps": 900,
    "batch_tokens": 512,
    "warmup_steps": 90,
    "learning_rate": 0.1,
    "label_smoothing": 0.0,
    "clip_norm": 1.0,
    "validate_every": 450,
    "save_every": 25,
    "average": 6,
    "patience": 0,
    "threads": 1,
}
SETTINGS = {
    "data.vocab_size": 300,
    **{f"model.{key}": value for key, value in SHAPE.items()},
    **{f"training.{key}": value for key, value in TRAINING.items()},
}


@pytest.mark.parametrize("task", [tasks.reverse, tasks.sort])
def test_task_is_learned_to_99_percent_exact_match(heedful: Program, tmp_path: Path, task: Task) -> None:
    training = tasks.pairs(task, range(8_000), longest=6)
    held_out = tasks.held_out(task, 300, training, longest=6)
    tasks.write(tmp_path, "train", training)
    tasks.write(tmp_path, "valid", tasks.held_out(task, 50, training, seed=3, longest=6))
    source, target = tasks.write(tmp_path, "test", held_out)
    assert not {pair[0] for pair in training} & {pair[0] for pair in held_out}
    assert len(held_out) == 300

    files = tasks.file_options(tasks.corpus_in(tmp_path))
    trained = heedful("train", *files, "--out", tmp_path / "run", *tasks.set_options(SETTINGS))
    assert trained.code == 0, trained.err
    for search in (["--beam", "1"], []):
        lines = heedful("translate", tmp_path / "run", "--input", source, *search).out.removesuffix("\n").split("\n")
        exact = sum(found == pair[1] for found, pair in zip(lines, held_out, strict=True))
        assert exact >= 0.99 * len(held_out), f"{exact} of {len(held_out)} with {search or 'the default search'}"

    scores = json.loads(heedful("evaluate", tmp_path / "run", "--source", source, "--reference", target, "--json").out)
    assert scores["BLEU"]["value"] > 98
    scored = heedful("score", tmp_path / "run", "--source", source, "--target", target)
    assert float(scored.err.split()[1]) < 1.05
