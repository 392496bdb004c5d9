"""Access control: hosts, origins, keys, proxies and rate limits."""

from __future__ import annotations

import io
import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.datastructures import Headers

from heedful.errors import UsageError
from heedful.serving.access_control import (
    Access,
    hosts_from,
    origins_from,
    proxies_from,
    rate_limit_group,
    read_api_keys,
)
from heedful.serving.app import create_app
from heedful.serving.limits import Limits
from heedful.serving.rate_limit import MAX_CLIENTS, RateLimiter
from heedful.serving.request_log import RequestLog
from heedful.serving.requests import RequestError
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from local_test_client import local_client

FIELDS = {"q": "a", "source": "en", "target": "de"}
SITE = "https://app.example"
Connect = Callable[..., TestClient]


@pytest.fixture
def connect(served: ServedModel) -> Connect:
    """`connect(api_keys=…, client=…)`: a client of a server with these rules."""

    def connected(client: tuple[str, int] = ("127.0.0.1", 50_000), log: RequestLog | None = None, **rules: Any) -> Any:
        app = create_app(TranslationService([served], Limits()), access=Access(**rules), request_log=log)
        return local_client(app, client=client)

    return connected


@pytest.mark.parametrize(
    ("host", "allowed", "good", "bad"),
    [
        ("127.0.0.1", (), ["127.0.0.1", "localhost:5000", "LOCALHOST.", "[::1]:5000", "127.1.2.3"], ["192.168.1.5"]),
        ("192.168.1.5", (), ["192.168.1.5:5000", "localhost"], ["192.168.1.6", "evil.example"]),
        ("0.0.0.0", (), ["192.168.1.6", "localhost", "[2001:db8::1]:80"], ["evil.example", "192.168.1.6.evil.example"]),
        ("::", (), ["[::1]", "10.0.0.1"], ["evil.example"]),
        (
            "127.0.0.1",
            ("mt.example.org",),
            ["mt.example.org", "MT.example.org:443"],
            ["example.org", "x.mt.example.org"],
        ),
    ],
)
def test_host_header_is_checked(host: str, allowed: tuple[str, ...], good: list[str], bad: list[str]) -> None:
    access = Access(host=host, allowed_hosts=allowed)
    for name in good:
        access.check_host(Headers({"host": name}))
    for name in bad:
        with pytest.raises(RequestError, match="--allowed-host") as caught:
            access.check_host(Headers({"host": name}))
        assert caught.value.status == 421


@pytest.mark.parametrize("name", ["", "a b", "user@localhost", "localhost:x", "[::1", "localhost/"])
def test_malformed_host_headers(name: str) -> None:
    with pytest.raises(RequestError) as caught:
        Access().check_host(Headers({"host": name}))
    assert caught.value.status == 400


OWN, FOREIGN = "http://127.0.0.1:5000", "http://evil.example"


@pytest.mark.parametrize(
    ("method", "headers", "is_allowed"),
    [
        ("POST", {}, True),  # not a browser
        ("POST", {"origin": OWN}, True),
        ("POST", {"origin": "https://127.0.0.1:5000"}, True),  # behind a proxy that speaks TLS
        ("POST", {"origin": FOREIGN}, False),
        ("POST", {"origin": "http://127.0.0.1:3000"}, False),  # another program of this machine
        ("POST", {"origin": "null"}, False),
        ("POST", {"origin": "http://["}, False),  # not a URL
        ("POST", {"origin": "null", "sec-fetch-site": "same-origin"}, True),  # a form of our page, no-referrer
        ("POST", {"sec-fetch-site": "cross-site"}, False),
        ("PUT", {"origin": FOREIGN}, False),
        ("GET", {"origin": FOREIGN}, True),  # the browser does not show the response to that page
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, True),  # a link
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, False),  # <img src="…/attend?q=…">
        ("GET", {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, True),  # typed
        ("POST", {"origin": SITE, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}, True),
    ],
)
def test_origin_is_checked(connect: Connect, method: str, headers: dict[str, str], is_allowed: bool) -> None:
    with connect(cors_origins=(SITE,)) as client:
        status = client.request(method, "/translate", json=FIELDS, headers=headers).status_code
    assert (status != 403) == is_allowed


def test_cors_is_off_by_default(connect: Connect) -> None:
    with connect() as client:
        answer = client.get("/languages", headers={"Origin": SITE})
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers
    with connect(cors_origins=(SITE,)) as client:
        answer = client.post("/translate", json=FIELDS, headers={"Origin": SITE})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, SITE)
        asked = {
            "Origin": SITE,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
        }
        assert client.options("/translate", headers=asked).status_code == 200
        assert client.options("/translate", headers={**asked, "Origin": FOREIGN}).status_code == 400
        assert client.options("/translate", headers={**asked, "Host": "evil.example"}).status_code == 421
        assert "access-control-allow-origin" not in client.get("/languages", headers={"Origin": FOREIGN}).headers
    with connect(cors_origins=("*",)) as client:
        answer = client.post("/translate", json=FIELDS, headers={"Origin": FOREIGN})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")


def test_api_keys(connect: Connect) -> None:
    with connect(api_keys=(b"one", b"two")) as client:
        for fields, headers in (
            ({"api_key": "one"}, {}),
            ({"api_key": "two"}, {}),
            ({}, {"Authorization": "Bearer two"}),
            ({}, {"Authorization": "bearer one"}),
        ):
            assert client.post("/translate", json={**FIELDS, **fields}, headers=headers).status_code == 200
            assert client.post("/translate", data={**FIELDS, **fields}, headers=headers).status_code == 200
        assert client.post("/translate?api_key=one", json=FIELDS).status_code == 200
        for fields in ({}, {"api_key": ""}, {"api_key": "on"}, {"api_key": "onetwo"}, {"api_key": 1}, {"api_key": "é"}):
            for path in ("/translate", "/detect"):
                answer = client.post(path, json={**FIELDS, **fields})
                assert (answer.status_code, list(answer.json())) == (403, ["error"])
        assert client.post("/translate", json=FIELDS, headers={"Authorization": "Basic one"}).status_code == 403
        assert client.get("/languages").status_code == 200
        assert client.get("/frontend/settings").json()["keyRequired"] is True
    with connect() as client:
        assert client.get("/frontend/settings").json()["keyRequired"] is False


def test_every_route_requires_a_key(connect: Connect) -> None:
    """Routes added later must check the key, too."""
    form = {**{name: (None, value) for name, value in FIELDS.items()}, "s": (None, "b"), "file": ("a.txt", "a")}
    with connect(api_keys=(b"key",)) as client:
        routes = {(path, method) for route in client.app.routes for path, method in methods(route)}  # type: ignore[attr-defined]
        assert {path for path, _ in routes} >= {"/translate", "/detect", "/attend"}
        for path, method in routes:
            answer = client.post(path, files=form) if method == "POST" else client.get(path, params=FIELDS)
            assert answer.status_code == 403, path
            assert "API key" in answer.json()["error"]


def methods(route: Any) -> list[tuple[str, str]]:
    """POST routes, and the GET route that translates."""
    given = getattr(route, "methods", None) or ()
    return [(route.path, method) for method in given if method == "POST" or (method, route.path) == ("GET", "/attend")]


def test_links_and_redirects_have_the_scheme_of_the_client(connect: Connect) -> None:
    headers = {"X-Forwarded-Proto": "https"}
    for proxies, scheme in ((["127.0.0.1"], "https"), (["10.0.0.1"], "http")):
        with connect(trusted_proxies=proxies_from(proxies)) as client:
            answer = client.get("/languages/", headers=headers, follow_redirects=False)
            assert answer.headers["location"].startswith(f"{scheme}://127.0.0.1")


def test_every_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    monkeypatch.setattr("hmac.compare_digest", lambda given, key: compared.append(key) or given == key)
    assert Access(api_keys=(b"a", b"b", b"c")).has_key(Headers(), {"api_key": "a"})
    assert compared == [b"a", b"b", b"c"]


def test_api_keys_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# for Anna\n key-1 \n\nkey-2\n")
    assert read_api_keys(file) == (b"key-1", b"key-2")
    for content, said in (("# nothing\n", "no keys"), ("a b\n", ":1: a key must"), ("é\n", ":1: a key must")):
        file.write_text(content)
        with pytest.raises(UsageError, match=said):
            read_api_keys(file)
    with pytest.raises(UsageError, match="no such file"):
        read_api_keys(tmp_path / "none")


def test_metrics_require_local_client_or_key(connect: Connect) -> None:
    for rules, client, headers, status in (
        ({}, "127.0.0.1", {}, 200),
        ({}, "::1", {}, 200),
        ({}, "10.0.0.9", {}, 403),
        ({}, "127.0.0.1", {"X-Forwarded-For": "10.0.0.9"}, 403),  # a proxy that is not declared
        ({}, "127.0.0.1", {"Via": "1.1 proxy"}, 403),
        ({"trusted_proxies": proxies_from(["127.0.0.1"])}, "127.0.0.1", {"X-Forwarded-For": "10.0.0.9"}, 403),
        ({"trusted_proxies": proxies_from(["10.0.0.1"])}, "10.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, 200),
        ({"trusted_proxies": proxies_from(["127.0.0.1"])}, "127.0.0.1", {"X-Forwarded-For": "unknown"}, 403),
        ({"trusted_proxies": proxies_from(["127.0.0.1"])}, "127.0.0.1", {"X-Forwarded-For": "1.2.3.4,"}, 403),
        ({"trusted_proxies": proxies_from(["127.0.0.1"])}, "127.0.0.1", {"Forwarded": "for=1.2.3.4"}, 403),
        ({}, "127.0.0.1", {"X-Forwarded-Proto": "https"}, 403),
        ({}, "127.0.0.1", {"CF-Connecting-IP": "1.2.3.4"}, 403),
        ({"api_keys": (b"k",)}, "10.0.0.9", {"Authorization": "Bearer k"}, 200),
        ({"api_keys": (b"k",)}, "10.0.0.9", {"Authorization": "Bearer x"}, 403),
    ):
        with connect(client=(client, 1), **rules) as one:
            assert one.get("/metrics", headers=headers).status_code == status, (rules, client, headers)


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.9", "1.2.3.4", "10.0.0.9"),  # not a trusted proxy: the header is ignored
        ("10.0.0.1", "1.2.3.4", "1.2.3.4"),
        ("10.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"),  # the client made up the first
        ("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.2", "1.2.3.4"),  # two proxies
        ("10.0.0.1", "", "unknown"),
        ("10.0.0.1", "nonsense", "unknown"),
        ("10.0.0.1", "1.2.3.4, nonsense", "unknown"),
        ("10.0.0.1", "1.2.3.4,", "unknown"),
        ("10.0.0.1", "1.2.3.4:5555", "1.2.3.4"),
        ("10.0.0.1", "[2001:db8::1]:5555", "2001:db8::1"),
        ("10.0.0.1", "[2001:db8::1]", "2001:db8::1"),
        ("10.0.0.1", "10.0.0.2", "10.0.0.2"),
        ("::ffff:10.0.0.1", "2001:db8::5", "2001:db8::5"),
    ],
)
def test_client_address_behind_proxies(peer: str, forwarded: str, client: str) -> None:
    access = Access(trusted_proxies=proxies_from(["10.0.0.1", "10.0.0.2/32"]))
    scope = {"type": "http", "client": (peer, 1), "headers": [(b"x-forwarded-for", forwarded.encode())]}
    assert access.client(scope) == client


def test_rate_limit(connect: Connect) -> None:
    with connect(rate_limit=3, trusted_proxies=proxies_from(["127.0.0.1"])) as client:
        for address in ("1.2.3.4", "1.2.3.5"):  # each client has its own
            found = [client.get("/languages", headers={"X-Forwarded-For": address}) for _ in range(5)]
            assert [answer.status_code for answer in found] == [200, 200, 200, 429, 429]
            assert 1 <= int(found[-1].headers["retry-after"]) <= 60
            assert set(found[-1].json()) == {"error"}
        assert client.get("/health", headers={"X-Forwarded-For": "1.2.3.4"}).status_code == 200


def test_rate_limit_window_and_bounded_memory() -> None:
    now = [0.0]
    limiter = RateLimiter(2, clock=lambda: now[0])
    assert [limiter.seconds_to_wait("a") for _ in range(3)] == [0, 0, 60]
    now[0] = 59.5
    assert limiter.seconds_to_wait("a") == 1
    now[0] = 60.0
    assert limiter.seconds_to_wait("a") == 0
    for number in range(3 * MAX_CLIENTS):
        limiter.seconds_to_wait(str(number))
    assert len(limiter) <= MAX_CLIENTS
    now[0] = 200.0
    limiter.seconds_to_wait("b")
    assert len(limiter) == 1


@pytest.mark.parametrize("name", ["127.0.0.1%evil.com", "127.0.0.1%25evil.com", "[::1%evil.com]", "::1%evil.com"])
def test_a_zone_is_not_part_of_a_host(name: str) -> None:
    for host in ("127.0.0.1", "0.0.0.0"):
        with pytest.raises(RequestError):
            Access(host).check_host(Headers({"host": name}))


def test_only_the_sockets_own_address_may_have_a_zone() -> None:
    networks = proxies_from(["fe80::/64"])
    headers = [(b"x-forwarded-for", b"::1%evil.com")]
    scope = {"type": "http", "headers": [], "client": ("fe80::1%eth0", 1)}
    assert Access(trusted_proxies=networks).client(scope) == "fe80::1"
    assert Access(trusted_proxies=networks).client({**scope, "headers": headers}) == "unknown"
    assert not Access().is_local({**scope, "client": ("127.0.0.1%x", 1)})


def test_ipv6_clients_are_counted_by_network() -> None:
    assert rate_limit_group("2001:db8::1") == rate_limit_group("2001:db8::2:3") == "2001:db8::/64"
    assert rate_limit_group("1.2.3.4") == rate_limit_group("::ffff:1.2.3.4") == "1.2.3.4"


def test_the_log_has_no_texts_and_no_query_strings(connect: Connect) -> None:
    stream = io.StringIO()
    log = RequestLog(stream)
    with connect(log=log) as client:
        client.post("/translate?api_key=secret", json={**FIELDS, "q": "secret"})
        client.get("/a%0Ab?secret")
    log.close()
    first, second = stream.getvalue().splitlines()
    assert first.split()[1:5] == ["127.0.0.1", "POST", "/translate", "200"]
    assert second.split()[1:5] == ["127.0.0.1", "GET", "/a%0Ab", "404"]
    assert first.endswith(" ms")
    assert "secret" not in stream.getvalue()


def test_blocked_log_does_not_stop_the_server(connect: Connect) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    log = RequestLog(Full())
    with connect(log=log) as client:
        assert [client.get("/health").status_code for _ in range(3)] == [200] * 3
    log.close()


@pytest.mark.parametrize(
    ("read", "good", "bad"),
    [
        (origins_from, ["https://a.example", "http://a.example:80", "*"], ["a.example", "https://a.example/", "null"]),
        (hosts_from, ["a.example", "::1", "10.0.0.1"], ["http://a.example", "a.example:80", "*", ""]),
        (proxies_from, ["10.0.0.1", "10.0.0.0/24", "::1"], ["proxy", "10.0.0.1/24", "*"]),
    ],
)
def test_options(read: Callable[[list[str]], tuple[object, ...]], good: list[str], bad: list[str]) -> None:
    assert len(read(good)) == len(good)
    for one in bad:
        with pytest.raises(UsageError):
            read([one])


def test_network_of_proxies() -> None:
    assert proxies_from(["10.0.0.0/24"]) == (ipaddress.ip_network("10.0.0.0/24"),)


def test_a_page_of_an_allowed_origin_can_read_the_rate_limit(connect: Connect) -> None:
    origin = {"Origin": "https://app.example"}
    preflight = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    with connect(rate_limit=2, cors_origins=("https://app.example",)) as client:
        for _ in range(5):  # preflight requests are not counted
            assert client.options("/translate", headers=preflight).status_code == 200
        assert [client.get("/languages", headers=origin).status_code for _ in range(3)] == [200, 200, 429]
        refused = client.get("/languages", headers=origin)
    assert refused.headers["access-control-allow-origin"] == "https://app.example"
    assert refused.headers["access-control-expose-headers"] == "Retry-After"
    assert int(refused.headers["retry-after"]) > 0
    assert refused.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("view", ["/", "/attend", "/inside"])
def test_pages_without_a_text_need_no_key(connect: Connect, view: str) -> None:
    """They are the web app, in which the key is entered."""
    client = connect(api_keys=(b"secret",))
    assert client.get(view).status_code == 200
    if view != "/":
        assert client.get(view, params=FIELDS).status_code == 403
