"""Security headers, and HTML responses with a strict Content-Security-Policy."""

from __future__ import annotations

import base64
import hashlib
import re

from starlette.responses import HTMLResponse

# For every response that is not a page: it may load nothing and run nothing.
NO_CONTENT_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": NO_CONTENT_POLICY,
}
_INLINE = {
    name: re.compile(rf"<{name}(?:\s[^>]*)?>(.*?)</{name}\s*>", re.DOTALL | re.I) for name in ("script", "style")
}


def html_page(content: str, policy: str | None = None) -> HTMLResponse:
    """Return an HTML response that runs only its own inline blocks and files of this server.

    The default policy is that of `content`. If `content` includes user text, pass `content_policy(template)` instead,
    so that a script injected into the text does not run.
    """
    return HTMLResponse(content, headers={"Content-Security-Policy": policy or content_policy(content)})


def content_policy(content: str) -> str:
    """Return a page's Content-Security-Policy, with SHA-256 of its inline scripts and styles."""
    scripts, styles = (" ".join(["'self'", *_hashes(content, name)]) for name in ("script", "style"))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _hashes(content: str, name: str) -> list[str]:
    digests = [hashlib.sha256(block.encode()).digest() for block in _INLINE[name].findall(content) if block.strip()]
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in dict.fromkeys(digests)]
