"""Request bodies: parsing, rejection and parsing time."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from heedful.serving import request_body
from heedful.serving.limits import Limits
from heedful.serving.multipart import parse_multipart
from heedful.serving.request_body import read_fields
from heedful.serving.requests import RequestError, translate_request

LIMITS = Limits(texts=2, characters=10, alternatives=3)
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"
PART = b'--x\r\nContent-Disposition: form-data; name="q"\r\n%s\r\n%s\r\n'


def test_json_and_forms_give_the_same_fields() -> None:
    fields = {"q": "é & ü", "source": "en", "target": "de", "alternatives": 2}
    form = b"q=%C3%A9+%26+%C3%BC&source=en&target=de&alternatives=2&api_key="
    for body, kind in (
        (str(fields).replace("'", '"').encode(), "application/json; charset=utf-8"),
        (str(fields).replace("'", '"').encode(), ""),
        (form, FORM),
    ):
        asked = translate_request(read_fields(body, kind), LIMITS)
        assert (asked.texts, asked.is_list, asked.alternatives, asked.format) == (["é & ü"], False, 2, "text")


def test_a_form_may_repeat_q() -> None:
    wanted = translate_request(read_fields(b"q=a&q=b&source=en&target=de", FORM), LIMITS)
    assert (wanted.texts, wanted.is_list) == (["a", "b"], True)


BAD_BODIES = [
    (b"{", "application/json", 400, "Not valid JSON"),
    (b"\xff", "application/json", 400, r"not UTF-8 \(byte 1\)"),
    (b"[1]", "application/json", 400, "Invalid JSON format"),
    (b"[" * 100_000, "application/json", 400, "nested too deeply"),
    (b'{"q":' * 100_000, "application/json", 400, "nested too deeply"),
    (b'{"q": ' + b"9" * 5_000 + b"}", "application/json", 400, "Not valid JSON: a number has too many digits."),
    (b"q=%ff", FORM, 400, "Not a valid URL-encoded form"),
    (b"\xff", FORM, 400, r"not UTF-8 \(byte 1\)"),
    (b"q=a", "multipart/form-data", 400, "Not a valid multipart form"),
    (b"q=a", "multipart/form-data; boundary=x", 400, "Not a valid multipart form"),
    (b"--x\r\n\r\na\r\n--x--", "multipart/form-data; boundary=x", 400, "has no name"),
    (b"&a=" * 2_000, FORM, 400, "Not a valid URL-encoded form"),
    (PART % (b"", b"a"), MULTIPART, 400, "does not end with its boundary"),
    (PART % (b"Content-Type: multipart/mixed; boundary=y\r\n", b"--y--") + b"--x--", MULTIPART, 400, "nested"),
    (PART % (b"Content-Transfer-Encoding: base64\r\n", b"YQ==") + b"--x--", MULTIPART, 400, "unencoded"),
    (PART % (b"", b"a") * 1_001 + b"--x--", MULTIPART, 400, "more than 1,000 parts"),
    (PART % (b"X: " + b"y" * 10_000 + b"\r\n", b"a") + b"--x--", MULTIPART, 400, "Not a valid multipart form"),
    (b"q=a", "text/plain", 415, "text/plain"),
]


@pytest.mark.parametrize(("body", "kind", "status", "said"), BAD_BODIES, ids=[str(b[:12]) for b, *_ in BAD_BODIES])
def test_unreadable_bodies(body: bytes, kind: str, status: int, said: str) -> None:
    with pytest.raises(RequestError, match=said) as caught:
        read_fields(body, kind)
    assert caught.value.status == status


def test_multipart_forms_and_queries() -> None:
    part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    body = "".join([part.format("q", "é\r\nb"), part.format("source", "EN"), "--x--\r\n"]).encode()
    fields = read_fields(body, 'multipart/form-data; boundary="x"', "target=de&source=fr")
    asked = translate_request(fields, LIMITS)
    assert (asked.texts, asked.source, asked.target) == (["é\nb"], "en", "de")


def test_form_files_keep_their_bytes() -> None:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n'
    (part,) = parse_multipart(head + b"\xff\r\n--\r\n--x--\r\n", MULTIPART)
    assert (part.name, part.filename, bytes(part.content)) == ("file", "a.txt", b"\xff\r\n--")


@pytest.mark.parametrize("depth", [300, 960])
def test_nested_forms_are_rejected(depth: int) -> None:
    """A parser that follows nesting needs seconds for the first, and fails at the second."""
    body = b"".join(
        b'--b%d\r\nContent-Disposition: form-data; name="q"\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n'
        % (level, level + 1)
        for level in range(depth)
    )
    start = time.monotonic()
    with pytest.raises(RequestError, match="nested multipart form"):
        read_fields(body + b"x" * (1_000_000 - len(body)), "multipart/form-data; boundary=b0")
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    ("body", "kind", "is_parsed"),
    [
        (b"{%s}" % b",".join(b'"%d":1' % number for number in range(50_000)), "application/json", False),
        (b'{"q":[%s]}' % b",".join([b"1"] * 400_000), "application/json", False),
        (b"q=" + b"%41" * 300_000, FORM, False),
        # At the limit of 10,000 characters, with the most escapes and separators that this can take.
        (b"source=en&target=de&q=" + b"%F0%9F%98%80" * 10_000, FORM, True),
        (b'{"source":"en","target":"de","q":"%s"}' % (b":" * 5_000 + b"," * 5_000), "application/json", True),
        (b'{"source":"en","target":"de","q":"%s"}' % (b"," * 10_000), "application/json", True),
    ],
    ids=["keys", "items", "escapes", "emoji", "colons", "commas"],
)
def test_bodies_that_exceed_the_limits_are_not_parsed(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, body: bytes, kind: str, is_parsed: bool
) -> None:
    parsed = []
    monkeypatch.setattr(request_body, "read_fields", lambda *given: parsed.append(given) or read_fields(*given))
    answer = client.post("/translate", content=body, headers={"Content-Type": kind})
    assert (bool(parsed), "more than 11,000" in answer.text) == (is_parsed, not is_parsed)


def test_large_bodies_are_parsed_off_the_event_loop(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def spy(*given: object) -> object:
        threads.append(threading.current_thread().name)
        return read_fields(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(request_body, "read_fields", spy)
    for padding in (0, 100_000):
        fields = {"q": "a", "source": "en", "target": "de", "api_key": "x" * padding}
        assert client.post("/translate", json=fields).status_code == 200
    assert threads[0] != threads[1]


_PARTS = st.lists(
    st.sampled_from([b"--x", b"\r\n", b"\n", b"--", b'Content-Disposition: form-data; name="q"', b"a", b"\xff"])
)


@given(_PARTS.map(b"".join))
def test_arbitrary_parts_are_parsed_or_rejected(body: bytes) -> None:
    with suppress(RequestError):
        read_fields(body, "multipart/form-data; boundary=x")


@given(st.binary(max_size=200), st.sampled_from([FORM, "application/json", "multipart/form-data; boundary=x"]))
def test_arbitrary_bytes_are_parsed_or_rejected(body: bytes, kind: str) -> None:
    with suppress(RequestError):
        read_fields(body, kind)
