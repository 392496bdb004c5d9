"""Experiments without training, computed in seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.lab.experiment import Bars, Curve, Curves, Finding, Setting
from heedful.model.attention import MultiHeadAttention
from heedful.model.embeddings import sinusoids
from heedful.model.transformer import Transformer


def scaling(_: Setting) -> Finding:
    """Test the scaling by √d_k with random queries and keys, mean 0, variance 1 (footnote 4)."""
    generator = torch.Generator().manual_seed(1)
    queries, keys = 1_000, 32
    rows: list[list[str]] = []
    largest: dict[str, list[float]] = {"divided by √d_k": [], "not divided": []}
    widths = (4, 16, 64, 256, 1_024)
    deviations = []
    for d_k in widths:
        q_QK = torch.randn(queries, d_k, generator=generator)
        k_QSK = torch.randn(queries, keys, d_k, generator=generator)
        scores_QS = torch.einsum("qk,qsk->qs", q_QK, k_QSK)
        deviations.append(float(scores_QS.std()))
        plain, scaled = scores_QS.softmax(dim=1), (scores_QS / math.sqrt(d_k)).softmax(dim=1)
        largest["not divided"].append(float(plain.amax(dim=1).mean()))
        largest["divided by √d_k"].append(float(scaled.amax(dim=1).mean()))
        rows.append(
            [
                str(d_k),
                f"{deviations[-1]:.2f}",
                f"{math.sqrt(d_k):.2f}",
                *(f"{largest[name][-1]:.2f}" for name in ("not divided", "divided by √d_k")),
                *(f"{_slope(weights):.3f}" for weights in (plain, scaled)),
            ]
        )
    grows = all(abs(found / math.sqrt(d_k) - 1) < 0.05 for found, d_k in zip(deviations, widths, strict=True))
    saturates = largest["not divided"][-1] > 0.9 and max(largest["divided by √d_k"]) < 0.5
    return Finding(
        (
            "d_k",
            "standard deviation of q·k",
            "√d_k",
            "largest of 32 weights",
            "the same, scaled",
            "slope",
            "the same, scaled",
        ),
        rows,
        grows and saturates,
        "the standard deviation of the dot products grows as √d_k; without scaling, at d_k = 1,024, one key gets "
        f"{largest['not divided'][-1]:.0%} of the weight, and the gradient of the softmax nearly vanishes.",
        Curves(
            [Curve(name, widths, values) for name, values in largest.items()],
            "d_k (width of queries and keys)",
            "largest of 32 attention weights",
            log_x=True,
        ),
    )


def _slope(weights_QS: Tensor) -> float:
    """Return the trace of the softmax Jacobian, diag(p) - ppᵀ: 0 if softmax is saturated."""
    return float((1 - weights_QS.square().sum(dim=1)).mean())


def order(_: Setting) -> Finding:
    """Compare a random encoder's states for a sentence and a permutation of it."""
    generator = torch.Generator().manual_seed(1)
    length = 12
    ids_1S = torch.randint(4, 50, (1, length), generator=generator)
    shuffle_S = torch.randperm(length, generator=generator)
    rows, moved = [], {}
    for name in ("without", "with sinusoids"):
        torch.manual_seed(1)
        positions = "learned" if name == "without" else "sinusoidal"
        config = ModelConfig(vocab_size=50, N=2, d_model=32, d_ff=64, h=4, dropout=0.0, positions=positions)
        model = Transformer(config).eval()
        with torch.inference_mode():
            if model.embedding.positions_TD is not None:
                model.embedding.positions_TD.zero_()
            straight, shuffled = (model.encode(ids).states_BSD[0] for ids in (ids_1S, ids_1S[:, shuffle_S]))
        moved[name] = float((straight[shuffle_S] - shuffled).abs().max())
        rows.append([name, f"{moved[name]:.1e}"])
    held = moved["without"] < 1e-5 < 1e-2 < moved["with sinusoids"]
    return Finding(
        ("positions", "largest difference between a word's states in the two orders"),
        rows,
        held,
        "without positions, a word's state is the same in any order: the model cannot see word order.",
        Bars(moved, "positional encoding", "largest change in a word's state"),
    )


def shifts(_: Setting) -> Finding:
    """Test PE(pos + k) = R_k · PE(pos) with one matrix R_k for all positions."""
    d_model, positions = 64, 400
    table_TD = sinusoids(positions + 101, d_model)
    rows, worst = [], 0.0
    likeness = []
    distances = (1, 2, 5, 10, 20, 50, 100)
    for k in distances:
        rotated_TD = table_TD[:positions] @ _rotation(k, d_model).T
        worst = max(worst, error := float((rotated_TD - table_TD[k : k + positions]).abs().max()))
        products_T = (table_TD[:positions] * table_TD[k : k + positions]).sum(dim=1)
        likeness.append(float(products_T.mean()))
        rows.append([str(k), f"{error:.1e}", f"{likeness[-1]:.2f}", f"{float(products_T.std()):.1e}"])
    return Finding(
        ("k", "largest error of R_k · PE(pos)", "PE(pos) · PE(pos + k)", "its spread over positions"),
        rows,
        worst < 1e-9,
        f"for {positions} positions, the error is at most {worst:.0e}; the dot product of two encodings depends "
        "only on their distance.",
        Curves(
            [Curve("PE(pos) · PE(pos + k)", distances, likeness)],
            "distance k between two positions",
            "dot product of their encodings",
            log_x=True,
        ),
    )


def _rotation(k: int, d_model: int) -> Tensor:
    """Return the matrix that rotates each pair (sin, cos) by k times its frequency."""
    angles = k * 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    rotation_DD = torch.zeros(d_model, d_model, dtype=torch.float64)
    even, odd = torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)
    rotation_DD[even, even] = rotation_DD[odd, odd] = angles.cos()
    rotation_DD[even, odd], rotation_DD[odd, even] = angles.sin(), -angles.sin()
    return rotation_DD


def cost(setting: Setting) -> Finding:
    """Time one layer of each type, forward on one sentence; the best of several runs."""
    d = 64 if setting.quick else 256
    lengths = [d // 4, d // 2, d, 2 * d, 4 * d]
    torch.manual_seed(1)
    attend = MultiHeadAttention(ModelConfig(vocab_size=10, d_model=d, d_ff=4 * d, h=4, dropout=0.0)).eval()
    recurrent, convolution = nn.RNN(d, d, batch_first=True), nn.Conv1d(d, d, 3, padding=1)
    layers: dict[str, Callable[[Tensor], object]] = {
        "self-attention": lambda x: attend(x, attend.keys_values(x)),
        "recurrent": recurrent,
        "convolution, k = 3": lambda x: convolution(x.mT),
    }
    taken: dict[str, list[float]] = {name: [] for name in layers}
    for n in lengths:
        x_1ND = torch.randn(1, n, d)
        for name, layer in layers.items():
            taken[name].append(_seconds(layer, x_1ND))
    rows = [[str(n), *(f"{1000 * taken[name][place]:.2f}" for name in layers)] for place, n in enumerate(lengths)]
    longer = taken["recurrent"][0] / taken["self-attention"][0]
    growth = {name: values[-1] / values[-2] for name, values in taken.items()}
    shorter = [place for place, n in enumerate(lengths) if n < d]
    held = all(taken["self-attention"][place] < taken["recurrent"][place] for place in shorter)
    return Finding(
        ("n", *(f"{name}, ms" for name in layers)),
        rows,
        held,
        f"at d = {d} and n = {lengths[0]}, recurrence takes {longer:.1f} times as long as self-attention; from "
        f"n = {lengths[-2]} to {lengths[-1]}, the time grows by a factor of {growth['self-attention']:.1f} for "
        f"self-attention and {growth['recurrent']:.1f} for recurrence.",
        Curves(
            [Curve(name, lengths, [1_000 * value for value in values]) for name, values in taken.items()],
            "n (tokens per sentence)",
            "milliseconds per layer",
            log_x=True,
            log_y=True,
        ),
    )


@torch.inference_mode()
def _seconds(layer: Callable[[Tensor], object], x_1ND: Tensor) -> float:
    times = []
    for _ in range(7):
        began = time.perf_counter()
        layer(x_1ND)
        times.append(time.perf_counter() - began)
    return min(times[2:])
