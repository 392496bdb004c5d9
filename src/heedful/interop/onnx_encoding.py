"""Encode a small ONNX model: a protocol buffer of varint and length-delimited fields."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

FLOAT, INT64 = 1, 7  # ONNX tensor types
Weights = npt.NDArray[np.float32]


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _integer_field(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def bytes_field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _string_fields(field: int, names: Iterable[str]) -> bytes:
    return b"".join(bytes_field(field, name.encode("utf-8")) for name in names)


def node(operation: str, inputs: list[str], output: str, attributes: dict[str, int | list[int]]) -> bytes:
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
        content += bytes_field(5, _string_fields(1, [name]) + payload + type_field)
    return content


def tensor(name: str, tensor: Weights) -> bytes:
    dimensions = b"".join(_integer_field(1, size) for size in tensor.shape)
    return (
        dimensions
        + _integer_field(2, FLOAT)
        + _string_fields(8, [name])
        + bytes_field(9, tensor.astype("<f4").tobytes())
    )


def value(name: str, element_type: int, dimensions: list[str | int]) -> bytes:
    shape = b"".join(
        bytes_field(1, _integer_field(1, size) if isinstance(size, int) else _string_fields(2, [size]))
        for size in dimensions
    )
    return _string_fields(1, [name]) + bytes_field(
        2, bytes_field(1, _integer_field(1, element_type) + bytes_field(2, shape))
    )


def model(graph: bytes, metadata: dict[str, str]) -> bytes:
    properties = b"".join(
        bytes_field(14, _string_fields(1, [key]) + _string_fields(2, [value])) for key, value in metadata.items()
    )
    return (
        _integer_field(1, 8)
        + _string_fields(2, ["heedful"])
        + bytes_field(7, graph)
        + bytes_field(8, _integer_field(2, 13))
        + properties
    )
