"""What layers cost: the terms of Table 1 as the paper has them, and the FLOPs of real layers.

Table 1 leaves out constants, heads and projections. The FLOPs below leave out nothing that is a matrix product, two
for a multiplication with its addition; what is done once an element (softmax, norms, dropout, biases) is less than a
hundredth of that at the paper's widths, and is not counted.
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
    """A row of Table 1, the O(…) taken off."""

    operations: float  # of a layer
    sequential: float  # operations that must wait for each other
    longest_path: float  # between any two positions


def table_1(layer: str, n: int, d: int, k: int = 3, r: int = 1) -> Terms:
    """Length n, width d, kernels of k positions, neighbourhoods of r."""
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
    raise ValueError(f'Table 1 has no layer "{layer}"; it has {", ".join(LAYERS)}')


def attention_flops(config: ModelConfig, queries: int, memory: int) -> int:
    """Multi-head attention of so many positions to so many others, with its four projections (section 3.2.2).

    Self-attention of length n is `attention_flops(config, n, n)`; what a causal mask hides is computed all the same.
    """
    d_model, keys, values = config.d_model, config.h * config.d_k, config.h * config.d_v
    projected = queries * d_model * (keys + values) + memory * d_model * (keys + values)  # Q and O, K and V
    weighed = queries * memory * (keys + values)  # QKᵀ, and the weights times V
    return 2 * (projected + weighed)


def feed_forward_flops(config: ModelConfig, n: int) -> int:
    """Eq. 2 at n positions."""
    return 2 * n * 2 * config.d_model * config.d_ff


def recurrent_flops(n: int, d: int, cell: str = "plain") -> int:
    """A recurrent layer of width d: each gate multiplies the input and the last state by a d × d matrix each."""
    return 2 * n * GATES[cell] * 2 * d * d


def convolution_flops(n: int, d: int, k: int) -> int:
    """A convolution d → d over k positions, n of them put out; dilation changes nothing."""
    return 2 * n * k * d * d


def stacks_flops(config: ModelConfig, B: int, S: int, T: int) -> int:
    """The encoder and the decoder, without the projection to the vocabulary."""
    encoder = attention_flops(config, S, S) + feed_forward_flops(config, S)
    decoder = attention_flops(config, T, T) + attention_flops(config, T, S) + feed_forward_flops(config, T)
    return B * config.N * (encoder + decoder)


def logits_flops(config: ModelConfig, tokens: int) -> int:
    """The projection to the vocabulary (section 3.4); embedding is a look-up and costs none."""
    return 2 * tokens * config.d_model * config.vocab_size


def forward_flops(config: ModelConfig, B: int, S: int, T: int, tokens: int | None = None) -> int:
    """The whole Transformer for a batch of B pairs padded to S and T; logits for `tokens` positions (default: all)."""
    return stacks_flops(config, B, S, T) + logits_flops(config, B * T if tokens is None else tokens)


def training_flops(
    config: ModelConfig, B: int, S: int, T: int, tokens: int | None = None, checkpointed: bool = False
) -> int:
    """Forward and backward: three times forward.

    A product C = AB has two in the backward pass, dA = dC·Bᵀ and dB = Aᵀ·dC, each of the same size. None is left out:
    every matrix is learnt and every input of one comes from something learnt. Checkpointed activations cost the
    stacks' forward pass once more.
    """
    again = stacks_flops(config, B, S, T) if checkpointed else 0
    return 3 * forward_flops(config, B, S, T, tokens) + again


def orthogonalisation_flops(rows: int, columns: int, rounds: int) -> int:
    """One matrix of an update with Muon: X ← aX + (bXXᵀ + c(XXᵀ)²)X, with X no taller than wide."""
    r, c = sorted((rows, columns))
    return rounds * 2 * (r * r * c + r**3 + r * r * c)
