"""How a server is set up."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from eunoe.memory import IN_MEMORY
from eunoe.server.jobs import FIRST_PAUSE_SECONDS
from eunoe.server.logs import LogFormat

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8765
_MEGABYTE: Final = 1024 * 1024
MAX_BODY_BYTES: Final = 16 * _MEGABYTE


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
    max_body_bytes: int = MAX_BODY_BYTES
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
