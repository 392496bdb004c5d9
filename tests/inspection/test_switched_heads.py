"""Heads switched off, against hooks that zero the head's result in the original model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from heedful.config import BOS, EOS
from heedful.errors import InputError
from heedful.inspection.switched_heads import KINDS, Head, parse_heads, without_heads
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model

SOURCE, TARGET = torch.tensor([[7, 8, 9, EOS]]), torch.tensor([[BOS, 11, 12]])


@pytest.fixture
def model(random_model: Callable[..., Model]) -> Transformer:
    return random_model().transformer


@contextmanager
def zeroed(model: Transformer, heads: set[Head]) -> Iterator[None]:
    """Zero the concatenated results of heads with hooks: the oracle."""
    handles = []
    for kind, number, head in heads:
        layer: Any = list(model.encoder if kind == "encoder" else model.decoder)[number]
        module = layer.cross_attention if kind == "cross" else layer.self_attention

        def zero(_: Any, inputs: tuple[torch.Tensor], head: int = head) -> tuple[torch.Tensor]:
            parts = list(inputs[0].split(model.config.d_v, dim=-1))
            parts[head] = torch.zeros_like(parts[head])
            return (torch.cat(parts, dim=-1),)

        handles.append(module.output.register_forward_pre_hook(zero))
    yield
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize(
    "heads",
    [{Head(kind, 1, 2)} for kind in KINDS] + [{Head("encoder", 0, 0), Head("cross", 0, 1), Head("cross", 0, 2)}],
)
@torch.no_grad()
def test_switched_off_heads_contribute_nothing(model: Transformer, heads: set[Head]) -> None:
    with zeroed(model, heads):
        expected = model(SOURCE, TARGET)
    found = without_heads(model, heads)(SOURCE, TARGET)
    torch.testing.assert_close(found, expected)
    assert not torch.allclose(found, model(SOURCE, TARGET))


@torch.no_grad()
def test_the_original_model_is_unchanged_and_its_weights_are_shared(model: Transformer) -> None:
    before = model(SOURCE, TARGET)
    other = without_heads(model, {Head("cross", 1, 0)})
    torch.testing.assert_close(model(SOURCE, TARGET), before, rtol=0, atol=0)
    assert other.embedding.weight_VD.data_ptr() == model.embedding.weight_VD.data_ptr()
    assert without_heads(model, set()) is model


def test_heads_are_parsed(model: Transformer) -> None:
    heads = parse_heads("cross.2.3, encoder.1.1", model.config)
    assert heads == {Head("cross", 1, 2), Head("encoder", 0, 0)}
    assert parse_heads(",".join(map(str, heads)), model.config) == heads
    assert parse_heads("", model.config) == frozenset()


@pytest.mark.parametrize("text", ["cross", "cross.1", "cross.0.1", "cross.3.1", "cross.1.4", "other.1.1", "cross.1.²"])
def test_unknown_heads_are_rejected(model: Transformer, text: str) -> None:
    with pytest.raises(InputError, match="LAYER from 1 to 2 and HEAD from 1 to 3"):
        parse_heads(text, model.config)


def test_heads_of_a_shallow_decoder(random_model: Callable[..., Model]) -> None:
    config = random_model(N=3, N_decoder=1).transformer.config
    assert parse_heads("encoder.3.1,cross.1.1", config) == {Head("encoder", 2, 0), Head("cross", 0, 0)}
    with pytest.raises(InputError, match="LAYER from 1 to 1"):
        parse_heads("cross.2.1", config)
