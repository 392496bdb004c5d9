"""Security headers, and pages under a Content-Security-Policy without 'unsafe-inline'."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from fastapi.testclient import TestClient

from heedful.decoding.translator import Translator
from heedful.serving import server
from heedful.serving.app import create_app
from heedful.serving.limits import Limits
from heedful.serving.security_headers import SECURITY_HEADERS, content_policy, html_page
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from local_test_client import local_client


def directives(policy: str) -> dict[str, list[str]]:
    return {words[0]: words[1:] for words in (part.split() for part in policy.split(";"))}


def hash_of(block: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}'"


@pytest.mark.parametrize("path", ["/", "/health", "/languages", "/nothing", "/openapi.json", "/metrics"])
def test_every_response_has_the_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    policy = directives(headers["content-security-policy"])
    assert policy["default-src"] == ["'none'"]
    assert policy["frame-ancestors"] == ["'none'"]
    assert "unsafe" not in headers["content-security-policy"]


def test_server_errors_have_the_headers(served: ServedModel) -> None:
    served.engine = None  # type: ignore[assignment]
    with local_client(create_app(TranslationService([served], Limits())), raise_server_exceptions=False) as client:
        answer = client.post("/translate", json={"q": "a", "source": "en", "target": "de"})
    assert answer.status_code == 500
    assert answer.headers["x-content-type-options"] == "nosniff"
    refused = client.get("/health", headers={"Host": "evil.example"})
    assert (refused.status_code, refused.headers["x-frame-options"]) == (421, "DENY")


def test_the_policy_names_every_inline_block() -> None:
    page = '<style>a{}</style><script src="/x.js"></script><script type="module">\nf()\n</script><SCRIPT>g()</SCRIPT>'
    policy = directives(content_policy(page))
    assert policy["style-src"] == ["'self'", hash_of("a{}")]
    assert policy["script-src"] == ["'self'", hash_of("\nf()\n"), hash_of("g()")]


def test_web_app_has_no_unlisted_inline_code(client: TestClient) -> None:
    """No hash policy allows event handlers, style attributes or javascript: links."""
    answer = client.get("/")
    assert not re.search(r"<[^>]+\s(on\w+|style)\s*=", answer.text.partition("<script")[0])
    policy = directives(answer.headers["content-security-policy"])
    for name in ("script", "style"):
        for block in re.findall(rf"<{name}>(.*?)</{name}>", answer.text, re.DOTALL):
            assert hash_of(block) in policy[f"{name}-src"]


def test_script_in_user_text_is_blocked(translator: Translator) -> None:
    """The attention page has its template's policy: even unescaped text runs nothing."""
    with local_client(create_app(TranslationService([ServedModel(translator)], Limits()))) as client:
        fields = {"q": "ba bo", "source": "en", "target": "de"}
        policies = {
            client.post("/attend", data={**fields, "q": text}).headers["content-security-policy"]
            for text in ("ba bo", "ba <script>x</script>")
        }
    assert len(policies) == 1
    assert hash_of("x") not in policies.pop()


def test_a_page_may_have_another_policy() -> None:
    assert (
        html_page("<script>x</script>", "default-src 'none'").headers["content-security-policy"] == "default-src 'none'"
    )


def test_responses_to_broken_requests_have_the_headers_too() -> None:
    head = server._response(400, "Not a valid HTTP request.").partition(b"\r\n\r\n")[0].decode()
    assert {f"{name}: {value}" for name, value in SECURITY_HEADERS.items()} <= set(head.split("\r\n"))
