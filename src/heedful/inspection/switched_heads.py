"""Switch attention heads off."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import torch

from heedful.config import ModelConfig
from heedful.errors import InputError
from heedful.model.transformer import Transformer

KINDS = ("encoder", "decoder", "cross")
_MODULES = {
    "encoder": "encoder.{}.self_attention.output.weight",
    "decoder": "decoder.{}.self_attention.output.weight",
    "cross": "decoder.{}.cross_attention.output.weight",
}


class Head(NamedTuple):
    """An attention head. Layers and heads count from 0."""

    kind: str  # one of KINDS
    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.kind}.{self.layer + 1}.{self.head + 1}"


def parse_heads(text: str, config: ModelConfig) -> frozenset[Head]:
    """Return the heads of a list such as `cross.2.1,encoder.1.4`.

    Layers and heads in the text count from 1.
    """
    return frozenset(_parse_head(name.strip(), config) for name in text.split(",") if name.strip())


def _parse_head(name: str, config: ModelConfig) -> Head:
    kind, *numbers = name.split(".")
    valid = kind in KINDS and len(numbers) == 2 and all(n.isascii() and n.isdecimal() and len(n) < 5 for n in numbers)
    if valid:
        layer, head = (int(number) - 1 for number in numbers)
        if 0 <= layer < _layers(kind, config) and 0 <= head < config.h:
            return Head(kind, layer, head)
    raise InputError(
        f'"{name[:40]}" is not a head of this model. Write KIND.LAYER.HEAD, with KIND one of {", ".join(KINDS)}, '
        f"LAYER from 1 to {_layers(kind, config)} and HEAD from 1 to {config.h}, for example cross.1.1."
    )


def _layers(kind: str, config: ModelConfig) -> int:
    return config.N if kind == "encoder" else config.decoder_layers


def layers_of(kind: str, config: ModelConfig) -> int:
    """Return the number of layers with this kind of attention."""
    return config.N if kind == "encoder" else config.decoder_layers


def without_heads(model: Transformer, off: Collection[Head]) -> Transformer:
    """Return a model in which these heads contribute nothing.

    All other weights are shared with `model`.

    MultiHead = Concat(head₁, …, head_h) W^O (section 3.2.2), so the rows of W^O that belong to a head are set to zero.
    """
    if not off:
        return model
    tensors = {name: parameter.detach() for name, parameter in model.state_dict().items()}
    d_v = model.config.d_v
    for kind, layer, head in off:
        name = _MODULES[kind].format(layer)
        tensors[name] = tensors[name].clone()
        tensors[name][:, head * d_v : (head + 1) * d_v] = 0.0  # nn.Linear stores the transpose of W^O
    with torch.device("meta"):
        changed = Transformer(model.config)
    changed.load_state_dict(tensors, assign=True)
    return changed.eval()
