"""Shared fixtures: text files, a small tokenizer and a small token store."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Before torch is imported, and for the programs that tests start: tests run side by side, a thread each.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch
from hypothesis import HealthCheck, settings

from heedful.config import DataConfig, DecodingConfig, ModelConfig
from heedful.data.store import Store, write_store
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model, TextFacts
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
    """Return `write_text(name, content)`, which writes a file below tmp_path.

    Bytes are written as they are, text as UTF-8, and a list as lines. A name that ends in .gz is compressed.
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
    """A tokenizer with 600 tokens, trained on synthetic sentences."""
    return learn([text for pair in synthetic_pairs(1_000) for text in pair], 600)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Store:
    """1,000 synthetic pairs as a token store."""
    directory = tmp_path_factory.mktemp("store") / "training"
    return write_store(directory, synthetic_pairs(1_000, seed=2), tokenizer, DataConfig(), {"text": "synthetic"})


@pytest.fixture(scope="session")
def random_model(tokenizer: Tokenizer) -> Callable[..., Model]:
    """`random_model(N=3, positions="learned", …)`: keys of the shape, over a small one."""

    def make(**shape: Any) -> Model:
        generator = torch.Generator().manual_seed(1)
        config = ModelConfig(**{"vocab_size": tokenizer.vocab_size, "N": 2, "d_model": 24, "d_ff": 40, "h": 3} | shape)
        transformer = Transformer(config).eval()
        with torch.no_grad():
            for name, parameter in transformer.named_parameters():
                noise = 0.3 * torch.randn(parameter.shape, generator=generator)
                parameter.copy_(noise + 1.0 if "norm.weight" in name else noise)
        text = TextFacts(source_language="en", target_language="de", max_length=60)
        return Model(transformer, tokenizer, text, DecodingConfig(max_extra=8), {"steps": 7})

    return make
