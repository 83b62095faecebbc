"""Load on a server: threads that write until it is gone, and what it acknowledged."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote

from tests.support.server_process import ServerProcess
from tests.support.waiting import wait_until


@dataclass(frozen=True)
class Write:
    """A request that stores one text."""

    path: str
    scope: str
    text: str
    key: str

    @property
    def body(self) -> dict[str, Any]:
        if self.path == "/v1/messages":
            return {"scope": self.scope, "messages": [{"role": "user", "content": self.text}]}
        return {"scope": self.scope, "items": [self.text]}

    @property
    def headers(self) -> dict[str, str]:
        return {"Idempotency-Key": self.key} if self.key else {}


@dataclass
class Load:
    """Writers, each with a connection of its own, that go on until the server is gone."""

    server: ServerProcess
    name: str
    writers: int = 4
    acknowledged: list[Write] = field(default_factory=list)
    uncertain: list[Write] = field(default_factory=list)
    """Those that had no answer: they may be stored or not."""
    refused: list[tuple[Write, int]] = field(default_factory=list)

    def start(self) -> None:
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(self.writers)]
        for thread in self._threads:
            thread.start()

    def wait(self, count: int) -> None:
        """Wait until so many writes were acknowledged."""
        wait_until(lambda: len(self.acknowledged) >= count)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _write(self, number: int) -> None:
        connection, random_number = HTTPConnection("127.0.0.1", self.server.port, timeout=30), random.Random(number)
        count = 0
        while True:
            count += 1
            path = random_number.choice(["/v1/messages", "/v1/memories"])
            text = f"{self.name}, writer {number}, text {count}."
            key = f"{self.name}-{number}-{count}" if random_number.random() < 0.5 else ""
            write = Write(path, f"session=s{number % 2}/user=anna", text, key)
            if not self._send(connection, write):
                return

    def _send(self, connection: HTTPConnection, write: Write) -> bool:
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json", **write.headers}
        try:
            connection.request("POST", write.path, json.dumps(write.body), headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, HTTPException):
            connection.close()
            self.uncertain.append(write)
            return False
        if answer.status == 200:
            self.acknowledged.append(write)
        else:
            self.refused.append((write, answer.status))
        return True


def stored_texts(server: ServerProcess, scopes: set[str], key: str = "") -> Counter[tuple[str, str]]:
    """How often each text stands in each scope."""
    found: Counter[tuple[str, str]] = Counter()
    for scope in scopes:
        after = ""
        while True:
            page = server.call("GET", f"/v1/memories?limit=500&scope={quote(scope)}&after={after}", key=key).json
            found.update((scope, item["text"]) for item in page["items"])
            after = page["next"]
            if not after:
                break
    return found
