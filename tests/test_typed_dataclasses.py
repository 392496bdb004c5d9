"""Type checking of recipes, config.json and state.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import ConfigError, ModelError
from heedful.typed_dataclasses import build_dataclass, check_type, require_format_version


@dataclass(frozen=True)
class Example:
    flag: bool = False
    count: int = 0
    rate: float = 0.0
    name: str = ""
    files: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    best: float | None = None


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("flag", True, True),
        ("count", 3, 3),
        ("rate", 2, 2.0),
        ("rate", 0.5, 0.5),
        ("name", "x", "x"),
        ("files", "one", ("one",)),
        ("files", ["one", "two"], ("one", "two")),
        ("facts", {"a": 1}, {"a": 1}),
        ("best", None, None),
        ("best", 1, 1.0),
    ],
)
def test_value_of_the_field_type_is_accepted(key: str, value: object, expected: object) -> None:
    found = getattr(build_dataclass(Example, {key: value}), key)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("flag", 1, "flag must be true or false, not 1."),
        ("count", True, "count must be an integer, not true."),
        ("count", 2.5, "count must be an integer, not 2.5."),
        ("count", 2.0, "count must be an integer, not 2.0."),
        ("rate", True, "rate must be a number, not true."),
        ("rate", "1", 'rate must be a number, not "1".'),
        ("name", None, "name must be a string, not null."),
        ("files", [1], r"files must be a string or a list of strings, not \[1\]."),
        ("facts", [], r"facts must be an object, not \[\]."),
        ("best", "low", 'best must be a number or null, not "low".'),
    ],
)
def test_other_values_are_rejected_with_the_key(key: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        build_dataclass(Example, {key: value})


def test_an_unknown_key_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r'unknown key "cuont"\. Did you mean "count"'):
        build_dataclass(Example, {"cuont": 1})


def test_the_name_in_the_message_is_the_callers() -> None:
    with pytest.raises(ConfigError, match=r"training\.steps must be an integer"):
        check_type("many", "int", "training.steps")


@pytest.mark.parametrize("found", [0, 2, None, True, "1", [1]])
def test_unknown_format_version_says_what_to_do(found: object) -> None:
    with pytest.raises(ModelError, match=r"reads format_version 1\. Use the heedful version that wrote it"):
        require_format_version(found, 1, Path("config.json"), ModelError)
    require_format_version(1, 1, Path("config.json"), ModelError)
