"""The end of a thread's connection."""

import sqlite3
from contextlib import suppress


class ConnectionCloser:
    """Closes the connection of a thread when the thread ends."""

    def __init__(self, connection: sqlite3.Connection, connections: list[sqlite3.Connection]) -> None:
        self._connection = connection
        self._connections = connections
        connections.append(connection)

    def __del__(self) -> None:
        with suppress(ValueError):
            self._connections.remove(self._connection)
        self._connection.close()
