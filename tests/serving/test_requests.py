"""Validation of request fields and its error messages."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.serving.limits import Limits
from heedful.serving.request_body import read_fields
from heedful.serving.requests import RequestError, detect_request, translate_request

LIMITS = Limits(texts=2, characters=10, alternatives=3)
GOOD = {"q": "text", "source": "en", "target": "de"}


def test_list_request_gives_list_response() -> None:
    assert translate_request({**GOOD, "q": ["a"]}, LIMITS).is_list


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"q": None}, "Invalid request: missing q parameter"),
    ({"q": ""}, "missing q parameter"),
    ({"q": []}, "missing q parameter"),
    ({"q": 1}, "a string or a list"),
    ({"q": ["a", None]}, "a string or a list"),
    ({"q": ["a"] * 3}, r"Invalid request: request \(3\) exceeds text limit \(2\)"),
    ({"q": "x" * 11}, r"Invalid request: request \(11\) exceeds text limit \(10\)"),
    ({"q": ["x" * 5, "x" * 6]}, r"request \(11\) exceeds"),
    ({"q": "\ud800"}, "lone surrogate"),
    ({"source": None}, "Invalid request: missing source parameter"),
    ({"source": ""}, "missing source parameter"),
    ({"target": ""}, "missing target parameter"),
    ({"target": ["de"]}, "target must be a string"),
    ({"format": "pdf"}, "^pdf format is not supported$"),
    ({"alternatives": 4}, "Invalid request: alternatives parameter must be <= 3"),
    ({"alternatives": float("nan")}, "Invalid request: alternatives parameter is not a number"),
    ({"alternatives": float("inf")}, "is not a number"),
    ({"alternatives": [1]}, "is not a number"),
    ({"alternatives": "two"}, "is not a number"),
]


@pytest.mark.parametrize(("fields", "said"), BAD_FIELDS, ids=[str(fields)[:40] for fields, _ in BAD_FIELDS])
def test_invalid_fields_are_rejected(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=said) as caught:
        translate_request({**GOOD, **fields}, LIMITS)
    assert caught.value.status == 400


def test_values_at_the_limit_are_accepted() -> None:
    asked = translate_request({**GOOD, "q": ["x" * 5, "x" * 5], "alternatives": 3}, LIMITS)
    assert asked.texts == ["xxxxx", "xxxxx"]


@pytest.mark.parametrize(("given", "number"), [(-1, 0), ("2", 2), (2.0, 2), (1.5, 1), (None, 0), ("", 0)])
def test_alternatives_are_read_as_libretranslate_reads_them(given: Any, number: int) -> None:
    assert translate_request({**GOOD, "alternatives": given}, LIMITS).alternatives == number


def test_a_request_without_a_body_may_have_its_fields_in_the_query() -> None:
    """curl -X POST 'http://127.0.0.1:5000/translate?q=…' sends no Content-Type."""
    asked = translate_request(read_fields(b"", "", "q=a&source=en&target=de"), LIMITS)
    assert (asked.texts, asked.source, asked.target) == (["a"], "en", "de")
    with pytest.raises(RequestError, match="Not valid JSON"):
        read_fields(b"", "application/json", "q=a")


def test_detection_takes_a_list_as_one_text() -> None:
    assert detect_request({"q": "a"}, LIMITS) == "a"
    assert detect_request({"q": ["a", "b"]}, LIMITS) == "a\nb"


_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_JSON = st.recursive(_VALUES, lambda inner: st.lists(inner), max_leaves=5)


@given(st.dictionaries(st.sampled_from(["q", "source", "target", "format", "alternatives", "api_key"]), _JSON))
def test_arbitrary_fields_are_parsed_or_rejected(fields: dict[str, Any]) -> None:
    with suppress(RequestError):
        translate_request(fields, Limits())
