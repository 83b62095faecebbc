"""The address of a server: what may be called, and whether a key may be sent there."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from eunoe.errors import InputError
from eunoe.model.arguments import show

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is."""

    host: str
    port: int
    is_secure: bool
    """Whether what is sent is encrypted on its way."""
    prefix: str = ""
    """The path under which it lies there."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """
        >>> Address.parse("http://127.0.0.1:8765/").url
        'http://127.0.0.1:8765'
        """
        parts = _split(url)
        host = parts.hostname or ""
        return cls(host, parts.port or _PORTS[parts.scheme], parts.scheme == "https", parts.path.rstrip("/"))

    @property
    def is_loopback(self) -> bool:
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def host_header(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'https' if self.is_secure else 'http'}://{self.host_header}{self.prefix}"


def _split(url: str) -> SplitResult:
    if not isinstance(url, str):
        raise InputError(f"url must be text, not {type(url).__name__}")
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        raise InputError(f"cannot read {show(url)} as an address: write http://127.0.0.1:8765") from None
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in _PORTS or not parts.hostname or not has_port or not is_plain:
        raise InputError(f"cannot read {show(url)} as an address: write http://127.0.0.1:8765 or https://example.org")
    if parts.username is not None or parts.query or parts.fragment:
        raise InputError("an address has no name, key, ? or # in it: pass the key as `key`")
    return parts
