"""One server process: it listens, says where, and stops in order."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import wait
from types import FrameType
from typing import Any, ClassVar, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from eunoe.errors import EunoeError, InputError
from eunoe.server.app import create_app
from eunoe.server.config import ServerConfig
from eunoe.server.observation import LOG_FORMATS, LOG_LEVELS, configure_logs
from eunoe.server.services import Services

REQUEST_SECONDS: Final = 10.0
"""The headers of a request have to be there after so long, and so has the body of one that was answered already."""
_MAX_WAITING: Final = 1000


class Connection(HttpToolsProtocol):
    """A connection that the server waits on gives way: after a time, or at once where too many wait.

    It waits from its start, or from a reply, until a whole request is there. If too many do, the oldest one from the
    address that has most of them is closed. Whoever asks at once gets in, however many others keep theirs open.
    """

    _waiting: ClassVar[dict[Connection, str]] = {}
    """The oldest first, each with its address."""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._stop_timer()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if not self.cycle.response_complete:
            self._waiting.pop(self, None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # otherwise another request came along with this one
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._waiting.pop(self, None)
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._give_up)
        self._waiting[self] = self.client[0] if self.client else ""
        if len(self._waiting) > max_waiting():
            most = Counter(self._waiting.values()).most_common(1)[0][0]
            next(each for each, address in self._waiting.items() if address == most)._give_up()

    def _give_up(self) -> None:
        self._waiting.pop(self, None)
        self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


def max_waiting() -> int:
    """Half of the files that this process may have open, so that as many are left for requests and the store."""
    try:
        import resource
    except ImportError:  # a platform without such a limit
        return _MAX_WAITING
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(_MAX_WAITING, files // 2) if files > 0 else _MAX_WAITING


_STOP_SECONDS: Final = 15.0


@contextmanager
def helper_processes(config: ServerConfig, listener: socket.socket) -> Iterator[None]:
    """Start all processes but this one, and stop them with it."""
    context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks and open files
    own = replace(config, processes=1, worker=False)
    helpers = [context.Process(target=_serve, args=(own, listener), daemon=True) for _ in range(config.processes - 1)]
    for helper in helpers:
        helper.start()
    try:
        yield
    finally:
        for helper in helpers:
            helper.terminate()
        for helper in helpers:
            helper.join(_STOP_SECONDS)


def _serve(config: ServerConfig, listener: socket.socket) -> None:
    threading.Thread(target=_stop_with_parent, name="eunoe-parent", daemon=True).start()
    configure_logs(config.log_format, config.log_level)
    _run(Services(config), listener)


def _stop_with_parent() -> None:
    """A parent that is killed stops nobody: whoever has no parent any more stops by itself."""
    parent = multiprocessing.parent_process()
    if parent:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


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
        if not config.is_loopback and not any(key.is_valid for key in services.keys.list()):
            asyncio.run(services.close())
            reason = "can be reached by others and there are no keys: run `eunoe key create` first"
            raise ServerError(f"{config.host} {reason}")
        url = local_url(config)
        services.write_address(url)
        announce(url, services)
        with helper_processes(config, listener):
            _run(services, listener)
    finally:
        listener.close()


def _run(services: Services, listener: socket.socket) -> None:
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
    except OSError as error:
        listener.close()
        if isinstance(error, socket.gaierror):
            raise ServerError(f"{config.host} is not an address of this machine: choose another --host") from None
        place = f"{config.host}:{config.port}"
        raise ServerError(f"cannot listen on {place}: {error.strerror}; choose another --port") from None
    return listener, replace(config, port=listener.getsockname()[1])


def local_url(config: ServerConfig) -> str:
    """Where this machine itself reaches the server."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)
    return f"http://[{host}]:{config.port}" if ":" in host else f"http://{host}:{config.port}"
