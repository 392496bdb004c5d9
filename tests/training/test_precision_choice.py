"""`training.precision`: chosen by device, printed, recorded, and kept on resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import synthetic_tasks
from heedful import recipes
from heedful.errors import ConfigError
from heedful.storage.run_directory import RunDirectory
from heedful.training import precision as precision_module
from heedful.training.autoconfig import Choice, choose_precision
from heedful.training.dry_run import plan
from heedful.training.precision import activation_dtype
from heedful.training.run import completed, train

CPU = torch.device("cpu")
NATIVE = {True: "bf16", False: "fp32"}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """Everything but the precision."""
    left = {key: value for key, value in synthetic_tasks.TINY.items() if key != "training.precision"}
    return {**synthetic_tasks.tiny_corpus(tmp_path / "text"), **left, "training.steps": 4}


def on(monkeypatch: pytest.MonkeyPatch, native: bool) -> None:
    """Pretend to be a machine with or without native bf16."""
    monkeypatch.setattr(precision_module, "has_native_bf16", lambda _: native)


@pytest.mark.parametrize("native", [True, False])
def test_the_choice_follows_the_device(monkeypatch: pytest.MonkeyPatch, native: bool) -> None:
    on(monkeypatch, native)
    (choice,) = choose_precision({"training": {"steps": 3}}, CPU)
    assert choice == Choice("training", "precision", NATIVE[native], choice.why)
    assert choice.why == f"this processor {'supports' if native else 'does not support'} bf16 natively"
    assert activation_dtype("auto", CPU) == (torch.bfloat16 if native else None)
    for given in ("fp32", "bf16", "fp16"):
        assert choose_precision({"training": {"precision": given}}, CPU) == []


@pytest.mark.parametrize("given", [{}, {"training.precision": "auto"}])
@pytest.mark.parametrize("native", [True, False])
def test_the_choice_is_printed_and_recorded(
    settings: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    native: bool,
    given: dict[str, str],
) -> None:
    on(monkeypatch, native)
    run = train(out=tmp_path / "run", overrides={**settings, **given})
    assert f"training.precision = {NATIVE[native]} — this processor" in capsys.readouterr().err
    assert run.recipe.training.precision == NATIVE[native]
    directory = RunDirectory(run.path)
    assert f'precision = "{NATIVE[native]}"' in directory.config.read_text(encoding="utf-8")
    assert json.loads((directory.checkpoint(4) / "state.json").read_text())["facts"]["precision"] == NATIVE[native]
    for manifest in (directory.checkpoint(4), directory.model, directory.best):
        about = json.loads((manifest / "MANIFEST.json").read_text(encoding="utf-8"))["about"]
        assert about == {"precision": NATIVE[native]}


@pytest.mark.parametrize("given", [{}, {"training.precision": "auto"}])
@pytest.mark.parametrize("native", [True, False])
def test_a_resumed_run_keeps_its_precision_on_another_machine(
    settings: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    native: bool,
    given: dict[str, str],
) -> None:
    on(monkeypatch, native)
    train(out=tmp_path / "run", overrides=settings)
    whole = train(out=tmp_path / "whole", overrides={**settings, "training.steps": 8})
    capsys.readouterr()
    on(monkeypatch, not native)
    run = train(out=tmp_path / "run", overrides={**settings, **given, "training.steps": 8})
    assert "training.precision" not in capsys.readouterr().err
    assert run.recipe.training.precision == NATIVE[native]
    weights = [(one.path / "checkpoints/step-00000008/model.safetensors").read_bytes() for one in (run, whole)]
    assert weights[0] == weights[1]


def test_control_the_two_precisions_differ(settings: dict[str, Any], tmp_path: Path) -> None:
    runs = [
        train(out=tmp_path / name, overrides={**settings, "training.precision": name}).path for name in ("fp32", "bf16")
    ]
    weights = [(path / "checkpoints/step-00000004/model.safetensors").read_bytes() for path in runs]
    assert weights[0] != weights[1]


def test_another_precision_is_refused_when_a_run_is_resumed(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["training.precision"] = "bf16"
    train(out=tmp_path / "run", overrides=settings)
    with pytest.raises(ConfigError, match=r"training\.precision was 'bf16', now 'fp32'"):
        train(out=tmp_path / "run", overrides={**settings, "training.precision": "fp32", "training.steps": 8})


def test_auto_is_the_same_as_leaving_it_out() -> None:
    given = {"training": {"precision": "auto", "steps": 5}, "model": {"N": 2}}
    assert completed(given, None, None) == {"training": {"steps": 5}, "model": {"N": 2}}
    assert given["training"]["precision"] == "auto"


@pytest.mark.parametrize("native", [True, False])
def test_a_dry_run_counts_the_memory_of_the_choice(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    on(monkeypatch, native)
    given = recipes.from_mapping({**settings, "training.precision": "auto"})
    planned = plan(completed(given, None, None), None, CPU)
    assert planned.recipe.training.precision == NATIVE[native]
    assert any(f"training.precision = {NATIVE[native]}" in choice for choice in planned.chosen)
    cost = planned.estimate(planned.recipe, gpu=False)
    assert cost.memory.weights == cost.parameters * (6 if native else 4)
