"""Many clients of a server at once, in a process of their own: run as `python -m bench.load`.

It reads what to do as JSON on standard input and writes what came out as JSON on standard output.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from time import perf_counter
from typing import Any


async def _client(host: str, port: int, requests: Iterator[bytes], until: float, seconds: list[float]) -> int:
    """Send requests one after the other on one connection; return how many failed."""
    reader, writer = await asyncio.open_connection(host, port)
    failures = 0
    try:
        while perf_counter() < until:
            began = perf_counter()
            writer.write(next(requests))
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            seconds.append(perf_counter() - began)
            failures += not head.startswith(b"HTTP/1.1 200")
    finally:
        writer.close()
    return failures


async def _run(plan: dict[str, Any]) -> dict[str, Any]:
    requests = [text.encode() for text in plan["requests"]]
    seconds: list[float] = []
    began = perf_counter()
    clients = [
        _client(plan["host"], plan["port"], islice(cycle(requests), start, None), began + plan["seconds"], seconds)
        for start in range(plan["clients"])
    ]
    results = await asyncio.gather(*clients, return_exceptions=True)
    broken = [repr(result) for result in results if isinstance(result, BaseException)]
    failures = sum(result for result in results if isinstance(result, int)) + len(broken)
    return {"seconds": seconds, "elapsed": perf_counter() - began, "failures": failures, "broken": broken[:3]}


if __name__ == "__main__":
    json.dump(asyncio.run(_run(json.load(sys.stdin))), sys.stdout)
