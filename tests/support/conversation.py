"""A conversation whose proposals are resolved by hand, without an extractor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.support.records import items_of
from tests.support.steps import steps_of

from eunoe.form.chunk import Proposal
from eunoe.form.resolution import Resolver
from eunoe.model.scope import Scope
from eunoe.model.turn import Turn
from eunoe.records.insertion import VectorBatch
from eunoe.store.contract import ItemQuery
from eunoe.store.schema import StreamLink

TALK = Scope(agent="cook", session="s1", user="anna")
ANNA = Scope(agent="cook", user="anna")
DAY = datetime(2024, 5, 1, tzinfo=UTC)
NOW = datetime(2025, 1, 1, tzinfo=UTC)


class Conversation:
    """A memory with a conversation of one message a day, and proposals made from it."""

    def __init__(self, memory, days=30):
        self.memory = memory
        self.store = steps_of(memory)
        messages = [
            {"role": "user", "content": f"message {n}", "id": f"m{n}", "time": DAY + timedelta(days=n)}
            for n in range(days)
        ]
        memory.observe(TALK, messages)
        self.turns = [Turn(f"m{n}", f"message {n}", time=DAY + timedelta(days=n)) for n in range(days)]

    def resolve(self, *proposals, target=ANNA, similar=None, vectors=None):
        with self.store.writing():
            return self.resolver(target, vectors).resolve(proposals, similar or {})

    def resolver(self, target=ANNA, vectors=None):
        stream = self.store.stream(TALK)
        records = self.store.select(ItemQuery(stream.id, ids=[turn.id for turn in self.turns]))
        messages = {record.id: record for record in records}
        owner = self.store.create_stream(target)
        return Resolver(self.store, stream, owner, self.turns, messages, vectors or VectorBatch(), NOW)

    def open_atoms(self, scope=ANNA):
        return {item.text: item for item in self.memory.list(scope, limit=1000).items if not hasattr(item, "role")}

    def record(self, id, scope=ANNA):
        (record,) = items_of(self.store, scope, ids=[id])
        return record

    def links(self):
        with self.store.reading():
            return [(link.source, link.stream) for link in self.store.load(StreamLink)]


def propose(text, *days, kind="fact", **fields):
    return Proposal(0, kind, text, tuple(f"m{day}" for day in days or (0,)), **fields)


def home(city, day, **fields):
    return propose(f"Anna lives in {city}.", day, key="anna/home", **fields)
