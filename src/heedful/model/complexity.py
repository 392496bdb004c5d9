"""The cost of layers: the terms of Table 1 and exact FLOP counts.

Table 1 leaves out constants, heads and projections. The FLOP counts include every matrix product, two FLOPs per
multiply-add. Element-wise work (softmax, norms, dropout, biases) is below 1% at the paper's widths and is not counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from heedful.config import ModelConfig

SELF_ATTENTION = "self-attention"
RECURRENT = "recurrent"
CONVOLUTIONAL = "convolutional"  # contiguous kernels, as in ConvS2S
DILATED = "convolutional, dilated"  # as in ByteNet
RESTRICTED = "self-attention, restricted"
LAYERS = (SELF_ATTENTION, RECURRENT, CONVOLUTIONAL, DILATED, RESTRICTED)

GATES = {"plain": 1, "GRU": 3, "LSTM": 4}  # pairs of matrices in a recurrent cell


class Terms(NamedTuple):
    """A row of Table 1, without the O(…)."""

    operations: float  # per layer
    sequential: float  # sequential operations
    longest_path: float  # between any two positions


def table_1(layer: str, n: int, d: int, k: int = 3, r: int = 1) -> Terms:
    """Return the terms for length n, width d, kernel width k and neighbourhood r."""
    if layer == SELF_ATTENTION:
        return Terms(n * n * d, 1, 1)
    if layer == RECURRENT:
        return Terms(n * d * d, n, n)
    if layer == CONVOLUTIONAL:
        return Terms(k * n * d * d, 1, n / k)
    if layer == DILATED:
        return Terms(k * n * d * d, 1, math.log(n, k))
    if layer == RESTRICTED:
        return Terms(r * n * d, 1, n / r)
    raise ValueError(f'Unknown layer "{layer}" of Table 1. Choose one of {", ".join(LAYERS)}.')


def attention_flops(config: ModelConfig, queries: int, memory: int) -> int:
    """Count multi-head attention with its four projections (section 3.2.2).

    Self-attention of length n is `attention_flops(config, n, n)`. Masked positions are computed, so they count.
    """
    d_model, keys, values = config.d_model, config.h * config.d_k, config.h * config.d_v
    projected = queries * d_model * (keys + values) + memory * d_model * (keys + values)  # Q and O, K and V
    attended = queries * memory * (keys + values)  # QKᵀ, and the weights times V
    return 2 * (projected + attended)


def feed_forward_flops(config: ModelConfig, n: int) -> int:
    """Count Eq. 2 at n positions."""
    return 2 * n * 2 * config.d_model * config.d_ff


def recurrent_flops(n: int, d: int, cell: str = "plain") -> int:
    """Count a recurrent layer of width d: per gate, d × d products for input and state."""
    return 2 * n * GATES[cell] * 2 * d * d


def convolution_flops(n: int, d: int, k: int) -> int:
    """Count a convolution d → d of kernel width k at n positions.

    Dilation does not change the count.
    """
    return 2 * n * k * d * d


def stacks_flops(config: ModelConfig, B: int, S: int, T: int) -> int:
    """Count the encoder and the decoder without the projection to the vocabulary."""
    encoder = attention_flops(config, S, S) + feed_forward_flops(config, S)
    decoder = attention_flops(config, T, T) + attention_flops(config, T, S) + feed_forward_flops(config, T)
    return B * (config.N * encoder + config.decoder_layers * decoder)


def logits_flops(config: ModelConfig, tokens: int) -> int:
    """Count the projection to the vocabulary (section 3.4).

    The embedding is a look-up without products.
    """
    return 2 * tokens * config.d_model * config.vocab_size


def forward_flops(config: ModelConfig, B: int, S: int, T: int, tokens: int | None = None) -> int:
    """Count a forward pass of B pairs, padded to S and T; logits for `tokens` (default: all)."""
    return stacks_flops(config, B, S, T) + logits_flops(config, B * T if tokens is None else tokens)


def training_flops(
    config: ModelConfig, B: int, S: int, T: int, tokens: int | None = None, checkpointed: bool = False
) -> int:
    """Count forward and backward passes: three times the forward pass.

    Each product C = AB needs two of the same size in the backward pass, dA = dC·Bᵀ and dB = Aᵀ·dC. Activation
    checkpointing adds one more forward pass of the stacks.
    """
    recomputed = stacks_flops(config, B, S, T) if checkpointed else 0
    return 3 * forward_flops(config, B, S, T, tokens) + recomputed


def orthogonalisation_flops(rows: int, columns: int, rounds: int) -> int:
    """Count Muon's X ← aX + (bXXᵀ + c(XXᵀ)²)X for one matrix, transposed if it is tall."""
    r, c = sorted((rows, columns))
    return rounds * 2 * (r * r * c + r**3 + r * r * c)
