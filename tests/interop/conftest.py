"""A model that is random in every parameter: zero biases and unit norms would hide a mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from heedful.config import DecodingConfig, ModelConfig
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model, TextFacts
from heedful.text.tokenizer import Tokenizer

MakeModel = Callable[..., Model]


@pytest.fixture(scope="session")
def random_model(tokenizer: Tokenizer) -> MakeModel:
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


@pytest.fixture(scope="session")
def model(random_model: MakeModel) -> Model:
    return random_model()
