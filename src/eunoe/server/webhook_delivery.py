"""Sending to a webhook: signed, to an address that was checked, without following redirects."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from time import time
from typing import Final
from urllib.parse import SplitResult, urlsplit

from eunoe.errors import EunoeError, InputError

_TIMEOUT_SECONDS: Final = 10.0
_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
_INSIDE: Final = "the webhook's host is inside this network: only the owner of the store may name one"


class DeliveryError(EunoeError):
    """A webhook could not be told."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to send to: the URL and an IP address of its host that was checked."""

    url: SplitResult
    ip: str
    port: int


def check_url(url: str, allow_private: bool) -> SplitResult:
    """Return the parts of a webhook's URL; refuse what can be none."""
    try:
        parts = urlsplit(url)
        has_more = parts.username or parts.password or parts.fragment or parts.port == 0
    except ValueError:
        raise InputError("url cannot be read: it looks like https://example.org/hook") from None
    if not parts.hostname or has_more or parts.scheme not in ("https", "http") or not url.isascii() or " " in url:
        raise InputError("url must look like https://example.org/hook, with no user, password or fragment")
    if parts.scheme == "http" and not allow_private:
        raise InputError("url must begin with https://")
    if not allow_private and _names_this_network(parts.hostname):
        raise InputError(f"url is refused: {_INSIDE}")
    return parts


def find_address(url: SplitResult, allow_private: bool) -> Address:
    """Resolve the host once. Addresses of this machine or its network are refused: a tenant has no business there."""
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(url.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise DeliveryError("the host of the webhook is not known") from None
    ips = [str(info[4][0]) for info in found]
    if not allow_private and not all(map(_is_public, ips)):
        raise DeliveryError(_INSIDE)
    return Address(url, ips[0], port)


def _names_this_network(host: str) -> bool:
    """Whether a host is written as an address inside; other names are looked up when something is sent."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return not _is_public(_dotted(name))
    except ValueError:
        return False


def _is_public(ip: str) -> bool:
    """Whether an address is one machine of the internet, and no other way to write one inside, as NAT64 has it."""
    address = ipaddress.ip_address(ip)
    is_unicast = address in _GLOBAL_UNICAST if address.version == 6 else not address.is_multicast
    return address.is_global and is_unicast


def _dotted(host: str) -> str:
    """An IPv4 address in its usual form: resolvers also take 2130706433, 0x7f.1 and 0177.0.0.1."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return host


def send(address: Address, body: bytes, id: str, secret: str) -> int:
    """POST a body, signed as the Standard Webhooks say; return the status of the answer."""
    moment = str(int(time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "eunoe",
        "webhook-id": id,
        "webhook-timestamp": moment,
        "webhook-signature": sign(secret, id, moment, body),
    }
    path = address.url.path or "/"
    connection = _connect(address)
    try:
        connection.request("POST", f"{path}?{address.url.query}" if address.url.query else path, body, headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise DeliveryError(f"the webhook cannot be reached: {type(error).__name__}") from None
    finally:
        connection.close()


def sign(secret: str, id: str, moment: str, body: bytes) -> str:
    signed = f"{id}.{moment}.".encode() + body
    digest = hmac.new(secret.removeprefix("whsec_").encode(), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def _connect(address: Address) -> http.client.HTTPConnection:
    """A connection to the IP address that was checked: asking for the name again could give another one."""
    host = address.url.hostname or ""
    connection: http.client.HTTPConnection
    if address.url.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, address.port, timeout=_TIMEOUT_SECONDS, context=context)
        plain = _open_socket(address)
        connection.sock = context.wrap_socket(plain, server_hostname=host)
    else:
        connection = http.client.HTTPConnection(host, address.port, timeout=_TIMEOUT_SECONDS)
        connection.sock = _open_socket(address)
    return connection


def _open_socket(address: Address) -> socket.socket:
    try:
        return socket.create_connection((address.ip, address.port), timeout=_TIMEOUT_SECONDS)
    except OSError as error:
        raise DeliveryError(f"the webhook cannot be reached: {type(error).__name__}") from None
