"""One server process: it listens, says where, and stops in order."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import uvicorn

from eunoe.errors import EunoeError, InputError
from eunoe.server.app import create_app
from eunoe.server.config import ServerConfig
from eunoe.server.connections import Connection
from eunoe.server.helper_process import helper_processes
from eunoe.server.logs import LOG_FORMATS, LOG_LEVELS, configure_logs
from eunoe.server.services import Services

_GRACE_SECONDS = 10
_BACKLOG = 2048


class ServerError(EunoeError):
    """The server cannot start."""


def configure(**options: Any) -> ServerConfig:
    """Check options as a user gives them."""
    for name, choices in (("log_format", LOG_FORMATS), ("log_level", LOG_LEVELS)):
        if (value := options.get(name, choices[0])) not in choices:
            raise InputError(f"{name} {value!r} is not one of {', '.join(choices)}")
    lists = {name: tuple(value) for name, value in options.items() if isinstance(value, list)}
    return ServerConfig(**{**options, **lists})


def serve(config: ServerConfig, announce: Callable[[str, Services], None]) -> None:
    """Serve until a signal asks to stop. `announce` is called with the address before the first request."""
    configure_logs(config.log_format, config.log_level)
    listener, config = open_listener(config)
    try:
        services = Services(config)
        _check_keys(config, services)
        url = local_url(config)
        services.write_address(url)
        announce(url, services)
        with helper_processes(config, listener):
            _Uvicorn(uvicorn_settings(services), services).run(sockets=[listener])
    finally:
        listener.close()


def serve_requests(config: ServerConfig, listener: socket.socket) -> None:
    """Answer requests beside the process that has the socket, until a signal asks to stop."""
    configure_logs(config.log_format, config.log_level)
    services = Services(config)
    _Uvicorn(uvicorn_settings(services), services).run(sockets=[listener])


def uvicorn_settings(services: Services) -> uvicorn.Config:
    """How requests are taken in."""
    return uvicorn.Config(
        create_app(services),
        http=Connection,
        log_config=None,
        access_log=False,  # it would write whole addresses; ours names operations
        server_header=False,
        ws="none",
        proxy_headers=False,  # a forwarded address is the caller's word, nothing more
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


class _Uvicorn(uvicorn.Server):
    """Ends streams of events as soon as it is asked to stop: it would wait for them."""

    def __init__(self, config: uvicorn.Config, services: Services) -> None:
        super().__init__(config)
        self._services = services

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._services.stopping.set()
        super().handle_exit(sig, frame)


def open_listener(config: ServerConfig) -> tuple[socket.socket, ServerConfig]:
    """The socket to serve on, and the configuration with the port that it has."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
        listener.listen(_BACKLOG)  # whoever calls before all is ready waits, and is not refused
    except socket.gaierror:
        listener.close()
        raise ServerError(f"{config.host} is not an address of this machine: choose another --host") from None
    except OSError as error:
        listener.close()
        raise ServerError(
            f"cannot listen on {config.host}:{config.port}: {error.strerror}; choose another --port"
        ) from None
    return listener, replace(config, port=listener.getsockname()[1])


def local_url(config: ServerConfig) -> str:
    """Where this machine itself reaches the server."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)
    return f"http://[{host}]:{config.port}" if ":" in host else f"http://{host}:{config.port}"


def _check_keys(config: ServerConfig, services: Services) -> None:
    if not config.is_loopback and not any(key.is_valid for key in services.keys.list()):
        asyncio.run(services.close())
        raise ServerError(f"{config.host} can be reached by others and there are no keys: run `eunoe key create` first")
