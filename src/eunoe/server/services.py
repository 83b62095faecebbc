"""What one server process holds: the memory, its own records, and who may call."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import eunoe
from eunoe.memory import AsyncMemory
from eunoe.server.access import Access, load_owner_token
from eunoe.server.config import LocalFiles, ServerConfig, has_files
from eunoe.server.keys import Keys
from eunoe.server.state import ServerState


class Services:
    """The parts of one server. Routes find them at `request.app.state.services`."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.memory: AsyncMemory = eunoe.open_async(
            config.target, embedder=config.embedder, llm=config.llm, fast_llm=config.fast_llm
        )
        self._folder = None if has_files(self.memory.target) else tempfile.TemporaryDirectory(prefix="eunoe-server-")
        store = str(Path(self._folder.name) / "memory.db") if self._folder else self.memory.target
        self.files = LocalFiles.beside(store)
        self.owner_token = load_owner_token(self.files.token)
        self.state = ServerState(self.files.state)
        self.keys = Keys(self.state)
        self.access = Access(self.memory, self.keys, self.owner_token)

    def write_address(self, url: str) -> None:
        """Tell local clients where this server listens."""
        with suppress(FileNotFoundError):
            self.files.address.unlink()
        with open(os.open(self.files.address, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({"url": url, "pid": os.getpid()}, file)

    def _remove_address(self) -> None:
        """Unless another server has written its own meanwhile."""
        with suppress(OSError, ValueError):
            if json.loads(self.files.address.read_text())["pid"] == os.getpid():
                self.files.address.unlink()

    async def close(self) -> None:
        """Stop in order. What was acknowledged is stored."""
        self._remove_address()
        await self.memory.close()
        self.state.close()
        if self._folder:
            self._folder.cleanup()
