"""R27: the tests of R1, R2 and R9 pass with `training.precision = "bf16"`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_r01_clean_resume import (  # noqa: F401  # pytest runs them here with the fixtures below
    EVERY,
    test_control_forgets,
    test_resumed_from_each_step,
    test_the_run_crosses_two_epoch_borders,
)
from test_r02_sigkill import (  # noqa: F401
    test_control_without_the_moments,
    test_control_without_whole_directories_and_digests,
    test_killed_in_the_last_average_after_an_earlier_stop,
    test_killed_runs_end_bit_identical,
)
from test_r09_signals import test_control_without_handlers, test_saves_exits_soon_and_resumes  # noqa: F401
from tiny_runs import SETTINGS, continued, end_of

import synthetic_tasks
from heedful.storage.run_directory import RunDirectory

pytestmark = pytest.mark.faults

BF16 = {"training.precision": "bf16"}


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run in bf16 that nothing happened to."""

    def build(directory: Path) -> None:
        continued(directory / "run", {**synthetic_tasks.tiny_corpus(directory / "text"), **SETTINGS, **BF16})

    return synthetic_tasks.once(tmp_path_factory, "reference-bf16", build) / "run"


@pytest.fixture(scope="session")
def settings(reference: Path) -> dict[str, Any]:
    return {**synthetic_tasks.corpus_in(reference.parent / "text"), **SETTINGS, **BF16}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 steps in bf16 with a checkpoint at each."""

    def build(directory: Path) -> None:
        continued(directory / "run", {**synthetic_tasks.tiny_corpus(directory / "text"), **EVERY, **BF16})

    return synthetic_tasks.once(tmp_path_factory, "straight-bf16", build) / "run"


@pytest.fixture
def every(straight: Path) -> dict[str, Any]:
    return {**synthetic_tasks.corpus_in(straight.parent / "text"), **EVERY, **BF16}


def test_control_float32_ends_elsewhere(reference: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    """The runs that are compared here do compute in bf16."""
    assert RunDirectory(reference).recipe().training.precision == "bf16"
    continued(tmp_path / "run", {**settings, "training.precision": "fp32"})
    found, expected = end_of(tmp_path / "run"), end_of(reference)
    assert found["model/model.safetensors"] != expected["model/model.safetensors"]
    assert found["train"] != expected["train"]
