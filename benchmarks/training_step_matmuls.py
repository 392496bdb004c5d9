"""Upper bound of training speed: only the matrix products of a training step.

It includes the forward product and the two backward products of each projection, of each attention (scores and weighted
sums), and of the logits of real target tokens. A toolkit that also skips padding in the projections has a higher bound,
which is measured too. Every product has its own weight matrix in torch's layout, as in a model. The other operand is
shared by products of the same size and so mostly cached, like the newest states of a step. Results go to preallocated
memory, so that page faults are not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from training_task import Rows, Shape, Task


class Product(NamedTuple):
    """A batched product: x (m × k) times a matrix (k × n)."""

    batch: int
    m: int
    k: int
    n: int


def products(shape: Shape, rows: Rows, padded: bool) -> list[Product]:
    """Return the products of the forward pass in order; unless `padded`, projections cover only real tokens."""
    B, S = rows.source.shape
    T = rows.target_in.shape[1]
    sources, targets = (B * S, B * T) if padded else (rows.source_tokens, rows.tokens)
    encoder = [
        *(*_projections(shape, sources, sources), *_attention(shape, B, S, S)),
        *_feed_forward(shape, sources),
    ]
    decoder = [
        *(*_projections(shape, targets, targets), *_attention(shape, B, T, T)),
        *(*_projections(shape, targets, sources), *_attention(shape, B, T, S)),
        *_feed_forward(shape, targets),
    ]
    return [*encoder * shape.N, *decoder * shape.N, Product(1, rows.tokens, shape.d_model, shape.vocab_size)]


def _projections(shape: Shape, queries: int, keys: int) -> list[Product]:
    """Return the projections: queries and output at one side's positions, keys and values at the other's."""
    d = shape.d_model
    return [Product(1, queries, d, d)] * 2 + [Product(1, keys, d, d)] * 2


def _attention(shape: Shape, B: int, T: int, S: int) -> list[Product]:
    heads, width = B * shape.h, shape.d_model // shape.h
    return [Product(heads, T, width, S), Product(heads, T, S, width)]


def _feed_forward(shape: Shape, positions: int) -> list[Product]:
    return [Product(1, positions, shape.d_model, shape.d_ff), Product(1, positions, shape.d_ff, shape.d_model)]


def matrix_products(task: Task, padded: bool = True, dtype: torch.dtype = torch.float32) -> Callable[[int], float]:
    """Return `step(i)`, which computes all products of a step on batch i; its loss is always 0."""
    lists = [products(task.shape, rows, padded) for rows in task.batches]
    inputs = {one.batch * one.m * one.k for ones in lists for one in ones}
    states = {size: torch.randn(size).to(dtype) for size in inputs}
    matrices = {
        _key(place, one): torch.randn(one.batch, one.n, one.k).to(dtype)
        for ones in lists
        for place, one in enumerate(ones)
    }

    def step(i: int) -> float:
        for place, one in enumerate(lists[i]):
            x, w = states[one.batch * one.m * one.k].view(one.batch, one.m, one.k), matrices[_key(place, one)]
            if one.batch == 1:  # a projection is a plain matrix product
                x, w = x[0], w[0]
            y = x @ w.mT
            y @ w
            y.mT @ x
        return 0.0

    return step


def _key(place: int, one: Product) -> tuple[int, ...]:
    """Return the cache key: weights are the same for every batch, attention operands have the batch's size."""
    return place, one.batch, one.n, one.k
