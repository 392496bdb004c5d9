"""What a request may hold, and what is said of one that may not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.serving.limits import Limits
from heedful.serving.requests import RequestError, detect_request, translate_request

LIMITS = Limits(texts=2, characters=10, alternatives=3)
GOOD = {"q": "text", "source": "en", "target": "de"}


def test_a_list_is_a_list() -> None:
    assert translate_request({**GOOD, "q": ["a"]}, LIMITS).is_list


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"q": None}, "q is missing"),
    ({"q": 1}, "a text or a list"),
    ({"q": ["a", None]}, "a text or a list"),
    ({"q": ["a"] * 3}, "3 texts, more than the 2"),
    ({"q": "x" * 11}, "11 characters, more than the 10"),
    ({"q": ["x" * 5, "x" * 6]}, "11 characters"),
    ({"q": "\ud800"}, "lone surrogate"),
    ({"source": None}, "source is missing"),
    ({"source": ""}, "source is missing"),
    ({"target": ["de"]}, "target must be a text"),
    ({"format": "pdf"}, '"text" or "html"'),
    ({"alternatives": 4}, "from 0 to 3"),
    ({"alternatives": -1}, "from 0 to 3"),
    ({"alternatives": float("nan")}, "from 0 to 3"),
    ({"alternatives": True}, "from 0 to 3"),
    ({"alternatives": 1.5}, "from 0 to 3"),
    ({"alternatives": "two"}, "from 0 to 3"),
]


@pytest.mark.parametrize(("fields", "said"), BAD_FIELDS, ids=[str(fields)[:40] for fields, _ in BAD_FIELDS])
def test_fields_that_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=said) as caught:
        translate_request({**GOOD, **fields}, LIMITS)
    assert caught.value.status == 400


def test_what_is_exactly_at_the_limit_is_taken() -> None:
    asked = translate_request({**GOOD, "q": ["x" * 5, "x" * 5], "alternatives": 3}, LIMITS)
    assert asked.texts == ["xxxxx", "xxxxx"]


def test_detection_takes_a_list_as_one_text() -> None:
    assert detect_request({"q": "a"}, LIMITS) == "a"
    assert detect_request({"q": ["a", "b"]}, LIMITS) == "a\nb"


_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_JSON = st.recursive(_VALUES, lambda inner: st.lists(inner), max_leaves=5)


@given(st.dictionaries(st.sampled_from(["q", "source", "target", "format", "alternatives", "api_key"]), _JSON))
def test_whatever_comes_is_read_or_refused(fields: dict[str, Any]) -> None:
    with suppress(RequestError):
        translate_request(fields, Limits())
