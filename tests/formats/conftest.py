"""The real LibreTranslate in its own environment (`make formats`), and its packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from libretranslate_server import THEIRS

import heedful
from heedful.cli.main import main

SMALL = {"model.N": 2, "model.d_model": 64, "model.d_ff": 128, "model.h": 4, "model.dropout": 0.2}
# A schedule of its own, so that this model learns enough in 150 steps; alpha is then the paper's.
FIXED = {"training.warmup_steps": 15, "training.learning_rate": 0.131}


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a model's packages for both directions, also as CTranslate2."""
    return trained_packages(tmp_path_factory.mktemp("packages"), SMALL | FIXED)


@pytest.fixture(scope="session")
def automatic_packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same with the automatic schedule and alpha. Its translations are far worse."""
    return trained_packages(tmp_path_factory.mktemp("automatic"), SMALL)


def trained_packages(top: Path, overrides: dict[str, Any]) -> dict[str, Path]:
    if not (THEIRS / "libretranslate").exists():
        pytest.skip("LibreTranslate is not installed: make formats")
    training = {"training.steps": 150, "training.validate_every": 150}
    run = heedful.train(
        out=top / "run",
        overrides={"data.builtin": True, "data.builtin_pairs": 5_000, **training, **overrides},
        device="cpu",
    )
    for name, languages in {"en_de": ("en", "de"), "de_en": ("de", "en")}.items():
        options = ["--to", "argos", "--out", str(top / f"{name}.argosmodel"), "--languages", *languages]
        assert main(["export", str(run.path), *options]) == 0
    assert main(["export", str(run.path), "--to", "ctranslate2", "--out", str(top / "ct2")]) == 0
    return {name: top / name for name in ("run", "en_de.argosmodel", "de_en.argosmodel", "ct2")}
