"""A sentence splitter for Argos packages: rules as a network, in the one format that Argos takes them in.

Argos Translate cuts text into sentences by a network (ONNX) that says for every character whether a sentence ends
there, and downloads one where the package has none. Ours needs no download: each character becomes its class, and one
convolution over six characters weighs the classes around it.

The rules are those of `text/sentences.py`, as far as six characters show.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from heedful.text.sentences import CLOSES, ENDS, ENDS_AT_ONCE

_CLASSES = ("end", "end_at_once", "space", "close", "small", "capital", "other")  # "capital": digits too
_NO_BOUNDARY, _WORD_END, _SENTENCE_END, _MULTIWORD_END, _SENTENCE_END_AFTER_CLOSE = range(
    5
)  # what a character can be said to be
_CONTEXT_BEFORE, _CONTEXT_AFTER = 3, 2  # characters that are looked at
_FLOAT, _INT64 = 1, 7  # of ONNX

Weights = npt.NDArray[np.float32]


def build_sentence_splitter() -> bytes:
    """The network as a file; the same for every language."""
    classes = _character_classes()
    table = np.zeros((len(classes) + 2, len(_CLASSES)), np.float32)  # the first two: padding, and any other character
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
    """Every character that has a class; letters of the basic plane, whatever their script."""
    classes = {" ": "space"}
    classes |= dict.fromkeys(ENDS, "end") | dict.fromkeys(ENDS_AT_ONCE, "end_at_once") | dict.fromkeys(CLOSES, "close")
    for character in map(chr, range(0xD800)):
        if character.islower():
            classes[character] = "small"
        elif character.isupper() or character.isdigit():
            classes[character] = "capital"
    return classes


def _convolution_weights() -> tuple[Weights, Weights]:
    """What each class counts at each place, for the two ways in which a sentence ends, and how much there must be."""
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
    # At the end itself: 2 of "end" and "space", less 0.8 or more where what stands before a full stop in mid-sentence
    # does: J. or 3., which is a capital after no letter, and Mr. or 13.
    bias[_SENTENCE_END] = -1.25 - 0.4 - 0.3
    for character_class in set(_CLASSES) - {"space"}:  # so that the beginning of the text counts as a space does
        set_weight(_SENTENCE_END, -2, character_class, 0.4 if character_class != "capital" else 0.4 - 0.3)
        set_weight(_SENTENCE_END, -3, character_class, 0.3)
    set_weight(_SENTENCE_END, -1, "capital", -0.4)
    set_weight(_SENTENCE_END, -1, "small", -0.3)
    set_weight(_SENTENCE_END, 1, "close", -10)  # then the sentence ends one further:
    set_weight(_SENTENCE_END_AFTER_CLOSE, 0, "close", 4)  # of 4, 1 and 1, or 4 and 3, none may be missing
    bias[_SENTENCE_END_AFTER_CLOSE] = -5.5
    return weights, bias


def _metadata(characters: list[str]) -> dict[str, str]:
    """What minisbd reads: how text becomes numbers."""
    names = ["<PAD>", "<UNK>", *characters]
    vocabulary = {"_id2unit": names, "_unit2id": {name: number for number, name in enumerate(names)}}
    config = {"max_seqlen": 1_000, "batch_size": 32, "feat_funcs": ["end_of_para"]}
    return {
        "lang_code": "any",
        "config": json.dumps(config),
        "vocab": json.dumps(vocabulary, ensure_ascii=False),
    }


# ONNX is a protocol buffer: fields of a number and a kind, of which two are enough here.


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
