"""POST /suggest."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from heedful.errors import MachineError, UsageError
from heedful.serving.app import create_app
from heedful.serving.limits import Limits
from heedful.serving.requests import RequestError
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from heedful.serving.suggestions import Suggestions
from local_test_client import local_client

GOOD = {"q": "one", "s": "eins", "source": "en", "target": "de"}


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def client_of(served: ServedModel, path: Path, **limits: Any) -> TestClient:
    most = Limits(**limits)
    return local_client(create_app(TranslationService([served], most), Suggestions(path, most.suggestions_bytes)))


def test_disabled_without_a_file(client: TestClient) -> None:
    answer = client.post("/suggest", json=GOOD)
    assert (answer.status_code, answer.json()) == (403, {"error": "Suggestions are disabled on this server."})
    assert client.get("/frontend/settings").json()["suggestions"] is False


def test_appended_as_json_lines(served: ServedModel, tmp_path: Path) -> None:
    path = tmp_path / "suggestions.jsonl"
    nasty = {**GOOD, "q": 'a\nb\r\u2028\x85"}\n{"q": 1}', "s": "é 日本 😀"}
    with client_of(served, path) as client:
        assert client.get("/frontend/settings").json()["suggestions"] is True
        for answer in (
            client.post("/suggest", json=GOOD),
            client.post("/suggest", data=GOOD),
            client.post("/suggest", json={**nasty, "other": "ignored"}),
        ):
            assert (answer.status_code, answer.json()) == (200, {"success": True})
        assert lines(path) == [GOOD, GOOD, nasty]  # at once, not when the server ends
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_is_continued_on_a_line_of_its_own(served: ServedModel, tmp_path: Path) -> None:
    path = tmp_path / "suggestions.jsonl"
    path.write_text('{"q": "half a li')
    with client_of(served, path) as client:
        client.post("/suggest", json=GOOD)
    assert path.read_text().split("\n")[0] == '{"q": "half a li'
    assert json.loads(path.read_text().split("\n")[1]) == GOOD


OTHERS = ["A man walks.\nA dog sleeps.\n", '{"step": 1, "kind": "train"}\n', '{"q": "a", "answer": "b"}\n']


@pytest.mark.parametrize("content", [*OTHERS, "A man", "[1]\n", '{"q": "a"}\nA man\n', "5"])
def test_a_file_of_something_else_is_not_appended_to(tmp_path: Path, content: str) -> None:
    path = tmp_path / "train.en"
    path.write_text(content)
    with pytest.raises(UsageError, match="its last line is not a JSON object"):
        Suggestions(path, 10**6)
    assert path.read_text() == content


@pytest.mark.parametrize("content", ["", "\n", f"{json.dumps(GOOD)}\n", json.dumps(GOOD), '{"q": "half\n', '{"q'])
def test_a_file_of_suggestions_is_continued(tmp_path: Path, content: str) -> None:
    path = tmp_path / "suggestions"
    path.write_text(content)
    Suggestions(path, 10**6).close()
    assert path.read_text().rstrip() == content.rstrip()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        *(({name: ""}, f"Invalid request: missing {name} parameter") for name in GOOD),
        *(({name: None}, f"Invalid request: missing {name} parameter") for name in GOOD),
        ({"q": ["a"]}, "Invalid request: q parameter is not a string"),
        ({"s": "x" * 11}, "Invalid request: s (11) exceeds text limit (10)"),
        ({"source": "x" * 36}, "Invalid request: source (36) exceeds text limit (35)"),
    ],
)
def test_rejected_suggestions_are_not_written(
    served: ServedModel, tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    with client_of(served, tmp_path / "file", characters=10) as client:
        answer = client.post("/suggest", json={**GOOD, **fields})
    assert (answer.status_code, answer.json()) == (400, {"error": said})
    assert (tmp_path / "file").read_bytes() == b""


def test_file_size_limit(served: ServedModel, tmp_path: Path) -> None:
    line = len(json.dumps(GOOD)) + 1
    with client_of(served, tmp_path / "file", suggestions_bytes=2 * line) as client:
        assert [client.post("/suggest", json=GOOD).status_code for _ in range(3)] == [200, 200, 507]
    assert (tmp_path / "file").stat().st_size == 2 * line


def test_concurrent_suggestions_are_whole_lines(tmp_path: Path) -> None:
    suggestions = Suggestions(tmp_path / "file", 10_000_000)

    async def many() -> None:
        await asyncio.gather(*(suggestions.add({**GOOD, "q": str(number) * 5_000}) for number in range(50)))

    asyncio.run(many())
    suggestions.close()
    assert {one["q"] for one in lines(tmp_path / "file")} == {str(number) * 5_000 for number in range(50)}


@pytest.mark.parametrize("raises", [True, False])
def test_full_disk_leaves_no_partial_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raises: bool) -> None:
    suggestions = Suggestions(tmp_path / "file", 10_000)
    asyncio.run(suggestions.add(GOOD))
    whole, write = (tmp_path / "file").read_bytes(), os.write

    def full(file: int, data: bytes) -> int:
        written = write(file, data[:5])
        if raises:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RequestError, match="could not be saved") as caught:
        asyncio.run(suggestions.add(GOOD))
    assert caught.value.status == 507
    assert (tmp_path / "file").read_bytes() == whole
    suggestions.close()


def test_unwritable_file_is_reported_at_start(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"Cannot write suggestions to .*: is a directory\. Choose another file\."):
        Suggestions(tmp_path, 100)
