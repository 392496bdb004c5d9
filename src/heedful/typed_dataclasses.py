"""Build dataclasses from TOML or JSON, rejecting unknown keys and wrongly typed values.

Recipes, MODEL/config.json and checkpoints/…/state.json are read with this module. Types are strict
(2.5 is not a number of layers, `true` is not 1); the only conversion is int → float.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import ConfigError, InputError, nearest
from heedful.version import __version__

T = TypeVar("T")
_EXPECTED = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "tuple[str, ...]": "a string or a list of strings",
    "dict": "an object",
    "float | None": "a number or null",
}


def field_types(kind: type[Any]) -> dict[str, str]:
    """Return field name → annotation, as written in the source."""
    return {one.name: str(one.type) for one in fields(kind)}


def build_dataclass(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return `kind(**values)`.

    Raise ConfigError for an unknown key or a value of another type.
    """
    types = field_types(kind)
    for key in values:
        if key not in types:
            raise ConfigError(f'unknown key "{key}".{nearest(key, types)}')
    return kind(**{key: check_type(value, types[key], key) for key, value in values.items()})


def check_type(value: Any, annotation: str, name: str) -> Any:
    """Return the value with the annotated type.

    Raise ConfigError with the key and the value otherwise.
    """
    expected = annotation.partition("[")[0] if annotation.startswith("dict[") else annotation
    if expected == "tuple[str, ...]":
        items = [value] if isinstance(value, str) else value
        if isinstance(items, list | tuple) and all(isinstance(item, str) for item in items):
            return tuple(items)
    elif expected == "float | None" and value is None:
        return None
    elif expected in ("float", "float | None") and type(value) in (int, float):
        return float(value)
    elif type(value).__name__ == expected:
        return value
    shown = json.dumps(value, ensure_ascii=False, default=str)
    raise ConfigError(f"{name} must be {_EXPECTED[expected]}, not {shown}.")


def require_format_version(found: object, supported: int, path: Path, error: type[InputError]) -> None:
    """Raise `error` unless a file has the supported format_version."""
    if found != supported or isinstance(found, bool):
        shown = json.dumps(found, default=str)[:40]
        raise error(
            f"{path} has format_version {shown}; heedful {__version__} reads format_version {supported}. "
            "Use the heedful version that wrote it, or train again."
        )
