"""Processes that the tests start, and sometimes kill. Each speaks JSON, line by line."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Sequence
from itertools import count

from system_calls import stand_still
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import StoreError
from eunoe.memory import Memory
from eunoe.store import sqlite, sqlite_files

SCOPE = {"user": "anna"}


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, len(text) % 7, len(text) % 5, 1.0] for text in texts]


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


def wait() -> None:
    sys.stdin.readline()


def crash(path: str, seed: str) -> None:
    """Writes without end, saying before each batch what it will do and after it that it is done."""
    choose = random.Random(seed)
    with eunoe.open(path, embedder=embed, form=False) as memory:
        for number in count():
            batch = f"{seed}-{number}"
            living = memory.list(SCOPE, limit=400).items
            kind = choose.choice(["observe", "remember", "update", "forget"]) if len(living) > 20 else "observe"
            ids = [item.id for item in choose.sample(living, min(len(living), choose.randint(1, 5)))]
            atoms = [item.id for item in living if item.kind != "message"]
            if kind == "update" and not atoms:
                kind = "remember"
            size = choose.randint(1, 30)
            say(begin=kind, batch=batch, size=size, ids=ids)
            done = act(memory, kind, batch, size, ids, choose.choice(atoms) if atoms else "")
            say(done=batch, ids=done)


def act(memory: Memory, kind: str, batch: str, size: int, ids: list[str], atom: str) -> list[str]:
    texts = [f"batch {batch} item {place} " + "word " * (place * 7 % 40) for place in range(size)]
    if kind == "observe":
        messages = [{"content": text, "metadata": {"batch": batch}} for text in texts]
        return [receipt.id for receipt in memory.observe(SCOPE, messages)]
    if kind == "remember":
        items = [{"text": text, "metadata": {"batch": batch}} for text in texts]
        return [receipt.id for receipt in memory.remember_many(SCOPE, items)]
    if kind == "update":
        receipt = memory.update(SCOPE, atom, f"batch {batch} new words", metadata={"batch": batch})
        return [receipt.id, receipt.closed]
    report = memory.forget(SCOPE, ids)
    return [*report.messages, *report.atoms]


def create(path: str) -> None:
    """Makes a new store as soon as it is told to."""
    say(ready=True)
    wait()
    with eunoe.open(path, embedder="none") as memory:
        receipts = memory.observe(SCOPE, ["one", "two"])
        say(done=[receipt.outcome for receipt in receipts])
        wait()


def crowd(path: str, name: str, rounds: str) -> None:
    """Writes and reads beside others; tells of each write only when it has read it back."""
    mine: list[str] = []
    say(ready=True)
    wait()
    with eunoe.open(path, embedder="none") as memory:
        for number in range(int(rounds)):
            said = memory.observe(SCOPE, [f"{name} says {name}{number}{part}" for part in "ab"])
            kept = memory.remember({"user": name}, f"{name} keeps {number}")
            shared = memory.remember(SCOPE, f"everyone knows {number}")
            assert all([*said, kept, shared])
            assert memory.get({"user": name}, kept.id).text == f"{name} keeps {number}"
            mine += [receipt.id for receipt in said]
            held = {item.id for item in memory.list(SCOPE, kinds=["message"], limit=1000).items}
            assert held.issuperset(mine)
            hits = memory.recall(SCOPE, f"{name}{number}b", limit=1)
            assert hits[0].text == f"{name} says {name}{number}b"
        say(mine=mine)


def ping(path: str) -> None:
    """Answers every line with what it finds under the words on it."""
    with eunoe.open(path, embedder="none") as memory:
        say(ready=True)
        for line in sys.stdin:
            question = line.strip()
            listed = [item.text for item in memory.list(SCOPE, limit=1000).items]
            hits = memory.recall(SCOPE, question, limit=1) if listed else []
            say(listed=question in listed, recalled=bool(hits) and hits[0].text == question)


def keyed(path: str, name: str) -> None:
    """Gives one key new values as soon as it is told to, with another key between them."""
    say(ready=True)
    wait()
    with eunoe.open(path, embedder="none") as memory:
        for number in range(30):
            memory.remember(SCOPE, f"{name} {number}", metadata={"memory_key": "home"})
            memory.remember(SCOPE, f"{name} beside {number}", metadata={"memory_key": f"{name} {number}"})
    say(done=30)


def replay(path: str, kind: str) -> None:
    """Observes one history, whole, as soon as it is told to."""
    history = [{"role": "user" if n % 2 else "assistant", "content": f"message {n % 5}"} for n in range(40)]
    if kind == "id":
        history = [{**message, "id": f"m{n}"} for n, message in enumerate(history)]
    if kind == "time":
        history = [{**message, "time": 1_700_000_000 + n} for n, message in enumerate(history)]
    say(ready=True)
    wait()
    with eunoe.open(path, embedder="none") as memory:
        say(outcomes=[receipt.outcome for receipt in memory.observe(SCOPE, history)])


def write_twice(path: str) -> None:
    """Writes two messages, the second of which stays in the log, and waits."""
    with eunoe.open(path, embedder="none", form=False) as memory:
        for text in ("one", "two"):
            memory.observe(SCOPE, text)
        say(done=2)
        wait()


def hold(path: str) -> None:
    """Reads one snapshot until it is told to end."""
    with eunoe.open(path, embedder="none", form=False) as memory, steps_of(memory).reading():
        say(items=steps_of(memory).counts().kinds.get("fact", 0))
        wait()


def back_up(path: str, target: str) -> None:
    """Makes a backup between two writes, and waits."""
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(SCOPE, "one")
        report = memory.admin.backup(target)
        memory.observe(SCOPE, "two")
        say(messages=report.messages)
        wait()


def back_up_again(path: str, target: str) -> None:
    """Writes and makes backups without end."""
    with eunoe.open(path, embedder="none", form=False) as memory:
        for number in count():
            memory.observe(SCOPE, {"content": f"again {number}", "id": f"{random.random()}"})
            say(messages=memory.admin.backup(target).messages)


def export_again(path: str, target: str) -> None:
    """Exports without end."""
    with eunoe.open(path, embedder="none", form=False) as memory:
        while True:
            say(lines=memory.admin.export(SCOPE, target))


def restore_again(path: str, *sources: str) -> None:
    """Restores one backup after the other without end."""
    for number in count():
        say(messages=eunoe.restore(sources[number % len(sources)], path).messages)


def restore_in_steps(path: str, source: str, keep: str) -> None:
    """Restores while its parent leads it from one system call to the next."""
    stand_still()
    eunoe.restore(source, path, keep=keep == "keep")
    os._exit(0)


def visit(path: str) -> None:
    """Opens the store whenever it is told a line, writes that, and stays until it is told to go; waits for nobody."""
    sqlite._LOCK_SECONDS = sqlite_files._LOCK_SECONDS = 0  # type: ignore[misc]
    sqlite.SqliteStore.__init__.__kwdefaults__["timeout"] = 0.0
    for line in iter(sys.stdin.readline, ""):
        try:
            with eunoe.open(path, embedder="none", form=False) as memory:
                texts = [item.text for item in memory.list(SCOPE, limit=1000).items]
                memory.observe(SCOPE, line.strip())
                say(texts=texts)
                wait()
            say(closed=True)
        except StoreError as error:
            say(error=type(error).__name__)


def put_items(path: str) -> None:
    """Puts items into a LangGraph store without end, each in two namespaces; says what is done."""
    from eunoe.hosts.langgraph import EunoeStore

    with EunoeStore.from_conn_string(path, embedder="none") as store:
        for number in count():
            store.put(("child", str(number % 3)), "latest", {"n": number})
            store.put(("child", "all"), str(number), {"n": number})
            say(done=number)


def share_items(path: str) -> None:
    """Reads what another process has put, and puts what it was last told beside it, line by line."""
    from eunoe.hosts.langgraph import EunoeStore

    with EunoeStore.from_conn_string(path, embedder="none") as store:
        for line in sys.stdin:
            found = store.search(("shared",), limit=100)
            store.put(("shared", "child"), "told", {"line": line.strip()})
            say(found=[[*item.namespace, item.key, item.value] for item in found])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
