"""Many clients of one server, in one process: each a raw socket that asks and checks."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

TENANTS = ("acme", "beta", "gamma")
SCOPES = 100


@dataclass
class Clients:
    """Concurrent clients with the keys of several tenants. Every text that they store names its tenant."""

    port: int
    keys: dict[str, str]
    seconds: float
    count: int = 200
    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    stored: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """Acknowledged texts by tenant and scope, without those that were forgotten."""

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._end = monotonic() + self.seconds
        await asyncio.gather(*(self._be_client(number) for number in range(self.count)))

    async def _be_client(self, number: int) -> None:
        choose, tenant = random.Random(number), TENANTS[number % len(TENANTS)]
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        client = _Client(self, tenant, number, reader, writer, choose)
        verbs = [client.recall, client.observe, client.remember, client.context, client.list, client.forget]
        while monotonic() < self._end:
            await choose.choice(verbs)()
        writer.close()
        await writer.wait_closed()


@dataclass
class _Client:
    clients: Clients
    tenant: str
    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    choose: random.Random
    written: int = 0

    @property
    def scope(self) -> str:
        return f"user=u{self.choose.randrange(SCOPES)}"

    async def recall(self) -> None:
        await self._ask("POST", "/v1/recall", {"scope": self.scope, "query": "Which text did the writer keep?"})

    async def context(self) -> None:
        await self._ask("POST", "/v1/context", {"scope": self.scope, "message": "Which text did the writer keep?"})

    async def list(self) -> None:
        await self._ask("GET", f"/v1/memories?limit=20&scope={self.scope.replace('=', '%3D')}")

    async def observe(self) -> None:
        scope, text = self.scope, self._text()
        if await self._ask("POST", "/v1/messages", {"scope": scope, "messages": [text]}):
            self._note(scope, text)

    async def remember(self) -> None:
        scope, text = self.scope, self._text()
        if await self._ask("POST", "/v1/memories", {"scope": scope, "items": [text]}):
            self._note(scope, text)

    async def forget(self) -> None:
        """Of what this client has just stored: nobody else may have forgotten it."""
        scope, text = self.scope, self._text()
        answer = await self._ask("POST", "/v1/memories", {"scope": scope, "items": [text]})
        if answer and self.choose.random() < 0.2:
            ids = [answer["receipts"][0]["id"]]
            if not await self._ask("POST", "/v1/forget", {"scope": scope, "ids": ids, "verify": False}):
                self._note(scope, text)
        elif answer:
            self._note(scope, text)

    def _text(self) -> str:
        self.written += 1
        return f"Writer {self.number} of {self.tenant} kept text {self.written}."

    def _note(self, scope: str, text: str) -> None:
        self.clients.stored.setdefault((self.tenant, scope), set()).add(text)

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.clients.port}\r\nContent-Length: {len(content)}\r\n"
        head += f"Content-Type: application/json\r\nAuthorization: Bearer {self.clients.keys[self.tenant]}\r\n\r\n"
        self.writer.write(head.encode() + content)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
        answer = (await self.reader.readexactly(length)).decode()
        status = int(lines[0].split()[1])
        self.clients.answers[path.partition("?")[0]] += 1
        if status != 200:
            self.clients.faults.append(f"{method} {path}: {status} {answer}")
            return None
        if foreign := [other for other in TENANTS if other != self.tenant and other in answer]:
            self.clients.faults.append(f"{method} {path} told {self.tenant} of {foreign}")
        return json.loads(answer)
