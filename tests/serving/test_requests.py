"""What a request may hold, and what is said of one that may not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.serving.limits import Limits
from heedful.serving.requests import RequestError, detect_request, read_fields, translate_request

LIMITS = Limits(texts=2, characters=10, alternatives=3)
FORM = "application/x-www-form-urlencoded"
GOOD = {"q": "text", "source": "en", "target": "de"}


def test_json_and_forms_hold_the_same() -> None:
    fields = {"q": "é & ü", "source": "en", "target": "de", "alternatives": 2}
    form = b"q=%C3%A9+%26+%C3%BC&source=en&target=de&alternatives=2&api_key="
    for body, kind in (
        (str(fields).replace("'", '"').encode(), "application/json; charset=utf-8"),
        (str(fields).replace("'", '"').encode(), ""),
        (form, FORM),
    ):
        asked = translate_request(read_fields(body, kind), LIMITS)
        assert (asked.texts, asked.is_list, asked.alternatives, asked.format) == (["é & ü"], False, 2, "text")


def test_a_list_is_a_list_and_a_form_may_repeat_q() -> None:
    assert translate_request({**GOOD, "q": ["a"]}, LIMITS).is_list
    asked = translate_request(read_fields(b"q=a&q=b&source=en&target=de", FORM), LIMITS)
    assert (asked.texts, asked.is_list) == (["a", "b"], True)


BAD_BODIES = [
    (b"{", "application/json", 400, "no JSON"),
    (b"\xff", "application/json", 400, "not UTF-8"),
    (b"[1]", "application/json", 400, "Invalid JSON format"),
    (b"[" * 100_000, "application/json", 400, "no JSON"),
    (b'{"q": ' + b"9" * 5_000 + b"}", "application/json", 400, "no JSON"),
    (b"q=%ff", FORM, 400, "no urlencoded form"),
    (b"\xff", FORM, 400, "not UTF-8"),
    (b"q=a", "multipart/form-data", 400, "no multipart form"),
    (b"q=a", "multipart/form-data; boundary=x", 400, "no multipart form"),
    (b"--x\r\n\r\na\r\n--x--", "multipart/form-data; boundary=x", 400, "has no name"),
    (b"&a=" * 2_000, FORM, 400, "no urlencoded form"),
    (b"q=a", "text/plain", 415, "text/plain"),
]


@pytest.mark.parametrize(("body", "kind", "status", "said"), BAD_BODIES, ids=[str(b[:12]) for b, *_ in BAD_BODIES])
def test_bodies_that_cannot_be_read(body: bytes, kind: str, status: int, said: str) -> None:
    with pytest.raises(RequestError, match=said) as caught:
        read_fields(body, kind)
    assert caught.value.status == status


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"q": None}, "Invalid request: missing q parameter"),
    ({"q": ""}, "missing q parameter"),
    ({"q": []}, "missing q parameter"),
    ({"q": 1}, "a text or a list"),
    ({"q": ["a", None]}, "a text or a list"),
    ({"q": ["a"] * 3}, r"Invalid request: request \(3\) exceeds text limit \(2\)"),
    ({"q": "x" * 11}, r"Invalid request: request \(11\) exceeds text limit \(10\)"),
    ({"q": ["x" * 5, "x" * 6]}, r"request \(11\) exceeds"),
    ({"q": "\ud800"}, "lone surrogate"),
    ({"source": None}, "Invalid request: missing source parameter"),
    ({"source": ""}, "missing source parameter"),
    ({"target": ""}, "missing target parameter"),
    ({"target": ["de"]}, "target must be a text"),
    ({"format": "pdf"}, "^pdf format is not supported$"),
    ({"alternatives": 4}, "Invalid request: alternatives parameter must be <= 3"),
    ({"alternatives": float("nan")}, "Invalid request: alternatives parameter is not a number"),
    ({"alternatives": float("inf")}, "is not a number"),
    ({"alternatives": [1]}, "is not a number"),
    ({"alternatives": "two"}, "is not a number"),
]


@pytest.mark.parametrize(("fields", "said"), BAD_FIELDS, ids=[str(fields)[:40] for fields, _ in BAD_FIELDS])
def test_fields_that_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=said) as caught:
        translate_request({**GOOD, **fields}, LIMITS)
    assert caught.value.status == 400


def test_what_is_exactly_at_the_limit_is_taken() -> None:
    asked = translate_request({**GOOD, "q": ["x" * 5, "x" * 5], "alternatives": 3}, LIMITS)
    assert asked.texts == ["xxxxx", "xxxxx"]


@pytest.mark.parametrize(("given", "number"), [(-1, 0), ("2", 2), (2.0, 2), (1.5, 1), (None, 0), ("", 0)])
def test_alternatives_are_read_as_libretranslate_reads_them(given: Any, number: int) -> None:
    assert translate_request({**GOOD, "alternatives": given}, LIMITS).alternatives == number


def test_a_request_without_a_body_may_have_its_fields_in_the_query() -> None:
    """curl -X POST 'http://127.0.0.1:5000/translate?q=…' sends no Content-Type."""
    asked = translate_request(read_fields(b"", "", "q=a&source=en&target=de"), LIMITS)
    assert (asked.texts, asked.source, asked.target) == (["a"], "en", "de")
    with pytest.raises(RequestError, match="no JSON"):
        read_fields(b"", "application/json", "q=a")


def test_detection_takes_a_list_as_one_text() -> None:
    assert detect_request({"q": "a"}, LIMITS) == "a"
    assert detect_request({"q": ["a", "b"]}, LIMITS) == "a\nb"


def test_multipart_forms_and_queries() -> None:
    part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    body = "".join([part.format("q", "é\r\nb"), part.format("source", "EN"), "--x--\r\n"]).encode()
    fields = read_fields(body, 'multipart/form-data; boundary="x"', "target=de&source=fr")
    asked = translate_request(fields, LIMITS)
    assert (asked.texts, asked.source, asked.target) == (["é\nb"], "en", "de")


_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_JSON = st.recursive(_VALUES, lambda inner: st.lists(inner), max_leaves=5)


@given(st.dictionaries(st.sampled_from(["q", "source", "target", "format", "alternatives", "api_key"]), _JSON))
def test_whatever_comes_is_read_or_refused(fields: dict[str, Any]) -> None:
    with suppress(RequestError):
        translate_request(fields, Limits())


_PARTS = st.lists(
    st.sampled_from([b"--x", b"\r\n", b"\n", b"--", b'Content-Disposition: form-data; name="q"', b"a", b"\xff"])
)


@given(_PARTS.map(b"".join))
def test_whatever_parts_come_are_read_or_refused(body: bytes) -> None:
    with suppress(RequestError):
        read_fields(body, "multipart/form-data; boundary=x")


@given(st.binary(max_size=200), st.sampled_from([FORM, "application/json", "multipart/form-data; boundary=x"]))
def test_whatever_bytes_come_are_read_or_refused(body: bytes, kind: str) -> None:
    with suppress(RequestError):
        read_fields(body, kind)
