"""The machine's own ceiling: the matrix products that a training step cannot do without, and nothing else.

Forward, then the two of the backward pass: of each projection at the positions of the batch, of each attention (scores
and sums), and of the logits of real target tokens, as padding has none. Padding is the batch's, not a contender's; who
leaves it out of the projections too has a ceiling that is higher by as much, which is measured beside.
Every product has a matrix of its own, laid out as torch keeps it, because a model has; the other operand is shared
by those of its size, and so mostly in the cache, as a step's newest states are. Results are thrown away into memory
that is kept: pages that the system takes and gives again are no products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from training_task import Rows, Shape, Task


class Product(NamedTuple):
    """x (m × k) times a matrix (k × n), for each of `batch`."""

    batch: int
    m: int
    k: int
    n: int


def products(shape: Shape, rows: Rows, padded: bool) -> list[Product]:
    """Those of the forward pass, in its order; not `padded`: all but attention's are of real tokens only."""
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
    """Queries and output at one side's positions, keys and values at the other's."""
    d = shape.d_model
    return [Product(1, queries, d, d)] * 2 + [Product(1, keys, d, d)] * 2


def _attention(shape: Shape, B: int, T: int, S: int) -> list[Product]:
    heads, width = B * shape.h, shape.d_model // shape.h
    return [Product(heads, T, width, S), Product(heads, T, S, width)]


def _feed_forward(shape: Shape, positions: int) -> list[Product]:
    return [Product(1, positions, shape.d_model, shape.d_ff), Product(1, positions, shape.d_ff, shape.d_model)]


def matrix_products(task: Task, padded: bool = True) -> Callable[[int], float]:
    """`step(i)`: all the products of a step on batch i; there is no loss to tell."""
    lists = [products(task.shape, rows, padded) for rows in task.batches]
    inputs = {one.batch * one.m * one.k for ones in lists for one in ones}
    states = {size: torch.randn(size) for size in inputs}
    matrices = {
        _key(place, one): torch.randn(one.batch, one.n, one.k) for ones in lists for place, one in enumerate(ones)
    }

    def step(i: int) -> float:
        for place, one in enumerate(lists[i]):
            x, w = states[one.batch * one.m * one.k].view(one.batch, one.m, one.k), matrices[_key(place, one)]
            if one.batch == 1:  # a plain product is what a projection is
                x, w = x[0], w[0]
            y = x @ w.mT
            y @ w
            y.mT @ x
        return 0.0

    return step


def _key(place: int, one: Product) -> tuple[int, ...]:
    """The matrices of a model are the same for every batch; what attention multiplies has the batch's size."""
    return place, one.batch, one.n, one.k
