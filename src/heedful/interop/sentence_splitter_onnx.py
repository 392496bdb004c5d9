"""A rule-based sentence splitter for Argos packages, encoded as an ONNX graph.

Argos Translate splits text with an ONNX model that predicts for every character whether a sentence ends there, and
downloads one if the package has none. This one makes the download unnecessary: each character becomes a one-hot class,
and one convolution over six characters computes the prediction.

The rules are those of `text/sentence_splitting.py`, as far as a window of six characters can express them. It has no
list of abbreviations: a full stop after one or two characters that are not lowercase never ends a sentence here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from heedful.text.sentence_splitting import CLOSES, ENDS, ENDS_AT_ONCE

_CLASSES = ("end", "end_at_once", "space", "close", "small", "capital", "other")  # digits count as "capital"
# The five output labels of a character; minisbd treats the last as a sentence end too.
_NO_BOUNDARY, _WORD_END, _SENTENCE_END, _MULTIWORD_END, _SENTENCE_END_AFTER_CLOSE = range(5)
_CONTEXT_BEFORE, _CONTEXT_AFTER = 3, 2  # characters in the window, excluding the current one
_FLOAT, _INT64 = 1, 7  # ONNX tensor types

Weights = npt.NDArray[np.float32]


def build_sentence_splitter() -> bytes:
    """Return the ONNX file; it is the same for every language."""
    classes = _character_classes()
    table = np.zeros((len(classes) + 2, len(_CLASSES)), np.float32)  # rows 0 and 1: padding, other characters
    for index, character_class in enumerate(["other", *classes.values()], start=1):
        table[index, _CLASSES.index(character_class)] = 1
    weights, bias = _convolution_weights()
    width = _CONTEXT_BEFORE + 1 + _CONTEXT_AFTER
    nodes = [
        _node("Gather", ["table", "units"], "classes", {"axis": 0}),
        _node("Transpose", ["classes"], "turned", {"perm": [0, 2, 1]}),
        _node(
            "Conv",
            ["turned", "weights", "bias"],
            "said",
            {"kernel_shape": [width], "pads": [_CONTEXT_BEFORE, _CONTEXT_AFTER]},
        ),
        _node("Transpose", ["said"], "output", {"perm": [0, 2, 1]}),
    ]
    tensors = {"table": table, "weights": weights, "bias": bias}
    graph = [
        *(_bytes_field(1, node) for node in nodes),
        _bytes_field(2, b"sentences"),
        *(_bytes_field(5, _tensor(name, tensor)) for name, tensor in tensors.items()),
        _bytes_field(11, _value("units", _INT64, ["B", "T"])),
        _bytes_field(11, _value("features", _FLOAT, ["B", "T", 1])),
        _bytes_field(12, _value("output", _FLOAT, ["B", "T", 5])),
    ]
    return _model(b"".join(graph), _metadata(list(classes)))


def _character_classes() -> dict[str, str]:
    """Map characters to classes, including all letters of the basic plane."""
    classes = {" ": "space"}
    classes |= dict.fromkeys(ENDS, "end") | dict.fromkeys(ENDS_AT_ONCE, "end_at_once") | dict.fromkeys(CLOSES, "close")
    for character in map(chr, range(0xD800)):
        if character.islower():
            classes[character] = "small"
        elif character.isupper() or character.isdigit():
            classes[character] = "capital"
    return classes


def _convolution_weights() -> tuple[Weights, Weights]:
    """Return the convolution's weights and biases for the two labels that end a sentence."""
    weights = np.zeros((5, len(_CLASSES), _CONTEXT_BEFORE + 1 + _CONTEXT_AFTER), np.float32)
    bias = np.zeros(5, np.float32)
    bias[[_WORD_END, _MULTIWORD_END]] = -100

    def set_weight(label: int, offset: int, character_class: str, weight: float) -> None:
        weights[label, _CLASSES.index(character_class), _CONTEXT_BEFORE + offset] = weight

    for label, end in ((_SENTENCE_END, 0), (_SENTENCE_END_AFTER_CLOSE, -1)):
        set_weight(label, end, "end", 1)
        set_weight(label, end, "end_at_once", 3)
        set_weight(label, 1, "space", 1)
        set_weight(label, 2, "small", -1)
        set_weight(label, 2, "space", -1)
    # "end" and "space" add up to 2. An abbreviation or ordinal before the full stop subtracts at least 0.8: an
    # isolated capital or digit (J. or 3.), and two characters (Mr. or 13.).
    bias[_SENTENCE_END] = -1.25 - 0.4 - 0.3
    for character_class in set(_CLASSES) - {"space"}:  # the start of the text then counts as a space
        set_weight(_SENTENCE_END, -2, character_class, 0.4 if character_class != "capital" else 0.4 - 0.3)
        set_weight(_SENTENCE_END, -3, character_class, 0.3)
    set_weight(_SENTENCE_END, -1, "capital", -0.4)
    set_weight(_SENTENCE_END, -1, "small", -0.3)
    set_weight(_SENTENCE_END, 1, "close", -10)  # the sentence ends after the closing quote:
    set_weight(_SENTENCE_END_AFTER_CLOSE, 0, "close", 4)  # requires 4 + 1 + 1 or 4 + 3
    bias[_SENTENCE_END_AFTER_CLOSE] = -5.5
    return weights, bias


def _metadata(characters: list[str]) -> dict[str, str]:
    """Return the metadata from which minisbd reads the character vocabulary."""
    names = ["<PAD>", "<UNK>", *characters]
    vocabulary = {"_id2unit": names, "_unit2id": {name: number for number, name in enumerate(names)}}
    config = {"max_seqlen": 1_000, "batch_size": 32, "feat_funcs": ["end_of_para"]}
    return {
        "lang_code": "any",
        "config": json.dumps(config),
        "vocab": json.dumps(vocabulary, ensure_ascii=False),
    }


# ONNX files are protocol buffers; this file needs only varint and length-delimited fields.


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _integer_field(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes_field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _string_fields(field: int, names: Iterable[str]) -> bytes:
    return b"".join(_bytes_field(field, name.encode("utf-8")) for name in names)


def _node(operation: str, inputs: list[str], output: str, attributes: dict[str, int | list[int]]) -> bytes:
    content = (
        _string_fields(1, inputs)
        + _string_fields(2, [output])
        + _string_fields(3, [output])
        + _string_fields(4, [operation])
    )
    for name, value in attributes.items():
        type_field = _integer_field(20, 2) if isinstance(value, int) else _integer_field(20, 7)
        payload = (
            _integer_field(3, value) if isinstance(value, int) else b"".join(_integer_field(8, one) for one in value)
        )
        content += _bytes_field(5, _string_fields(1, [name]) + payload + type_field)
    return content


def _tensor(name: str, tensor: Weights) -> bytes:
    dimensions = b"".join(_integer_field(1, size) for size in tensor.shape)
    return (
        dimensions
        + _integer_field(2, _FLOAT)
        + _string_fields(8, [name])
        + _bytes_field(9, tensor.astype("<f4").tobytes())
    )


def _value(name: str, element_type: int, dimensions: list[str | int]) -> bytes:
    shape = b"".join(
        _bytes_field(1, _integer_field(1, size) if isinstance(size, int) else _string_fields(2, [size]))
        for size in dimensions
    )
    return _string_fields(1, [name]) + _bytes_field(
        2, _bytes_field(1, _integer_field(1, element_type) + _bytes_field(2, shape))
    )


def _model(graph: bytes, metadata: dict[str, str]) -> bytes:
    properties = b"".join(
        _bytes_field(14, _string_fields(1, [key]) + _string_fields(2, [value])) for key, value in metadata.items()
    )
    return (
        _integer_field(1, 8)
        + _string_fields(2, ["heedful"])
        + _bytes_field(7, graph)
        + _bytes_field(8, _integer_field(2, 13))
        + properties
    )
