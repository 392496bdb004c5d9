"""The configuration of docs/how-to/reverse-proxy.md in a real nginx, with TLS."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import synthetic_tasks as tasks

pytestmark = pytest.mark.formats
DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "reverse-proxy.md"
NAME = "mt.example.org"
FIELDS = {"q": "a b", "source": "source", "target": "target"}
KEY = {"Authorization": "Bearer secret"}
# nginx outside of its own directories, in the foreground.
AROUND = """
daemon off; pid nginx.pid; error_log stderr; worker_processes 1; {user}
events {{}}
http {{ access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
uwsgi_temp_path uwsgi; scgi_temp_path scgi;
{server}
}}
"""


class Site(NamedTuple):
    port: int
    log: Path  # of heedful

    def request(self, path: str, fields: object = None, source: str = "127.0.0.2", **headers: str) -> tuple[int, str]:
        """Over TLS, from an address of this machine that is not nginx's."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=30, context=context, source_address=(source, 0)
        )
        body = None if fields is None else json.dumps(fields).encode()
        given = {"Host": f"{NAME}:{self.port}", "Content-Type": "application/json", **headers}
        connection.request("GET" if body is None else "POST", path, body, given)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def configuration(directory: Path, port: int, behind: int) -> str:
    """The block of the document, with our ports and a certificate of our own."""
    match = re.search(r"```nginx\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert match
    server = match[1]
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/certs/mt.example.org.pem", str(directory / "certificate.pem")),
        ("/etc/ssl/private/mt.example.org.key", str(directory / "key.pem")),
        ("http://127.0.0.1:5000", f"http://127.0.0.1:{behind}"),
    ):
        assert server.count(old) == 1, old
        server = server.replace(old, new)
    return AROUND.format(user="user root;" if os.geteuid() == 0 else "", server=server)


def certificate(directory: Path) -> None:
    files = ["-keyout", str(directory / "key.pem"), "-out", str(directory / "certificate.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={NAME}", *files]
    subprocess.run(command, check=True, capture_output=True)


def until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert process.poll() is None
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"nothing listens on port {port}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if nginx is None or shutil.which("openssl") is None:
        pytest.skip("nginx or openssl is not installed: make formats")
    directory = tmp_path_factory.mktemp("nginx")
    certificate(directory)
    (directory / "keys.txt").write_text("secret\n")
    port, behind = free_port(), free_port()
    (directory / "nginx.conf").write_text(configuration(directory, port, behind))
    rules = ["--allowed-host", NAME, "--trusted-proxy", "127.0.0.1", "--rate-limit", "20"]
    model = tasks.tiny_run(tmp_path_factory) / "run"
    program = [sys.executable, "-m", "heedful", "serve", str(model), "--port", str(behind), *rules]
    with (directory / "log").open("wb") as log:
        ours = subprocess.Popen([*program, "--api-keys", str(directory / "keys.txt")], stderr=log)
        proxy = subprocess.Popen([nginx, "-p", str(directory), "-c", "nginx.conf"])
        try:
            until_listening(behind, ours)
            until_listening(port, proxy)
            yield Site(port, directory / "log")
        finally:
            for process in (proxy, ours):
                process.terminate()
                process.wait(30)


def test_the_page_and_the_api(site: Site) -> None:
    status, page = site.request("/")
    assert status == 200
    assert "<textarea" in page
    origin = {"Origin": f"https://{NAME}:{site.port}"}
    status, answer = site.request("/translate", FIELDS, **KEY, **origin)
    assert (status, list(json.loads(answer))) == (200, ["translatedText"])


def test_who_may_ask_through_the_proxy(site: Site) -> None:
    assert site.request("/translate", FIELDS)[0] == 403
    assert site.request("/translate", FIELDS, **KEY, Origin="https://evil.example")[0] == 403
    assert site.request("/health", Host="evil.example")[0] == 421
    assert site.request("/metrics", **KEY)[0] == 200
    # nginx adds the proxy's own address here, so the address before it is taken for the client.
    assert site.request("/metrics", source="127.0.0.1", **{"X-Forwarded-For": "192.0.2.1"})[0] == 403


def test_clients_are_told_apart_and_cannot_make_up_their_address(site: Site) -> None:
    for source in ("127.0.0.3", "127.0.0.4"):
        found = [
            site.request("/languages", source=source, **{"X-Forwarded-For": f"198.51.100.{number}"})[0]
            for number in range(22)
        ]
        assert found == [200] * 20 + [429] * 2
    assert " 127.0.0.3 GET /languages 429 " in site.log.read_text(encoding="utf-8")
    assert "198.51.100" not in site.log.read_text(encoding="utf-8")


def test_too_large_a_body_is_answered_by_heedful(site: Site) -> None:
    status, answer = site.request("/translate", {**FIELDS, "api_key": "x" * 1_000_000})
    assert (status, list(json.loads(answer))) == (413, ["error"])
