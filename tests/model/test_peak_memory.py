"""Attention memory grows linearly with length, measured by exact allocation counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful.config import BOS, PAD, ModelConfig
from heedful.model import attention
from heedful.model.attention import MultiHeadAttention
from heedful.model.transformer import Transformer
from tensor_allocations import allocated

LENGTH = 768  # from here on the blocks of the fast kernel have one size
LINEAR, QUADRATIC = 2.2, 3.5  # a length twice as long costs at most, and at least, so many times as much


def peak(compute: Callable[[], object]) -> int:
    return allocated(compute)[0]


def config(**changes: int) -> ModelConfig:
    return ModelConfig(**({"vocab_size": 20, "N": 1, "d_model": 32, "d_ff": 32, "h": 2} | changes))


def attend(module: MultiHeadAttention, kind: str, precision: str, length: int) -> int:
    """The peak of a forward and backward pass of one of the three uses (section 3.2.3)."""
    dtype = getattr(torch, precision)
    x = torch.randn(1, length, 32, dtype=dtype, requires_grad=True)
    memory = torch.randn(1, length + 8, 32, dtype=dtype, requires_grad=True) if kind == "cross" else x
    real = torch.arange(memory.shape[1]) < length - 16
    mask = None if kind == "causal" else real[None, None, None, :]

    def compute() -> None:
        output, _ = module(x, module.keys_values(memory), mask, causal=kind == "causal")
        assert output.dtype == dtype
        output.float().sum().backward()

    return peak(compute)


@pytest.mark.parametrize(
    ("precision", "d_k", "d_v"),
    [
        ("float32", 16, 16),
        ("float32", 8, 16),
        ("float32", 16, 8),
        ("bfloat16", 16, 16),
        ("bfloat16", 8, 16),
        ("float16", 16, 16),
    ],
)
@pytest.mark.parametrize("kind", ["encoder", "causal", "cross"])
def test_attention_memory_grows_linearly(kind: str, precision: str, d_k: int, d_v: int) -> None:
    module = MultiHeadAttention(config(d_k=d_k, d_v=d_v))
    one, two = (attend(module, kind, precision, length) for length in (LENGTH, 2 * LENGTH))
    assert two < LINEAR * one
    assert two < (2 * LENGTH) ** 2 * 2  # not even the weights of one head, two bytes each


@pytest.mark.parametrize("kind", ["encoder", "causal", "cross"])
def test_control_plain_attention_memory_grows_quadratically(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "longest_plain", lambda _: 10**9)
    module = MultiHeadAttention(config())
    one, two = (attend(module, kind, "float32", length) for length in (LENGTH, 2 * LENGTH))
    assert two > QUADRATIC * one


def step(model: Transformer, length: int) -> int:
    """The peak of a training step whose source is padded."""
    ids: Tensor = torch.randint(4, 20, (1, length))
    source, target = ids.clone(), ids.clone()
    source[:, length // 2 :] = PAD
    target[:, 0] = BOS
    return peak(lambda: model(source, target).logsumexp(dim=-1).sum().backward())


@pytest.mark.parametrize("plain", [False, True], ids=["ours", "control: plain"])
def test_model_memory_grows_linearly(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if plain:
        monkeypatch.setattr(attention, "longest_plain", lambda _: 10**9)
    model = Transformer(config())
    one, two = step(model, LENGTH), step(model, 2 * LENGTH)
    assert two > QUADRATIC * one if plain else two < LINEAR * one


def test_checkpointing_lowers_the_peak_by_most_of_the_layers() -> None:
    kept, again = (Transformer(config(N=6, d_ff=128)) for _ in range(2))
    again.checkpoint_activations = True
    step(again, 8)  # what is allocated once in a process
    assert step(again, 200) < step(kept, 200) / 3


def test_every_byte_is_counted() -> None:
    """The control of the measure: sizes that are known."""
    kept: list[Tensor] = []

    def compute() -> None:
        kept.append(torch.empty(1000, dtype=torch.uint8))
        for _ in range(3):
            torch.empty(5000, dtype=torch.uint8)  # freed at once
        kept.append(torch.empty(2000, dtype=torch.uint8))

    assert peak(compute) == 6000
