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
_NOTHING, _WORD_ENDS, _SENTENCE_ENDS, _NEVER, _SENTENCE_ENDS_TOO = range(5)  # what a character can be said to be
_BEFORE, _AFTER = 3, 2  # characters that are looked at
_FLOAT, _INT64 = 1, 7  # of ONNX

Weights = npt.NDArray[np.float32]


def splitter() -> bytes:
    """The network as a file; the same for every language."""
    units = _units()
    table = np.zeros((len(units) + 2, len(_CLASSES)), np.float32)  # the first two: padding, and any other character
    for number, kind in enumerate(["other", *units.values()], start=1):
        table[number, _CLASSES.index(kind)] = 1
    weights, bias = _rules()
    width = _BEFORE + 1 + _AFTER
    nodes = [
        _node("Gather", ["table", "units"], "classes", {"axis": 0}),
        _node("Transpose", ["classes"], "turned", {"perm": [0, 2, 1]}),
        _node("Conv", ["turned", "weights", "bias"], "said", {"kernel_shape": [width], "pads": [_BEFORE, _AFTER]}),
        _node("Transpose", ["said"], "output", {"perm": [0, 2, 1]}),
    ]
    tensors = {"table": table, "weights": weights, "bias": bias}
    graph = [
        *(_message(1, node) for node in nodes),
        _message(2, b"sentences"),
        *(_message(5, _tensor(name, tensor)) for name, tensor in tensors.items()),
        _message(11, _value("units", _INT64, ["B", "T"])),
        _message(11, _value("features", _FLOAT, ["B", "T", 1])),
        _message(12, _value("output", _FLOAT, ["B", "T", 5])),
    ]
    return _model(b"".join(graph), _metadata(list(units)))


def _units() -> dict[str, str]:
    """Every character that has a class; letters of the basic plane, whatever their script."""
    kinds = {" ": "space"}
    kinds |= dict.fromkeys(ENDS, "end") | dict.fromkeys(ENDS_AT_ONCE, "end_at_once") | dict.fromkeys(CLOSES, "close")
    for character in map(chr, range(0xD800)):
        if character.islower():
            kinds[character] = "small"
        elif character.isupper() or character.isdigit():
            kinds[character] = "capital"
    return kinds


def _rules() -> tuple[Weights, Weights]:
    """What each class counts at each place, for the two ways in which a sentence ends, and how much there must be."""
    weights = np.zeros((5, len(_CLASSES), _BEFORE + 1 + _AFTER), np.float32)
    bias = np.zeros(5, np.float32)
    bias[[_WORD_ENDS, _NEVER]] = -100

    def count(way: int, place: int, kind: str, weight: float) -> None:
        weights[way, _CLASSES.index(kind), _BEFORE + place] = weight

    for way, end in ((_SENTENCE_ENDS, 0), (_SENTENCE_ENDS_TOO, -1)):
        count(way, end, "end", 1)
        count(way, end, "end_at_once", 3)
        count(way, 1, "space", 1)
        count(way, 2, "small", -1)
        count(way, 2, "space", -1)
    # At the end itself: 2 of "end" and "space", less 0.8 or more where what stands before a full stop in mid-sentence
    # does: J. or 3., which is a capital after no letter, and Mr. or 13.
    bias[_SENTENCE_ENDS] = -1.25 - 0.4 - 0.3
    for kind in set(_CLASSES) - {"space"}:  # so that the beginning of the text counts as a space does
        count(_SENTENCE_ENDS, -2, kind, 0.4 if kind != "capital" else 0.4 - 0.3)
        count(_SENTENCE_ENDS, -3, kind, 0.3)
    count(_SENTENCE_ENDS, -1, "capital", -0.4)
    count(_SENTENCE_ENDS, -1, "small", -0.3)
    count(_SENTENCE_ENDS, 1, "close", -10)  # then the sentence ends one further:
    count(_SENTENCE_ENDS_TOO, 0, "close", 4)  # of 4, 1 and 1, or 4 and 3, none may be missing
    bias[_SENTENCE_ENDS_TOO] = -5.5
    return weights, bias


def _metadata(units: list[str]) -> dict[str, str]:
    """What minisbd reads: how text becomes numbers."""
    names = ["<PAD>", "<UNK>", *units]
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


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _names(field: int, names: Iterable[str]) -> bytes:
    return b"".join(_message(field, name.encode("utf-8")) for name in names)


def _node(operation: str, inputs: list[str], output: str, attributes: dict[str, int | list[int]]) -> bytes:
    content = _names(1, inputs) + _names(2, [output]) + _names(3, [output]) + _names(4, [operation])
    for name, value in attributes.items():
        kind = _number(20, 2) if isinstance(value, int) else _number(20, 7)
        given = _number(3, value) if isinstance(value, int) else b"".join(_number(8, one) for one in value)
        content += _message(5, _names(1, [name]) + given + kind)
    return content


def _tensor(name: str, tensor: Weights) -> bytes:
    sizes = b"".join(_number(1, size) for size in tensor.shape)
    return sizes + _number(2, _FLOAT) + _names(8, [name]) + _message(9, tensor.astype("<f4").tobytes())


def _value(name: str, kind: int, sizes: list[str | int]) -> bytes:
    shape = b"".join(_message(1, _number(1, size) if isinstance(size, int) else _names(2, [size])) for size in sizes)
    return _names(1, [name]) + _message(2, _message(1, _number(1, kind) + _message(2, shape)))


def _model(graph: bytes, metadata: dict[str, str]) -> bytes:
    facts = b"".join(_message(14, _names(1, [key]) + _names(2, [value])) for key, value in metadata.items())
    return _number(1, 8) + _names(2, ["heedful"]) + _message(7, graph) + _message(8, _number(2, 13)) + facts
