"""The steps of one position in one layer and head, with the paper's section for each."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor

import heedful
from heedful.inspection.switched_heads import Head
from heedful.inspection.trace import AttentionSteps, LayerSteps, Trace
from heedful.model import attention as attention_code
from heedful.model import layers as layers_code
from heedful.model.embeddings import Embedding, sinusoids

MOST_LOGITS = 12  # next tokens whose logits and probabilities are listed


class Step(NamedTuple):
    """A result of the forward pass for one position."""

    name: str
    formula: str
    section: str
    shape: str  # of the result for the whole sentence
    code: tuple[str, int, str]  # file, line and text of the code that computes it
    values: list[Any]  # numbers; rows of numbers for a matrix; None for -∞
    labels: list[str]  # names of the values, or of the rows of a matrix


def step_by_step(
    steps: Trace, place: Head, position: int, tokens: Mapping[str, Sequence[str]], names: Any
) -> list[Step]:
    """Return the steps of a position: of the source for kind "encoder", else of the target.

    `tokens` names the source and the target; `names` maps token ids to texts.
    """
    layer = (steps.encoder if place.kind == "encoder" else steps.decoder)[place.layer]
    read = ["<s>", *tokens["target"][:-1]]
    columns = read if place.kind == "decoder" else tokens["source"]
    found = [
        *_embedding(steps, place, position),
        *_attention(layer, place, position, list(columns)),
        *_sublayers(layer, place, position),
    ]
    if place.kind != "encoder" and place.layer == len(steps.decoder) - 1:
        found += _output(steps, position, names)
    return found


def attended_by(layer: LayerSteps, kind: str) -> AttentionSteps:
    """Return the attention of this kind in a layer."""
    if kind != "cross":
        return layer.self_attention
    assert layer.cross_attention is not None, "decoder layers have cross-attention"
    return layer.cross_attention


def _embedding(steps: Trace, place: Head, position: int) -> Iterator[Step]:
    side = steps.source if place.kind == "encoder" else steps.target
    shape = _shape(side.embedding_TD)
    forward = Embedding.forward
    yield _step("Embedding", "E[token]", "3.4", shape, forward, "F.embedding(", side.embedding_TD[position])
    yield _step("Scaled", "x · √d_model", "3.4", shape, forward, "* self.scale", side.scaled_TD[position])
    yield _step("Position", "PE(pos)", "3.5", shape, sinusoids, "angles.sin()", side.position_TD[position])
    yield _step(
        "Input of layer 1",
        "x · √d_model + PE(pos)",
        "3.5",
        shape,
        forward,
        "+ self.positions(",
        side.input_TD[position],
    )


def _attention(layer: LayerSteps, place: Head, position: int, columns: list[str]) -> Iterator[Step]:
    one, head, section = attended_by(layer, place.kind), place.head, "3.2.1"
    code, heads_code = attention_code.plain_attention, attention_code.MultiHeadAttention
    H, T, K = one.q_HTK.shape
    S, V = one.v_HSK.shape[1:]
    x_TD = layer.after_self_attention_TD if place.kind == "cross" else layer.input_TD
    yield _step("Input", "x", "3.1", _shape(x_TD), heads_code.forward, "self.query(", x_TD[position])
    q, k = one.q_HTK[head, position], one.k_HSK[head]
    yield _step("Query", "q = x W^Q", "3.2.2", f"{H} × {T} × {K}", heads_code.forward, "self.query(", q)
    formula, shape = "k = x W^K, one row per token", f"{H} × {S} × {K}"
    yield _step("Keys", formula, "3.2.2", shape, heads_code.keys_values, "self.key(", k, columns)
    shape, products, scores = f"{H} × {T} × {S}", one.products_HTS[head, position], one.scores_HTS[head, position]
    yield _step("Products", "q · k for every token", section, shape, code, "q_BHTK @ k_BHSK", products, columns)
    root = f"÷ √d_k = {math.sqrt(K):.4g}" + (", -∞ for later positions" if place.kind == "decoder" else "")
    yield _step("Scores", f"q · k {root}", section, shape, code, "math.sqrt", scores, columns)
    weights = one.weights_HTS[head, position]
    yield _step(
        "Weights", "softmax(scores); each row sums to 1", section, shape, code, "softmax(scores_BHTS)", weights, columns
    )
    summed = one.heads_HTK[head, position]
    yield _step("Weighted sum", "Σ weight · v", section, f"{H} × {T} × {V}", code, "@ v_BHSK", summed)
    yield from _joined(one, position, heads_code.forward)


def _joined(one: AttentionSteps, position: int, code: Callable[..., Any]) -> Iterator[Step]:
    joined, output, formula = one.concatenated_TE, one.output_TD, f"Concat(head 1 … head {len(one.q_HTK)})"
    yield _step("Concatenated", formula, "3.2.2", _shape(joined), code, "flatten(2)", joined[position])
    yield _step("Projected", "Concat(…) W^O", "3.2.2", _shape(output), code, "self.output(", output[position])


def _sublayers(layer: LayerSteps, place: Head, position: int) -> Iterator[Step]:
    after = layer.after_cross_attention_TD if place.kind == "cross" else layer.after_self_attention_TD
    assert after is not None
    shape, norm = _shape(after), layers_code.AddAndNorm.forward
    formula = "LayerNorm(x + Sublayer(x))"
    yield _step("Residual and norm", formula, "3.1", shape, norm, "self.norm(", after[position])
    inner, code = layer.feed_forward.inner_TF, layers_code.FeedForward.forward
    name = layer.feed_forward.activation
    activated = "max(0, x W₁ + b₁)" if name == "relu" else f"{name}(x W₁ + b₁)"
    yield _step("Feed-forward, inner", activated, "3.3", _shape(inner), code, "ACTIVATIONS[", inner[position])
    outer = layer.feed_forward.output_TD
    yield _step("Feed-forward, outer", "… W₂ + b₂", "3.3", shape, code, "self.outer(", outer[position])
    yield _step("Output of the layer", formula, "3.1", shape, norm, "self.norm(", layer.output_TD[position])


def _output(steps: Trace, position: int, names: Callable[[Sequence[int]], list[str]]) -> Iterator[Step]:
    logits_V = steps.logits_TV[position].float()
    best = logits_V.topk(min(MOST_LOGITS, len(logits_V))).indices
    labels, shape = names(best.tolist()), _shape(steps.logits_TV)
    code = Embedding.logits
    yield _step("Logits", "x Eᵀ, the largest", "3.4", shape, code, "F.linear", logits_V[best], labels)
    p_V = F.softmax(logits_V, dim=-1)
    yield _step("Probabilities", "softmax(logits)", "3.4", shape, code, "F.linear", p_V[best], labels)


def _step(
    name: str,
    formula: str,
    section: str,
    shape: str,
    function: Callable[..., Any],
    text: str,
    values: Tensor,
    labels: Sequence[str] = (),
) -> Step:
    return Step(name, formula, section, shape, code_line(function, text), _rounded(values), list(labels))


def _shape(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape))


def _rounded(values: Tensor) -> list[Any]:
    if values.dim() > 1:
        return [_rounded(row) for row in values]
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values.tolist()]


@cache
def code_line(function: Callable[..., Any], text: str) -> tuple[str, int, str]:
    """Return file, number and text of a function's first line that contains this text."""
    lines, first = inspect.getsourcelines(function)
    number, line = next((number, line) for number, line in enumerate(lines) if text in line)
    file = Path(inspect.getsourcefile(function) or "").relative_to(Path(heedful.__file__).parent)
    return f"heedful/{file.as_posix()}", first + number, line.strip()
