"""Access control: Host header, cross-origin requests, API keys and trusted proxies."""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from heedful.errors import UsageError, cause
from heedful.serving.requests import RequestError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
ANY_ORIGIN = "*"
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/@\s]+)(?::\d{1,5})?")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_FORWARDING = (
    *("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded", "x-real-ip", "via"),
    *("cf-connecting-ip", "true-client-ip"),
)
_UNKNOWN = "unknown"  # a client whose proxy did not give its address; never local


@dataclass(frozen=True)
class Access:
    """The access rules of a server. By default, only this machine may use it."""

    host: str = "127.0.0.1"  # address the server listens on
    allowed_hosts: tuple[str, ...] = ()  # additional accepted names in the Host header
    cors_origins: tuple[str, ...] = ()  # origins that may send cross-origin requests; "*" allows all
    api_keys: tuple[bytes, ...] = ()  # if not empty, translating requires one of them
    rate_limit: int | None = None  # requests per minute and client
    trusted_proxies: tuple[Network, ...] = ()  # proxies whose X-Forwarded-For is trusted

    def exposure(self) -> Iterator[str]:
        """Yield a warning for each group of strangers that may use the server without a key."""
        if self.api_keys:
            return
        address = _address(self.host)
        if self.host.lower() != "localhost" and not (address and address.is_loopback):
            yield "Other machines can use this server without a key. See `--api-keys`."
        if ANY_ORIGIN in self.cors_origins:
            yield "Any website can use this server without a key. See `--cors-origin` and `--api-keys`."

    def check_host(self, headers: Headers) -> None:
        """Reject unknown host names to prevent DNS rebinding."""
        given = headers.get("host", "")
        if not (match := _AUTHORITY.fullmatch(given)):
            raise RequestError(f'"{given}" is not a valid Host header.')
        name = match[1].lower().strip("[]").removesuffix(".")
        if not self._is_own_name(name):
            raise RequestError(
                f'Host "{name}" is not allowed. To allow it, start the server with `--allowed-host {name}`.',
                421,
            )

    def _is_own_name(self, name: str) -> bool:
        if name in ("localhost", self.host.lower(), *self.allowed_hosts):
            return True
        is_everywhere = (listening := _address(self.host)) is not None and listening.is_unspecified
        if (address := _address(name)) is not None:
            return address.is_loopback or is_everywhere  # DNS rebinding requires a name, so IP addresses are safe
        return is_everywhere and name == socket.gethostname().lower()

    def check_origin(self, method: str, headers: Headers) -> None:
        """Reject cross-site requests that another page makes the user's browser send."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "")
        if ANY_ORIGIN in self.cors_origins or origin in self.cors_origins or site in ("same-origin", "none"):
            return
        if method in _SAFE_METHODS and (not site or headers.get("sec-fetch-mode") == "navigate"):
            return  # a link, or an old browser, which hides the response from the other site
        if bool(site) if origin is None else _netloc(origin) != headers.get("host"):
            raise RequestError(
                f"Cross-origin requests from {origin or 'other sites'} are not allowed. "
                f"To allow them, start the server with `--cors-origin {origin or 'ORIGIN'}`.",
                403,
            )

    def client(self, scope: Scope) -> str:
        """Return the client address: behind trusted proxies, the rightmost untrusted one."""
        client = peer = _peer(scope)
        if not self._is_trusted(peer):
            return client
        forwarded = Headers(scope=scope).getlist("x-forwarded-for")
        for given in reversed(",".join(forwarded).split(",") if forwarded else []):
            if (address := _forwarded_address(given.strip())) is None:
                return _UNKNOWN
            client = str(address)
            if not self._is_trusted(client):
                break
        return client

    def scheme(self, scope: Scope) -> str:
        """Return http or https; behind a trusted proxy, the scheme between client and proxy."""
        given = Headers(scope=scope).get("x-forwarded-proto", "")
        peer = _peer(scope)
        return given if given in ("http", "https") and self._is_trusted(peer) else str(scope["scheme"])

    def _is_trusted(self, text: str) -> bool:
        address = _address(text)
        return address is not None and any(address in network for network in self.trusted_proxies)

    def is_local(self, scope: Scope) -> bool:
        """Return whether the client is on this machine and not a local forwarding proxy."""
        address = _address(self.client(scope))
        if address is None or not address.is_loopback:
            return False
        peer, headers = _peer(scope), Headers(scope=scope)
        says_client = self._is_trusted(peer) and "x-forwarded-for" in headers
        return says_client or not any(name in headers for name in _FORWARDING)

    def check_key(self, headers: Headers, fields: Mapping[str, Any]) -> None:
        """Reject a request without a valid API key if the server requires one."""
        if self.api_keys and not self.has_key(headers, fields):
            raise RequestError("A valid API key is required. Send it as api_key, or as Authorization: Bearer KEY.", 403)

    def has_key(self, headers: Headers, fields: Mapping[str, Any]) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = bearer.strip() if scheme.lower() == "bearer" else fields.get("api_key")
        if not isinstance(given, str):
            return False
        raw = given.encode("utf-8", "surrogatepass")
        # All keys are compared in constant time, so that timing reveals nothing.
        return sum([hmac.compare_digest(raw, key) for key in self.api_keys]) > 0


def rate_limit_group(client: str) -> str:
    """Return the unit of rate limiting: an IPv4 address, or an IPv6 client's /64 network."""
    address = _address(client)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return client if address is None else str(address)


def _peer(scope: Scope) -> str:
    """Return the peer address of the socket without its IPv6 zone (fe80::1%eth0)."""
    peer = str((scope.get("client") or (_UNKNOWN,))[0])
    return peer.partition("%")[0] if ":" in peer else peer


def _address(text: str) -> Address | None:
    """Return the IP address, with mapped IPv4 addresses as IPv4.

    Addresses with a zone are rejected.
    """
    if "%" in text:
        return None
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address


def read_api_keys(path: Path) -> tuple[bytes, ...]:
    """Read one key per line. Empty lines and lines that start with # are skipped."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = cause(error) if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"Cannot read `--api-keys {path}`: {reason}. Pass a readable text file in UTF-8.") from None
    keys = []
    for number, line in enumerate(lines, 1):
        key = line.strip()
        if not key or key.startswith("#"):
            continue
        if not re.fullmatch("[!-~]+", key):
            raise UsageError(f"{path}:{number}: a key must consist of printable ASCII characters without spaces.")
        keys.append(key.encode())
    if not keys:
        raise UsageError(f"`--api-keys {path}` has no keys. Write one key per line.")
    return tuple(keys)


def proxies_from(given: Sequence[str]) -> tuple[Network, ...]:
    networks = []
    for text in given:
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError:
            raise UsageError(
                f'`--trusted-proxy` "{text}" is not an address or a network. Pass one such as 10.0.0.2 or 10.0.0.0/24.'
            ) from None
    return tuple(networks)


def origins_from(given: Sequence[str]) -> tuple[str, ...]:
    for origin in given:
        if origin != ANY_ORIGIN and not re.fullmatch(r"https?://[^/\s?#@]+", origin):
            raise UsageError(
                f'`--cors-origin` "{origin}" is not an origin. Write SCHEME://HOST[:PORT] without a path, or "*".'
            )
    return tuple(origin.lower() for origin in given)


def hosts_from(given: Sequence[str]) -> tuple[str, ...]:
    for name in given:
        if not re.fullmatch(r"[\w.-]+|[0-9A-Fa-f:.]+", name):
            raise UsageError(f'`--allowed-host` "{name}" is not a host name. Write it without a scheme or port.')
    return tuple(name.lower().removesuffix(".") for name in given)


def _forwarded_address(text: str) -> Address | None:
    """Return the address of an X-Forwarded-For entry: 192.0.2.1:5555 or [2001:db8::1]."""
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::\d+)?", text)
    if bracketed:
        return _address(bracketed[1])
    return _address(text.partition(":")[0] if text.count(":") == 1 else text)


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:  # http://[
        return None
