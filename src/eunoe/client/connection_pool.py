"""Connections that stay open between requests."""

from __future__ import annotations

import os
import selectors
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from threading import Lock
from typing import Final

from eunoe.client.address import Address
from eunoe.errors import ClosedError, RemoteError

_MAX_IDLE: Final = 8
"""More are closed after use: who has more threads than this at once has them all the time."""


class ConnectionPool:
    """The connections to one server. Each is used by one thread at a time."""

    def __init__(self, address: Address, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._idle: list[HTTPConnection] = []
        self._lock = Lock()
        self._is_closed = False
        self._process = os.getpid()
        self._tls = ssl.create_default_context() if address.is_secure else None

    @contextmanager
    def one(self, timeout: float | None) -> Iterator[HTTPConnection]:
        """A connection for one request. It is kept, unless an error is raised or whoever uses it closes it."""
        connection = self._take() or self._connect()
        try:
            connection.sock.settimeout(timeout)
            yield connection
        except BaseException:
            connection.close()
            raise
        self._keep(connection)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> HTTPConnection | None:
        """One that is idle and that the server has not closed meanwhile."""
        while True:
            with self._lock:
                if self._is_closed:
                    raise ClosedError("the memory was closed: connect again")
                self._leave_to_parent()
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not _has_something_to_read(connection.sock):
                return connection
            connection.close()

    def _leave_to_parent(self) -> None:
        """After a fork: the connections are the parent's."""
        if self._process != os.getpid():
            self._process = os.getpid()
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def _connect(self) -> HTTPConnection:
        address = self._address
        connection = (
            HTTPSConnection(address.host, address.port, timeout=self._timeout, context=self._tls)
            if address.is_secure
            else HTTPConnection(address.host, address.port, timeout=self._timeout)
        )
        try:
            connection.connect()
        except OSError as error:
            raise RemoteError(
                f"no server answers at {address.url} ({error.strerror or error}): start one with `eunoe serve`, "
                "or check the address"
            ) from error
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return connection

    def _keep(self, connection: HTTPConnection) -> None:
        with self._lock:
            is_kept = connection.sock is not None and not self._is_closed and len(self._idle) < _MAX_IDLE
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()


def _has_something_to_read(sock: socket.socket) -> bool:
    """Between requests a server has nothing to say, but that it has closed."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))
