"""Settings that the paper does not have take effect, and runs with them resume exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import synthetic_tasks as tasks
from heedful.storage.run_directory import open_model
from heedful.training.run import train


@pytest.mark.parametrize(
    ("key", "value", "papers"),
    [
        ("data.bpe_dropout", 0.2, 0.0),
        ("model.word_dropout", 0.2, 0.0),
        ("training.optimizer", "muon", "adam"),
        ("training.bidirectional_steps", 4, 0),
        ("training.consistency", 3.0, 0.0),
    ],
)
def test_resumed_run_matches_an_uninterrupted_one(tmp_path: Path, key: str, value: Any, papers: Any) -> None:
    settings = {**tasks.tiny_corpus(tmp_path / "text"), **tasks.TINY}
    weights = []
    for name, own, sittings in (("whole", value, (6,)), ("stopped", value, (3, 6)), ("paper", papers, (6,))):
        for steps in sittings:
            train(out=tmp_path / name, overrides={**settings, key: own, "training.steps": steps})
        weights.append(open_model(tmp_path / name, "last").transformer.state_dict())
    whole, stopped, paper = weights
    assert all(torch.equal(whole[name], stopped[name]) for name in whole)
    assert any(not torch.equal(whole[name], paper[name]) for name in whole)
