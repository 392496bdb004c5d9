"""GET /spec, GET /docs, HEAD and region codes, as LibreTranslate clients use them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.types import Scope, Send

from heedful.decoding.translator import Translator
from heedful.serving.app import create_app
from heedful.serving.head_requests import HeadMiddleware
from heedful.serving.limits import Limits
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from local_test_client import local_client


def test_description_is_valid_swagger_2(client: TestClient) -> None:
    """Every listed path and method exists, and every listed form is accepted."""
    spec = client.get("/spec").json()
    assert spec["swagger"] == "2.0"
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            assert client.request(method, path).status_code in (200, 400, 403), path
            for one in operation.get("parameters", []):
                assert one["in"] == "formData"
                assert one["type"] in ("string", "integer", "file")
    required = [one["name"] for one in spec["paths"]["/translate"]["post"]["parameters"] if one["required"]]
    assert required == ["q", "source", "target"]
    answered = client.post("/translate", data={"q": "a", "source": "en", "target": "de"}).json()
    assert set(answered) <= set(spec["paths"]["/translate"]["post"]["responses"]["200"]["schema"]["properties"])
    settings = spec["paths"]["/frontend/settings"]["get"]["responses"]["200"]["schema"]["properties"]
    assert set(settings) == set(client.get("/frontend/settings").json())


@pytest.mark.parametrize("path", ["/docs", "/docs/"])
def test_the_docs_have_everything_here_and_nothing_inline(client: TestClient, path: str) -> None:
    page = client.get(path, follow_redirects=False)
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    links = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert len(links) == 4
    for link in links:
        if not link.startswith("data:"):
            answer = client.get(f"http://127.0.0.1:5000{path.rpartition('/')[0]}/{link}")
            assert answer.status_code == 200, link
            assert answer.headers["x-content-type-options"] == "nosniff"
    assert re.findall(r"<script(?![^>]* src=)|<style| style=| on\w+=", page.text) == []
    assert client.get("/docs/LICENSE").status_code == 404
    assert client.get("/docs/..%2F..%2Fapp.py").status_code == 404


def test_head_is_get_without_body(client: TestClient) -> None:
    for path in ("/", "/languages", "/health", "/frontend/settings", "/spec", "/docs", "/docs/swagger-ui.css"):
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b""), path
        assert head.headers["content-length"] == get.headers["content-length"] == str(len(get.content))
        assert head.headers["content-type"] == get.headers["content-type"]
    assert client.head("/translate").status_code == 405
    assert client.head("/nothing").status_code == 404


def test_head_sends_no_body_to_the_server() -> None:
    """Test clients and uvicorn drop it as well; other servers need not."""

    async def app(scope: Scope, receive: Any, send: Send) -> None:
        assert scope["method"] == "GET"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
        await send({"type": "http.response.body", "body": b"abc"})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(HeadMiddleware(app)({"type": "http", "method": "HEAD"}, None, send))  # type: ignore[arg-type]
    assert sent[0]["headers"] == [(b"content-length", b"3")]
    assert sent[1]["body"] == b""


def test_settings_name_the_files(client: TestClient) -> None:
    settings = client.get("/frontend/settings").json()
    assert settings["filesTranslation"] is True
    assert settings["supportedFilesFormat"] == [".txt", ".html", ".srt"]


def test_regions_and_case_are_resolved(served: ServedModel, translator: Translator) -> None:
    text = replace(translator.model.text, source_language="en", target_language="pt-BR")
    other = ServedModel(Translator(replace(translator.model, text=text)))
    other.engine = served.engine
    with local_client(create_app(TranslationService([served, other], Limits()))) as client:
        for source, target in (("en-US", "de-DE"), ("EN", "De"), ("en", "pt-BR"), ("en", "pb"), ("en_GB", "PT-br")):
            answer = client.post("/translate", json={"q": "a", "source": source, "target": target})
            assert (answer.status_code, answer.json()) == (200, {"translatedText": "A"}), (source, target)
        answer = client.post("/translate", json={"q": "a", "source": "en", "target": "pt"})
        assert answer.json() == {"error": "pt is not supported"}
        answer = client.get("/attend", params={"q": "", "source": "en-US", "target": "xx-YY"})
        assert answer.json() == {"error": "Invalid request: missing q parameter"}


def test_an_unchanged_file_is_not_sent_again(client: TestClient) -> None:
    first = client.get("/docs/swagger-ui-bundle.js")
    again = client.get("/docs/swagger-ui-bundle.js", headers={"If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert again.headers["x-content-type-options"] == "nosniff"
    assert client.get("/docs/swagger-ui-bundle.js", headers={"If-None-Match": '"other"'}).status_code == 200
