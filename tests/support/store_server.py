"""One listening server for many stores, one after the other: to start and stop one takes longer than most tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn

import eunoe
from eunoe.memory import Memory
from eunoe.server.app import create_app
from eunoe.server.config import ServerConfig
from eunoe.server.process import open_listener
from eunoe.server.services import Services


class StoreServer:
    """Listens in a thread of this process, and serves the store that is opened last."""

    def __init__(self) -> None:
        self._listener, self._config = open_listener(ServerConfig(port=0, embedder="none", llm="none", worker=False))
        settings = uvicorn.Config(self._answer, log_config=None, lifespan="on", interface="asgi3", ws="none")
        self._server = uvicorn.Server(settings)
        self._app: Any = None
        self._has_started = threading.Event()
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]})
        self._thread.start()
        self._has_started.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._config.port}"

    @contextmanager
    def opened(self, path: Path) -> Iterator[Memory]:
        """A memory that is connected to a server on this store."""
        services = Services(replace(self._config, target=str(path)))
        self._app = create_app(services)
        try:
            with eunoe.connect(self.url, services.owner_token) as memory:
                yield memory
        finally:
            asyncio.run_coroutine_threadsafe(services.close(), self._loop).result()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            return await self._app(scope, receive, send)
        for said in ("startup", "shutdown"):
            await receive()
            self._loop = asyncio.get_running_loop()
            await send({"type": f"lifespan.{said}.complete"})
            self._has_started.set()
        return None
