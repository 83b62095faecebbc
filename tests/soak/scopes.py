"""Looks from every scope at every other: nothing of one may be seen from another that has no right to it.

    python tests/soak/scopes.py --pairs 1000000 --processes 2

Each scope holds a word that no other has. A model that lies puts every word it was ever shown into every stream that it
is asked about, every summary and every query. Then each scope is read by every verb and by the agent's tool: as it is,
exactly, and with everything within. The words in what comes back are compared with those that it means and may see.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from math import isqrt
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from forming_child import forked  # noqa: E402
from tests.support.letters import Letters  # noqa: E402

import eunoe  # noqa: E402
from eunoe.errors import EunoeError, LlmError  # noqa: E402
from eunoe.hosts.memory_tool import tool  # noqa: E402
from eunoe.llm.contract import Prompt, ScriptedLlm  # noqa: E402
from eunoe.memory import Memory  # noqa: E402
from eunoe.model.scope import Scope  # noqa: E402

SECRET = re.compile(r"\bzq[0-9a-f]{10}\b")
QUESTION = "What is the secret code word of the dog and the safe?"
PART = 710
"""Scopes of one store; each is compared with all others of it, whatever kind they are."""


def secret_of(scope: Scope) -> str:
    return f"zq{hashlib.sha256(scope.text.encode()).hexdigest()[:10]}"


class Liar:
    """A model that repeats every secret that it has ever seen, wherever it is asked to write."""

    def __init__(self) -> None:
        self.heard: dict[str, None] = {}
        self.asked = Counter[str]()
        self._choose = random.Random("liar")
        self._lock = threading.Lock()

    def __call__(self, prompt: Prompt) -> Any:
        text = f"{prompt.system} {prompt.text}"
        with self._lock:
            self.asked[prompt.operation] += 1
            self.heard |= dict.fromkeys(SECRET.findall(text))
            words = [*list(self.heard)[-6:], *self._choose.sample(list(self.heard), min(6, len(self.heard)))]
        if prompt.operation == "extraction":
            kinds = ("fact", "observation")
            return {
                "memories": [
                    {"stream": stream, "kind": kind, "text": f"The code word is {word}.", "turns": [1], "key": None}
                    for (stream, kind), word in zip(product((1, 2, 3, 4), kinds), words, strict=False)
                ]
            }
        if prompt.operation == "query":
            return {"query": f"code word {' '.join(words)}", "queries": words}
        return {"summary": f"Code words: {' '.join(words)}.", "text": f"Code words: {' '.join(words)}."}


def all_scopes(number: int, choose: random.Random) -> list[Scope]:
    """Scopes of every shape whose keys and values overlap as much as they can."""
    users = ("anna", "ann", "Anna", "ben", "eve", "1")
    values = {"tenant": "abcdef", "agent": "xy1", "user": users, "session": "12345", "project": "p"}
    scopes = {
        Scope(**{key: choose.choice(values[key]) for key in values if choose.random() < 0.6} or {"user": "anna"})
        for _ in range(20 * number)
    }
    return choose.sample(sorted(scopes, key=str), min(number, len(scopes)))


def may_see(reader: Scope, owner: Scope) -> bool:
    """Whether a conversation may be shown something of another scope: of itself, of its own user and agent, of what
    belongs to nobody, and of earlier sessions that its own user had with the same agent in the same place."""
    mine, theirs = reader.pairs, owner.pairs
    if any(mine.get(key) != theirs.get(key) for key in ("tenant", "project")):
        return False
    if "agent" in theirs and theirs["agent"] != mine.get("agent"):
        return False
    if "user" in theirs:
        return theirs["user"] == mine.get("user")
    return "session" not in theirs or theirs["session"] == mine.get("session")


def means(asked: Scope, owner: Scope) -> bool:
    """Whether a verb that reads is asked for what a scope holds: a user's scope is asked for everything within, any
    other for itself alone unless it says so, and a tenant is never crossed."""
    mine, theirs = dict(asked.pairs), dict(owner.pairs)
    if asked.within or "user" in mine:
        return mine.items() <= theirs.items() and mine.get("tenant") == theirs.get("tenant")
    return mine == theirs


def fill(memory: Memory, scopes: Sequence[Scope]) -> None:
    for scope in scopes:
        word = secret_of(scope)
        said = f"My secret code word is {word}. The safe and the dog Bruno know {word}."
        memory.observe(scope, [{"content": said, "id": "m1"}, "It rained.", f"I like {word}.", "Good night."])
        memory.remember(scope, f"The code word of the dog is {word}.", id="f1", files=["a.py"], people=["Bruno"])
        memory.remember(scope, f"Standing order {word}.", kind="observation", metadata={"memory_key": "dog/code"})
    for scope in scopes:
        memory.form(scope)
        with suppress(LlmError):  # a lie was refused, and what it was for stays due
            memory.summaries.consolidate(scope)


def strict_views(memory: Memory, scope: Scope, exact: bool) -> Iterator[tuple[str, str]]:
    """What shows what a scope means, and nothing else."""
    for recipe in ("default", "lexical", "associative"):
        hits = memory.recall(scope, QUESTION, limit=50, recipe=recipe, exact=exact)  # type: ignore[arg-type]
        yield f"recall {recipe}", f"{[(hit.text, hit.source) for hit in hits]} {hits.notes}"
    yield "list", str([item.text for item in memory.list(scope, limit=5000, retired=True, exact=exact).items])
    recent = memory.recent(within=scope, limit=5000, retired=True, exact=exact).items
    yield "recent", str([(item.text, item.scope) for item in recent])
    yield "by_files", str([atom.text for atom in memory.by_files(scope, ["a.py"], exact=exact)])
    for read in (memory.history, memory.get, memory.graph.neighbours):
        try:
            yield read.__name__, str(read(scope, "Bruno" if read == memory.graph.neighbours else "f1", exact=exact))
        except EunoeError as error:
            yield read.__name__, str(error)
    file = io.StringIO()
    memory.admin.export(scope, file, exact=exact)
    yield "export", file.getvalue()


def shared_views(memory: Memory, scope: Scope, words: str) -> Iterator[tuple[str, str]]:
    """What shows a conversation all that it may see. The questions name the secrets of others."""
    for question in (QUESTION, words):
        for format in ("xml", "json"):
            yield f"context {format}", memory.context(scope, question, format=format, sources=True).text  # type: ignore[arg-type]
        yield "look_up", str([hit.text for hit in memory.look_up(scope, question, limit=50)])
    search = tool(memory, scope)
    for arguments in ({"query": QUESTION}, {"query": words}, {"query": words, "memory_types": ["user", "collective"]}):
        yield "tool", search.call({**arguments, "match_count": 10}).replace(words, "")


def look(memory: Memory, scopes: Sequence[Scope], choose: random.Random) -> tuple[int, list[str]]:
    """Read every scope by every verb; return the pairs that were compared, and what was seen that must not be."""
    owners = {secret_of(scope): scope for scope in scopes}
    pairs, faults, streams = 0, list[str](), memory.scopes()
    for scope in scopes:
        words = choose.sample(sorted(owners), min(3, len(owners)))
        for asked, exact in ((scope, False), (scope.everything, False), (scope, True)):
            # The conversations that a stream was formed from are its own.
            meant = [each for each in streams if (each == scope if exact else means(asked, each))]
            allowed = {owner for owner in scopes for each in meant if owner == each or _feeds(owner, each)}
            allowed |= {owner for owner in scopes for each in meant if may_see(each, owner)}
            for name, text in strict_views(memory, asked, exact):
                seen = {owners[word] for word in SECRET.findall(text) if word in owners}
                faults += [f"{name} of {asked} shows {owner}" for owner in seen - allowed]
                if name in ("list", "recent", "export"):
                    faults += [f"{name} of {asked} lacks {owner}" for owner in {*meant} & {*scopes} - seen]
        is_whole = "user" in scope.pairs and "session" not in scope.pairs
        for name, text in shared_views(memory, scope, f"secret {' '.join(words)}"):
            seen = {owners[word] for word in SECRET.findall(text) if word in owners}
            wrong = [owner for owner in seen if owner != scope and not may_see(scope, owner)]
            if is_whole and name in ("look_up", "tool"):
                within = [each for each in streams if means(scope, each)]
                wrong = [owner for owner in wrong if not any(may_see(each, owner) or owner == each for each in within)]
            faults += [f"{name} of {scope} shows {owner}" for owner in wrong]
        pairs += len(scopes) - 1
    return pairs, faults


def _feeds(conversation: Scope, stream: Scope) -> bool:
    """Whether a conversation is formed into a stream: the stream has only keys that the conversation has."""
    return stream.pairs.items() <= conversation.pairs.items()


def run(pairs: int, seed: str) -> dict[str, Any]:
    choose, faults, compared, asked = random.Random(seed), list[str](), 0, Counter[str]()
    while compared < pairs:
        wanted = min(PART, isqrt(pairs - compared) + 2)
        scopes, liar = all_scopes(wanted, choose), Liar()
        llm = ScriptedLlm(liar)
        with eunoe.open(":memory:", embedder=Letters(), llm=llm, fast_llm=llm, form=False) as memory:
            fill(memory, scopes)
            number, found = look(memory, scopes, choose)
        compared, faults, asked = compared + number, faults + found, asked + liar.asked
    return {"pairs": compared, "faults": faults[:50], "asked": asked}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", default="scopes")
    options = parser.parse_args()
    began, total, faults, asked = time.monotonic(), 0, list[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        reports = [Path(folder, str(place)) for place in range(options.processes)]
        children = []
        for place, file in enumerate(reports):

            def report(place: int = place, file: Path = file) -> None:
                file.write_text(json.dumps(run(-(-options.pairs // options.processes), f"{options.seed}-{place}")))

            children.append(forked(report))
        for pid, file in zip(children, reports, strict=True):
            if os.waitpid(pid, 0)[1] or not file.exists():
                faults.append("a process ended without a report")
                continue
            result = json.loads(file.read_text())
            total, faults, asked = total + result["pairs"], faults + result["faults"], asked + Counter(result["asked"])
    seconds = time.monotonic() - began
    print(*faults, sep="\n" if faults else "")
    rate = f"{total:,} pairs in {seconds:,.0f} s ({total / seconds:,.0f} a second)"
    print(f"{rate}, {len(faults)} faults; the model was asked {dict(asked)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
