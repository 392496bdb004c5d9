"""What the tests share: text files, a small tokeniser and a small token store."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path

# Before torch is imported, and for the programs that tests start: tests run side by side, a thread each.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
from hypothesis import HealthCheck, settings

from heedful.config import DataConfig
from heedful.data.store import Store, write_store
from heedful.text.corpus import Pair
from heedful.text.tokenizer import Tokenizer, learn

# The same examples every time: a red test is red for everyone. No deadline: the machine may be busy.
settings.register_profile(
    "heedful", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("heedful")

_SYLLABLES = [f"{consonant}{vowel}" for consonant in "bdfgklmnprst" for vowel in "aeiou"]

WriteText = Callable[..., Path]


def synthetic_pairs(count: int, seed: int = 1, longest: int = 12) -> list[Pair]:
    """Sentences of made-up words and the same words in reverse order."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(_SYLLABLES, k=draw.randint(1, 4))) for _ in range(300)]
    sentences = [draw.choices(words, k=draw.randint(1, longest)) for _ in range(count)]
    return [Pair(" ".join(sentence), " ".join(reversed(sentence))) for sentence in sentences]


@pytest.fixture(scope="session")
def make_pairs() -> Callable[..., list[Pair]]:
    """`make_pairs(count, seed=1, longest=12)`: synthetic sentences and their reversals."""
    return synthetic_pairs


@pytest.fixture
def write_text(tmp_path: Path) -> WriteText:
    """`write_text(name, content)` writes a file below tmp_path: bytes as they are, text as UTF-8, a list as lines.

    A name that ends in .gz is compressed.
    """

    def write(name: str, content: str | bytes | list[str]) -> Path:
        if isinstance(content, list):
            content = "".join(f"{line}\n" for line in content)
        raw = content.encode("utf-8") if isinstance(content, str) else content
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return write


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """600 pieces learnt from synthetic sentences."""
    return learn([text for pair in synthetic_pairs(1_000) for text in pair], 600)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Store:
    """1,000 synthetic pairs as a token store."""
    directory = tmp_path_factory.mktemp("store") / "training"
    return write_store(directory, synthetic_pairs(1_000, seed=2), tokenizer, DataConfig(), {"text": "synthetic"})
