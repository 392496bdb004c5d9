"""RUN directories: their contents, and which model `open_model` selects."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

import synthetic_tasks as tasks
from heedful.errors import ModelError, UsageError
from heedful.storage.model_directory import Model
from heedful.storage.run_directory import RunDirectory, open_model

MODEL_FILES = {"config.json", "tokenizer.model", "model.safetensors", "MANIFEST.json"}


def weights_of(directory: Path) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(directory / "model.safetensors")


def assert_has(model: Model, expected: dict[str, np.ndarray]) -> None:
    found = model.transformer.state_dict()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], torch.from_numpy(value)), name


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_has_what_the_contract_lists(tiny_run: Path) -> None:
    names = {path.name for path in tiny_run.iterdir()}
    assert {"config.toml", "tokenizer.model", "log.jsonl", "checkpoints", "best", "model"} <= names
    steps = sorted(path.name for path in (tiny_run / "checkpoints").iterdir())
    assert steps == ["step-00000004", "step-00000008", "step-00000012"]
    for step in steps:
        files = {path.name for path in (tiny_run / "checkpoints" / step).iterdir()}
        assert files == {"model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST.json"}
    for model in ("best", "model"):
        assert {path.name for path in (tiny_run / model).iterdir()} == MODEL_FILES


def test_no_partial_files_and_no_pickle(tiny_run: Path) -> None:
    for path in tiny_run.rglob("*"):
        assert not path.name.startswith(".unfinished"), path
        assert path.suffix not in (".pt", ".pth", ".pkl", ".bin", ".npy", ".npz"), path


def test_only_numbered_directories_are_steps(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for name in ("step-00000010", "step-00000009", "step-100000000", "step-x", "step-", "other", ".unfinished-step-1"):
        (run.checkpoints / name).mkdir(parents=True)
    assert run.steps() == [9, 10, 100_000_000]


def test_newest_valid_is_found_past_damaged_ones(own_run: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = RunDirectory(own_run)
    assert run.valid_steps() == [12, 8, 4]
    damage(run.checkpoint(12) / "optimizer.safetensors")
    (run.checkpoint(8) / "state.json").unlink()
    with caplog.at_level(logging.WARNING, "heedful"):
        assert run.valid_steps(1) == [4]
    assert "optimizer.safetensors is damaged" in caplog.text
    assert "state.json is missing" in caplog.text


def test_finding_a_valid_step_reads_no_more_than_needed(own_run: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = RunDirectory(own_run)
    damage(run.checkpoint(4) / "state.json")
    with caplog.at_level(logging.WARNING, "heedful"):
        assert run.valid_steps(2) == [12, 8]
    assert not caplog.text


def test_a_model_says_which_steps_it_is_made_of(tiny_run: Path) -> None:
    assert open_model(tiny_run).history == {"steps": 12, "averaged_steps": [4, 8, 12], "precision": "fp32"}


def test_last_is_the_newest_checkpoint(own_run: Path) -> None:
    run = RunDirectory(own_run)
    assert_has(open_model(own_run, "last"), weights_of(run.checkpoint(12)))
    damage(run.checkpoint(12) / "model.safetensors")
    assert_has(open_model(own_run, "last"), weights_of(run.checkpoint(8)))


def test_best_and_averaged_are_their_directories(tiny_run: Path) -> None:
    assert_has(open_model(tiny_run, "best"), weights_of(tiny_run / "best"))
    assert_has(open_model(tiny_run, "averaged"), weights_of(tiny_run / "model"))


def test_run_without_an_average_falls_back(own_run: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.rmtree(own_run / "model")
    with caplog.at_level(logging.WARNING, "heedful"):
        assert_has(open_model(own_run), weights_of(own_run / "best"))
    assert "no averaged model yet; using the best one" in caplog.text
    shutil.rmtree(own_run / "best")
    with caplog.at_level(logging.WARNING, "heedful"):
        assert_has(open_model(own_run), weights_of(own_run / "checkpoints" / "step-00000012"))
    assert "using the last one" in caplog.text
    shutil.rmtree(own_run / "checkpoints")
    with pytest.raises(ModelError, match="no valid checkpoint yet"):
        open_model(own_run)


@pytest.mark.parametrize("name", ["averaged", "best"])
def test_requested_checkpoint_has_no_fallback(own_run: Path, name: str) -> None:
    shutil.rmtree(own_run / {"averaged": "model", "best": "best"}[name])
    with pytest.raises(ModelError, match=f'has no "{name}" model yet'):
        open_model(own_run, name)


def test_damaged_average_is_an_error_without_fallback(own_run: Path) -> None:
    damage(own_run / "model" / "model.safetensors")
    with pytest.raises(ModelError, match="damaged"):
        open_model(own_run)


def test_a_model_has_no_best_or_last(tiny_run: Path) -> None:
    for name in ("best", "last"):
        with pytest.raises(UsageError, match="is a model, not a run"):
            open_model(tiny_run / "model", name)
    assert_has(open_model(tiny_run / "model", "averaged"), weights_of(tiny_run / "model"))


def test_an_unknown_checkpoint_gets_a_suggestion(tiny_run: Path) -> None:
    with pytest.raises(UsageError, match='Did you mean "averaged"'):
        open_model(tiny_run, "average")


def test_recipe_round_trip(tiny_run: Path) -> None:
    recipe = RunDirectory(tiny_run).recipe()
    for key, value in tasks.TINY.items():
        section, name = key.split(".")
        assert getattr(getattr(recipe, section), name) == value, key
