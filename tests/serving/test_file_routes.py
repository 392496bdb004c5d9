"""POST /translate_file and GET /download_file."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from fake_engine import UppercaseEngine
from heedful.serving.app import create_app
from heedful.serving.batcher import OverloadError
from heedful.serving.file_routes import FileParser, read_file_body
from heedful.serving.file_store import FileStore
from heedful.serving.limits import Limits
from heedful.serving.requests import RequestError
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from local_test_client import local_client


def sent(client: TestClient, name: str, content: str | bytes, **fields: str) -> Any:
    form = {"source": "en", "target": "de", "api_key": "", **fields}
    return client.post("/translate_file", data=form, files={"file": (name, content)})


def translated(client: TestClient, name: str, content: str | bytes, **fields: str) -> str:
    answer = sent(client, name, content, **fields)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"translatedFileUrl"}
    download = client.get(answer.json()["translatedFileUrl"])
    assert download.status_code == 200
    return download.content.decode("utf-8")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_plain_text(client: TestClient) -> None:
    assert translated(client, "a.txt", "é one. Two.\r\n\r\n three\n") == "É ONE. TWO.\r\n\r\n THREE\n"
    assert translated(client, "A.TXT", b"\xef\xbb\xbfone") == "ONE"
    assert translated(client, "a.txt", "") == ""


def test_html_file(client: TestClient) -> None:
    page = "<!DOCTYPE html>\n<title>a</title><script>b</script><p>c &amp; d</p>\n"
    assert translated(client, "a.html", page) == (
        "<!DOCTYPE html>\n<title>A</title><script>b</script><p>C &amp; D</p>\n"
    )


def test_subtitles(client: TestClient) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nrock & roll\n"
    assert translated(client, "a.srt", text) == text.replace("rock & roll", "ROCK & ROLL")


def test_file_language_is_detected_from_its_beginning(served: ServedModel) -> None:
    english, german = "the dog and the cat\n" * 2, "der Hund und die Katze\n" * 2
    with local_client(create_app(TranslationService([served], Limits(characters=40, tokens=200)))) as client:
        assert translated(client, "a.txt", english + german, source="auto") == (english + german).upper()
        assert translated(client, "a.txt", german, source="auto") == german  # it is German already


def test_a_long_file_is_translated_in_several_requests(served: ServedModel) -> None:
    calls: list[int] = []

    class Counting(UppercaseEngine):
        def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
            calls.append(len(sources))
            return super().search(sources, n_best)

    served.engine = Counting(served.translator.model.tokenizer)
    text = "one two three. Four.\n" * 2_000
    limits = Limits(characters=500, tokens=2_500, texts=10)
    with local_client(create_app(TranslationService([served], limits))) as client:
        assert translated(client, "a.txt", text) == text.upper()
        assert len(calls) >= 200
        long_text = "x" * 501
        answer = sent(client, "a.txt", long_text)
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "Invalid request: request (501) exceeds text limit (500)"},
    )


def test_started_file_waits_while_the_server_is_busy(served: ServedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    service = TranslationService([served], Limits(characters=10, tokens=50))
    real, calls = service.translate, 0

    async def busy_now_and_then(asked: Any) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        if calls % 2 == 0:
            raise OverloadError(0)
        return await real(asked)

    monkeypatch.setattr(service, "translate", busy_now_and_then)
    with local_client(create_app(service)) as client:
        assert translated(client, "a.txt", "one two\nthree me\nfour\n") == "ONE TWO\nTHREE ME\nFOUR\n"
        assert calls > 3
        calls = 1  # the next call is refused: a new file is told to come again
        assert sent(client, "a.txt", "one").status_code == 503


@pytest.mark.parametrize(
    ("name", "content", "fields", "said"),
    [
        ("a.pdf", b"x", {}, "Invalid request: file format not supported"),
        ("a", b"x", {}, "Invalid request: file format not supported"),
        ("a.txt", b"x", {"source": ""}, "Invalid request: missing source parameter"),
        ("a.txt", b"x", {"target": ""}, "Invalid request: missing target parameter"),
        ("a.txt", b"x", {"source": "xx"}, "xx is not supported"),
        ("a.txt", b"", {"target": "XX"}, "xx is not supported"),
        ("a.txt", b"x", {"source": "de", "target": "en"}, "English (en) is not available as a target language"),
        ("a.txt", b"abc\xff", {}, "Invalid request: the file is not UTF-8 (byte 4). Save it as UTF-8"),
    ],
)
def test_rejected_requests(client: TestClient, name: str, content: bytes, fields: dict[str, str], said: str) -> None:
    answer = sent(client, name, content, **fields)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(said)


@pytest.mark.parametrize("charset", ["undefined", "punycode", "idna", "utf-16", "no-such-charset"])
def test_the_charset_of_a_form_is_not_used(client: TestClient, charset: str) -> None:
    """Python has codecs that raise for any text."""
    head = b'--x\r\nContent-Disposition: form-data; name="'
    body = head + b'source"\r\n\r\nen\r\n' + head + b'target"\r\n\r\nde\r\n'
    body += head + 'file"; filename="é.txt"\r\n\r\none\r\n--x--\r\n'.encode()
    kind = {"Content-Type": f"multipart/form-data; boundary=x; charset={charset}"}
    answer = client.post("/translate_file", content=body, headers=kind)
    assert answer.status_code == 200
    assert client.get(answer.json()["translatedFileUrl"]).text == "ONE"


def test_a_form_without_a_file(client: TestClient) -> None:
    languages = {"source": "en", "target": "de"}
    for answer in (
        client.post("/translate_file", data=languages),
        client.post("/translate_file", files={"file": (None, "x"), **{k: (None, v) for k, v in languages.items()}}),
        client.post("/translate_file", json=languages),
    ):
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid request: missing file parameter"})
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    assert client.post("/translate_file", content=b"not a form", headers=kind).status_code == 400
    two = [("file", ("a.txt", b"a")), ("file", ("b.txt", b"b"))]
    assert client.post("/translate_file", data=languages, files=two).status_code == 400


def test_a_large_file_is_refused_before_it_is_read(served: ServedModel) -> None:
    with local_client(create_app(TranslationService([served], Limits(file=1_000)))) as client:
        assert translated(client, "a.txt", "x\n" * 500) == "X\n" * 500
        assert sent(client, "a.txt", "x" * 1_001).status_code == 413
        answer = sent(client, "a.txt", "x" * 100_000)
        assert answer.status_code == 413
        assert "1,000 bytes" in answer.json()["error"]


def test_reading_stops_at_the_limit() -> None:
    """A body without a declared length, as large as it likes."""
    received = 0

    async def receive() -> Any:
        nonlocal received
        head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' if not received else b""
        received += 1
        return {"type": "http.request", "body": head + b"x" * 1_000, "more_body": received < 10_000}

    headers = [(b"content-type", b"multipart/form-data; boundary=x")]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
    with pytest.raises(RequestError) as caught:
        asyncio.run(read_file_body(request, Limits(file=100_000)))
    assert caught.value.status == 413
    assert 100 < received < 130


def test_a_file_over_the_limit_is_rejected_before_work(
    client: TestClient, served: ServedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.engine, "search", lambda *_: pytest.fail("translated"))
    assert sent(client, "a.txt", "a\n" * 1_000 + "x" * 10_001).status_code == 400


def test_work_for_clients_that_left_is_dropped() -> None:
    done: list[str] = []
    began, may_end = threading.Event(), threading.Event()

    def first() -> None:
        began.set()
        may_end.wait(10)
        done.append("first")

    async def run() -> None:
        with FileParser() as parser:
            running = asyncio.create_task(parser.run(first))
            await asyncio.to_thread(began.wait, 10)
            left = asyncio.create_task(parser.run(done.append, "of a client that left"))
            after = asyncio.create_task(parser.run(done.append, "last"))
            await asyncio.sleep(0)
            left.cancel()
            await asyncio.gather(left, return_exceptions=True)
            may_end.set()
            await asyncio.gather(running, after)

    asyncio.run(run())
    assert done == ["first", "last"]


def test_a_download_cannot_run_in_the_browser(client: TestClient) -> None:
    url = sent(client, 'w"\n/../ä ö.html', "<script>alert(1)</script>").json()["translatedFileUrl"]
    answer = client.get(url)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    disposition = answer.headers["content-disposition"]
    assert disposition.startswith("attachment; filename*=UTF-8''")
    assert disposition.isascii()
    assert "/" not in disposition
    assert disposition.endswith("_de.html")


def test_download_names_resist_guessing_and_path_traversal(client: TestClient, temporary: Path) -> None:
    (temporary / "secret.txt").write_text("secret")
    urls = {sent(client, "a.txt", "x").json()["translatedFileUrl"] for _ in range(3)}
    assert len(urls) == 3
    assert all(len(url.rpartition("/")[2]) >= 32 for url in urls)
    for name in ("..%2Fsecret.txt", "%2e%2e/secret.txt", "x.txt", "%00", ""):
        answer = client.get(f"/download_file/{name}")
        assert answer.status_code == 404
        assert set(answer.json()) == {"error"}


def test_files_are_private_and_deleted_at_the_end(served: ServedModel, temporary: Path) -> None:
    with local_client(create_app(TranslationService([served], Limits()))) as client:
        sent(client, "a.txt", "x")
        [directory] = temporary.glob("heedful-files-*")
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert len(os.listdir(directory)) == 1
    assert list(temporary.glob("heedful-files-*")) == []


def test_files_expire(served: ServedModel, temporary: Path) -> None:
    with local_client(create_app(TranslationService([served], Limits(file_seconds=0.5)))) as client:
        url = sent(client, "a.txt", "x").json()["translatedFileUrl"]
        assert client.get(url).status_code == 200
        [directory] = temporary.glob("heedful-files-*")
        ends = time.monotonic() + 20
        while client.get(url).status_code == 200 and time.monotonic() < ends:
            time.sleep(0.05)
        assert client.get(url).status_code == 404
        assert os.listdir(directory) == []


def test_default_expiry_is_ten_minutes() -> None:
    assert Limits().file_seconds == 600


def test_the_number_of_files_and_their_bytes_are_limited(served: ServedModel) -> None:
    with local_client(create_app(TranslationService([served], Limits(files=2)))) as client:
        assert [sent(client, "a.txt", "x").status_code for _ in range(3)] == [200, 200, 503]
        assert 590 < int(sent(client, "a.txt", "x").headers["retry-after"]) <= 600
    with local_client(create_app(TranslationService([served], Limits(files_bytes=10)))) as client:
        assert [sent(client, "a.txt", "x" * size).status_code for size in (6, 5, 4, 1)] == [200, 503, 200, 503]


def test_rejected_file_frees_its_slot(served: ServedModel) -> None:
    with local_client(create_app(TranslationService([served], Limits(files=1)))) as client:
        assert [sent(client, "a.txt", b"\xff").status_code for _ in range(3)] == [400] * 3
        assert sent(client, "a.txt", "x").status_code == 200


def test_translated_size_counts_towards_the_limit() -> None:
    async def grown() -> None:
        with FileStore(Limits(files_bytes=10)) as store, store.place(5):
            with pytest.raises(OverloadError):
                await store.add(b"x" * 11, "a.txt")
            assert await store.get(await store.add(b"x" * 10, "a.txt")) == (b"x" * 10, "a.txt")

    asyncio.run(grown())


def test_only_multipart_is_parsed(served: ServedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A urlencoded body of a million separators would keep the event loop busy."""
    monkeypatch.setattr(Request, "form", lambda *_, **__: pytest.fail("parsed"))
    with local_client(create_app(TranslationService([served], Limits()))) as client:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = client.post("/translate_file", content=b"&" * 999_999, headers=headers)
    assert (answer.status_code, answer.json()) == (400, {"error": "Invalid request: missing file parameter"})
