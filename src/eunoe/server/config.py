"""How a server is set up."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from eunoe.errors import InputError
from eunoe.memory import IN_MEMORY
from eunoe.server.jobs import FIRST_PAUSE_SECONDS
from eunoe.server.observation import LogFormat

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8765
_MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Every setting of one server."""

    target: str | None = None
    """The store, as `eunoe.open` takes it."""
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """0 takes a free one."""
    public_url: str = ""
    """The address under which others reach it; turns on OAuth."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that a request's Host header may have, beside loopback and those of `host` and `public_url`."""
    origins: tuple[str, ...] = ()
    """Foreign origins whose pages may call; none by default."""
    embedder: Any = "auto"
    llm: Any = "auto"
    fast_llm: Any = None
    workflows: Path | None = None
    """The folder whose workflows a chat may name as its model."""
    max_body_bytes: int = 16 * _MEGABYTE
    max_import_bytes: int = 4096 * _MEGABYTE
    """Of `POST /v1/import`, which is kept on disk while it comes."""
    max_text_characters: int = 1_000_000
    max_batch: int = 1000
    """Messages or memories in one request."""
    max_page: int = 500
    requests_per_minute: int = 60_000
    """For each key; 0 is no limit."""
    failures_per_minute: int = 30
    """Keys that are wrong, for each address they come from; 0 is no limit."""
    audit_days: int = 365
    """How long the audit log is kept."""
    processes: int = 1
    """More than one answer more requests at once, each on a core of its own; the first does the jobs."""
    worker: bool = True
    """Whether jobs are worked off in this process."""
    retry_seconds: float = FIRST_PAUSE_SECONDS
    """Before a job that failed is tried again; each time after that four times as long."""
    log_format: LogFormat = "text"
    log_level: str = "info"
    tracing: bool = False
    """Whether spans are sent by OpenTelemetry, to where the OTEL_ variables say."""

    @property
    def is_loopback(self) -> bool:
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def has_files(target: str) -> bool:
    """Whether a store is a file, beside which others can lie."""
    return target != IN_MEMORY


_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORT: Final = 80


class Addresses:
    """The hosts and origins of one server. A name that is none of them was pointed here by somebody else."""

    def __init__(self, config: ServerConfig) -> None:
        self._port = config.port
        self._public_url = check_public_url(config.public_url) if config.public_url else ""
        self._public_host = urlsplit(self._public_url).netloc
        self._takes_any_ip = config.host in ("0.0.0.0", "::")
        self._hosts = {self._with_port(name) for name in (*_LOOPBACK_NAMES, _bracketed(config.host.lower()))}
        for name in config.allowed_hosts:
            self._hosts |= {name.lower(), self._with_port(name.lower())}
        if self._public_host:
            self._hosts.add(self._public_host)
        self._named_hosts = frozenset(name.lower() for name in config.allowed_hosts)
        self.named_origins = frozenset(map(_check_origin, config.origins))

    @property
    def public_url(self) -> str:
        """Where others reach this server, without a path; empty if nobody said so."""
        return self._public_url

    def challenge(self, path: str) -> str:
        """What a reply says to whoever has no key: how to get in, by OAuth where that is on."""
        if not self._public_url:
            return "Bearer"
        resource = "/v1" if path.startswith("/v1/") else "/mcp"
        return f'Bearer resource_metadata="{self._public_url}/.well-known/oauth-protected-resource{resource}"'

    def is_own_host(self, host: str) -> bool:
        """Whether a Host header names this server."""
        name = host.lower()
        return name in self._hosts or (self._takes_any_ip and self._is_ip(name))

    def is_own_origin(self, origin: str, host: str) -> bool:
        """Whether a page of this origin came from where the request goes to."""
        name = host.lower()
        if name and name == self._public_host:
            return origin == self._public_url
        return bool(name) and origin in (f"http://{name}", f"https://{name}")

    def is_named_origin(self, origin: str) -> bool:
        """Whether pages of a foreign origin may call, because somebody said so."""
        return origin in self.named_origins

    def is_secure(self, host: str) -> bool:
        """Whether callers reach this host by https, as far as this server knows."""
        return host.lower() == self._public_host and self._public_url.startswith("https:")

    def is_for_others(self, host: str) -> bool:
        """Whether it is the name by which others reach this server, through a proxy that may stand on this machine."""
        name = host.lower()
        return self.is_secure(host) or name in self._named_hosts or name.rpartition(":")[0] in self._named_hosts

    def _with_port(self, name: str) -> str:
        return name if self._port == _DEFAULT_PORT else f"{name}:{self._port}"

    def _is_ip(self, host: str) -> bool:
        """An address cannot be rebound, as a name can."""
        name = host.removesuffix(f":{self._port}")
        try:
            return self._with_port(_bracketed(str(ip_address(name.strip("[]"))))) == host
        except ValueError:
            return False


def check_public_url(url: str) -> str:
    """Return the origin that a public URL is. Tokens travel there: without https only on this machine."""
    parts = urlsplit(url.rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query or parts.fragment:
        raise InputError(f"--public-url {url} must be an address without a path, such as https://memory.example.com")
    if parts.username is not None:
        raise InputError("--public-url must not hold a name or a password")
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise InputError(f"--public-url {url} must be https: keys and tokens would travel in the clear")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _check_origin(origin: str) -> str:
    """Return an origin that is named: one by one, never all of them."""
    parts = urlsplit(origin)
    named = f"{parts.scheme}://{parts.netloc.lower()}"
    if parts.scheme not in ("http", "https") or not parts.hostname or origin.rstrip("/").lower() != named:
        raise InputError(f"--origin {origin} must be one origin, such as https://app.example.com")
    return named


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
