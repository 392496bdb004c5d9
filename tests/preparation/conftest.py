"""The request to prepare a small dirty corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dirty_corpus import dirty_pairs

import synthetic_tasks as tasks
from heedful.preparation.plan import Request


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """The [data] section of a request."""
    tasks.write(tmp_path / "text", "train", dirty_pairs())
    tasks.write(tmp_path / "text", "valid", tasks.pairs(tasks.reverse, range(300, 306)))
    corpus = {key.removeprefix("data."): (path,) for key, path in tasks.corpus_in(tmp_path / "text").items()}
    return {**corpus, "vocab_size": 300, "max_length": 40}


@pytest.fixture
def request_of_text(settings: dict[str, Any]) -> Request:
    return Request({"data": settings})
