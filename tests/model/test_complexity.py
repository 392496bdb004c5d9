"""Table 1 and FLOPs: by formula, by torch's counter on real modules, and by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from heedful import presets
from heedful.config import BOS, ModelConfig
from heedful.data.batches import Batch
from heedful.model import complexity
from heedful.model.attention import MultiHeadAttention
from heedful.model.complexity import (
    CONVOLUTIONAL,
    DILATED,
    LAYERS,
    RECURRENT,
    RESTRICTED,
    SELF_ATTENTION,
    attention_flops,
    convolution_flops,
    feed_forward_flops,
    forward_flops,
    recurrent_flops,
    table_1,
    training_flops,
)
from heedful.model.layers import FeedForward
from heedful.model.transformer import Transformer
from heedful.training.loss import batch_loss

# d_k = d_v = d_model/h; d_k ≠ d_v and neither d_model/h; one head; stacks of different depths.
SHAPES = [
    ModelConfig(vocab_size=23, N=2, d_model=16, d_ff=24, h=4, dropout=0.1),
    ModelConfig(vocab_size=31, N=1, d_model=10, d_ff=14, h=3, d_k=2, d_v=5, attention_dropout=0.1),
    ModelConfig(vocab_size=23, N=3, d_model=8, d_ff=40, h=1, positions="learned"),
    ModelConfig(vocab_size=23, N=3, N_decoder=1, d_model=8, d_ff=20, h=2),
]
SIZES = [(1, 1, 1), (2, 7, 5), (3, 4, 9)]  # B, S, T


def product_in_place(_: object, left: tuple[int, int], right: tuple[int, int], **__: object) -> int:
    """`addmm_`, which torch's counter does not know; the loss uses it."""
    return 2 * left[0] * left[1] * right[1]


def counted(compute: Callable[[], object]) -> int:
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: product_in_place}) as counter:
        compute()
    return counter.get_total_flops()


def backward(output: Tensor) -> None:
    output.sum().backward()


@pytest.mark.parametrize(
    ("layer", "operations", "sequential", "longest_path"),
    [  # n = 81, d = 4, k = 3, r = 9: the table's O(…) worked out
        (SELF_ATTENTION, 81 * 81 * 4, 1, 1),
        (RECURRENT, 81 * 16, 81, 81),
        (CONVOLUTIONAL, 3 * 81 * 16, 1, 27),
        (DILATED, 3 * 81 * 16, 1, 4),
        (RESTRICTED, 9 * 81 * 4, 1, 9),
    ],
)
def test_rows_of_table_1(layer: str, operations: int, sequential: int, longest_path: int) -> None:
    terms = table_1(layer, n=81, d=4, k=3, r=9)
    assert terms == pytest.approx((operations, sequential, longest_path), rel=1e-12)


def test_conclusions_of_section_4() -> None:
    """Self-attention costs less than recurrence if n < d; a convolution k times as much."""
    for n in (10, 70, 511):
        assert table_1(SELF_ATTENTION, n, 512).operations < table_1(RECURRENT, n, 512).operations
    assert table_1(SELF_ATTENTION, 513, 512).operations > table_1(RECURRENT, 513, 512).operations
    assert table_1(CONVOLUTIONAL, 70, 512, k=3).operations == 3 * table_1(RECURRENT, 70, 512).operations
    for layer in LAYERS:
        assert (table_1(layer, 100, 8).sequential == 1) == (layer != RECURRENT)
    with pytest.raises(ValueError, match='Unknown layer "pooling" of Table 1'):
        table_1("pooling", 1, 1)


@pytest.mark.parametrize("config", SHAPES)
@pytest.mark.parametrize(("B", "S", "T"), SIZES)
def test_attention_flops_match_torch(config: ModelConfig, B: int, S: int, T: int) -> None:
    """Cross-attention and self-attention: forward is a third of forward and backward."""
    attention = MultiHeadAttention(config)
    x, memory = (torch.randn(B, length, config.d_model, requires_grad=True) for length in (T, S))
    cross = B * attention_flops(config, T, S)
    assert counted(lambda: attention(x, attention.keys_values(memory))) == cross
    assert counted(lambda: backward(attention(x, attention.keys_values(memory))[0])) == 3 * cross
    own = B * attention_flops(config, T, T)
    assert counted(lambda: attention(x, attention.keys_values(x), causal=True)) == own


def test_control_backward_is_cheaper_if_the_input_needs_no_gradient() -> None:
    """An input that needs no gradient saves one product of each projection of it."""
    config = SHAPES[1]
    attention, x = MultiHeadAttention(config), torch.randn(1, 6, config.d_model)
    saved = 2 * 6 * config.d_model * config.h * (2 * config.d_k + config.d_v)
    total = counted(lambda: backward(attention(x, attention.keys_values(x))[0]))
    assert total == 3 * attention_flops(config, 6, 6) - saved


@pytest.mark.parametrize("config", SHAPES)
def test_feed_forward_flops_match_torch(config: ModelConfig) -> None:
    layer, x = FeedForward(config), torch.randn(2, 7, config.d_model, requires_grad=True)
    assert counted(lambda: layer(x)) == feed_forward_flops(config, 14)
    assert counted(lambda: backward(layer(x))) == 3 * feed_forward_flops(config, 14)


@pytest.mark.parametrize(
    ("kind", "cell", "gates"), [("plain", nn.RNNCell, 1), ("GRU", nn.GRUCell, 3), ("LSTM", nn.LSTMCell, 4)]
)
def test_recurrent_flops_match_torch_and_a_count_by_hand(kind: str, cell: type[nn.RNNCellBase], gates: int) -> None:
    """n = 5 steps of width 6: per gate, two 6 × 6 products with 36 multiply-adds each."""
    by_hand = 5 * gates * (2 * 36 + 2 * 36)
    assert recurrent_flops(5, 6, kind) == by_hand
    layer = cell(6, 6)

    def run() -> None:
        state = None
        for x in torch.randn(5, 1, 6):
            state = layer(x, state)

    assert counted(run) == by_hand


@pytest.mark.parametrize("dilation", [1, 2])
def test_convolution_flops_match_torch(dilation: int) -> None:
    layer = nn.Conv1d(6, 6, 3, padding=dilation, dilation=dilation)
    assert counted(lambda: layer(torch.randn(1, 6, 11))) == convolution_flops(11, 6, 3)


@pytest.mark.parametrize("config", SHAPES)
@pytest.mark.parametrize(("B", "S", "T"), SIZES)
@pytest.mark.parametrize("checkpointed", [False, True])
def test_transformer_flops_match_torch(config: ModelConfig, B: int, S: int, T: int, checkpointed: bool) -> None:
    model = Transformer(config)
    model.checkpoint_activations = checkpointed
    source, target = torch.randint(4, 20, (B, S)), torch.randint(4, 20, (B, T))
    source[0, 1:] = 0  # padding is computed like anything else
    forward = counted(lambda: model(source, target))
    assert forward == forward_flops(config, B, S, T)
    whole = counted(lambda: backward(model(source, target)))
    assert whole == training_flops(config, B, S, T, checkpointed=checkpointed)
    assert checkpointed or whole == 3 * forward


@pytest.mark.parametrize("config", SHAPES)
def test_training_step_flops_match_torch(config: ModelConfig) -> None:
    """Of three targets of 6, 4 and 1 tokens no logits are computed where there is padding."""
    model = Transformer(config)
    target = torch.tensor([[4, 5, 6, 7, 8, 3], [4, 5, 6, 3, 0, 0], [3, 0, 0, 0, 0, 0]])
    batch = Batch(torch.full((3, 4), 5), target.clone().fill_(BOS), target, 11, (1, 2, 3))
    step = counted(lambda: batch_loss(model, batch, 0.1).smoothed.backward())
    assert step == training_flops(config, 3, 4, 6, tokens=11)


@pytest.mark.parametrize(("shape", "steps", "expected"), [(presets.base(), 1e5, 0.94e18), (presets.big(), 3e5, 9.6e18)])
def test_flops_of_the_papers_training(shape: ModelConfig, steps: float, expected: float) -> None:
    """25,000 + 25,000 tokens per step in 25-token sentences, not the estimate of Table 2."""
    assert steps * training_flops(shape, 1_000, 25, 25) == pytest.approx(expected, rel=0.02)


def test_table_1_is_the_leading_term_of_the_flops() -> None:
    """Long sentences: n²·d, four times (QKᵀ and AV, two FLOPs each).

    Wide layers: n·d², four times a gate.
    """
    config = ModelConfig(vocab_size=9, d_model=8, h=2)
    n = 10**6
    assert attention_flops(config, n, n) == pytest.approx(4 * table_1(SELF_ATTENTION, n, 8).operations, rel=1e-4)
    assert recurrent_flops(7, 64, "LSTM") == 4 * 4 * table_1(RECURRENT, 7, 64).operations
    assert convolution_flops(7, 64, 5) == 2 * table_1(CONVOLUTIONAL, 7, 64, k=5).operations
    assert math.isclose(complexity.table_1(DILATED, 64, 1, k=2).longest_path, 6)
