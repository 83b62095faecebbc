"""Random keys and random calls: nothing out of reach is ever returned, changed or told of.

A plain model says which scopes a key reaches; the memory of the whole store says what they hold before and after.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import eunoe
from eunoe.errors import AccessError, EunoeError
from eunoe.memory import Memory
from eunoe.model.arguments import KINDS, RIGHTS

Pairs = tuple[tuple[str, str], ...]
PARTS = {"tenant": ("acme", "bolt"), "agent": ("cook",), "user": ("anna", "ben"), "session": ("s1",)}
scopes = st.lists(st.sampled_from(sorted(PARTS)), unique=True, min_size=1).flatmap(
    lambda keys: st.tuples(*(st.tuples(st.just(key), st.sampled_from(PARTS[key])) for key in sorted(keys)))
)
VERBS = {
    "remember": "write",
    "observe": "write",
    "sources": "write",
    "import": "write",
    "form": "write",
    "summary": "write",
    "forget": "forget",
    "recall": "read",
    "list": "read",
    "context": "read",
    "look_up": "read",
    "export": "read",
    "scopes": "read",
    "recent": "read",
    "streams": "read",
    "status": "read",
}
calls = st.tuples(st.sampled_from(sorted(VERBS)), scopes, scopes)


@dataclass(frozen=True)
class Key:
    tenant: str
    scopes: tuple[Pairs, ...]
    rights: frozenset[str]

    def whole(self, scope: Pairs) -> Pairs:
        missing = self.tenant and "tenant" not in dict(scope)
        return tuple(sorted({**dict(scope), "tenant": self.tenant}.items())) if missing else scope

    def reaches(self, scope: Pairs) -> bool:
        own = dict(scope)
        is_own_tenant = not self.tenant or own.get("tenant") == self.tenant
        return is_own_tenant and (
            not self.scopes or any(set(self.whole(each)) <= set(own.items()) for each in self.scopes)
        )


keys = st.builds(
    Key,
    st.sampled_from(("", "acme", "bolt")),
    st.lists(scopes, max_size=2).map(tuple),
    st.frozensets(st.sampled_from(RIGHTS), min_size=1),
)


def words_of(scope: Pairs) -> str:
    """A word for each scope, so that any text tells where it is from."""
    return "zq" + "".join(f"{key}{value}" for key, value in scope)


class World:
    """A whole store, and new texts for it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.numbers = count()

    def text(self, scope: Pairs) -> str:
        return f"The garden of {words_of(scope)} has number {next(self.numbers)}."

    def fill(self, filled: list[Pairs]) -> None:
        for scope in filled:
            text = self.text(scope)
            self.memory.remember(dict(scope), text)
            self.memory.observe(dict(scope), f"I saw it. {text}")

    def contents(self) -> dict[Pairs, set[str]]:
        found = {}
        for scope in self.memory.scopes():
            texts = {item.text for item in self.memory.list(scope, retired=True, limit=1000).items}
            texts |= {revision.text for revision in self.memory.summaries.revisions(scope)}
            found[tuple(scope.pairs.items())] = texts
        return found


def call(memory: Memory, world: World, verb: str, scope: Pairs, other: Pairs) -> Any:
    place, text = dict(scope), world.text(scope)
    match verb:
        case "remember":
            return memory.remember(place, text)
        case "observe":
            return memory.observe(place, text)
        case "sources":
            name = f"@{eunoe.Scope(**dict(other))}#m"
            return memory.remember(place, text, source=[name], source_scopes=[dict(other)])
        case "import":
            line = {"scope": str(eunoe.Scope(**place)), "kind": "fact", "id": text, "text": text}
            return memory.admin.import_([json.dumps(line | {"recorded": "2024-01-01"})])
        case "form":
            return memory.form(place)
        case "summary":
            return memory.summaries.write(place, text)
        case "forget":
            return memory.forget(place, everything=True, verify=True)
        case "recall":
            return memory.recall([place, dict(other)], "garden number")
        case "list":
            return memory.list(place)
        case "context":
            return memory.context(place, "garden number", sources=True, users=["ben"])
        case "look_up":
            return memory.look_up(place, "garden number")
        case "export":
            lines = io.StringIO()
            memory.admin.export(place, lines)
            return lines.getvalue()
        case "scopes":
            return memory.scopes()
        case "recent":
            return memory.recent()
        case "streams":
            return memory.streams.list()
        case _:
            return memory.status()


def told(result: Any) -> str:
    """All that a caller can see of a result."""
    notes = getattr(result, "notes", ())
    items = [hit.item for hit in result] if isinstance(result, eunoe.Hits) else getattr(result, "items", ())
    text = result.text if isinstance(result, eunoe.Context) else ""
    full = [f"{item.text} {item.scope} {getattr(item, 'source', '')}" for item in items]
    return " ".join([repr(result) if not text else "", str(result), text, *map(str, notes), *full])


def is_refused(key: Key, verb: str, scope: Pairs, other: Pairs) -> bool:
    if VERBS[verb] not in key.rights:
        return True
    if verb in ("scopes", "recent", "streams", "status"):
        return False
    named = [scope, other] if verb in ("recall", "sources") else [scope]
    may_name = verb != "sources" or "read" in key.rights
    return not (may_name and all(key.reaches(key.whole(each)) for each in named))


@settings(max_examples=60)
@given(key=keys, filled=st.lists(scopes, min_size=1, max_size=6, unique=True), made=st.lists(calls, max_size=5))
def test_nothing_out_of_reach_is_returned_changed_or_told(
    key: Key, filled: list[Pairs], made: list[tuple[str, Pairs, Pairs]]
) -> None:
    with eunoe.open(":memory:", embedder="none", form=False) as whole:
        world = World(whole)
        world.fill(filled)
        try:
            memory = whole.restricted(key.tenant, [dict(scope) for scope in key.scopes], sorted(key.rights))  # type: ignore[arg-type]
        except AccessError:  # a scope of another tenant
            assert any(dict(scope).get("tenant", key.tenant) != key.tenant for scope in key.scopes)
            return
        for verb, scope, other in made:
            before = world.contents()
            foreign = [each for each in before if not key.reaches(each)]
            named = {str(eunoe.Scope(**dict(each))) for each in (scope, other, key.whole(scope), key.whole(other))}
            try:
                answer = told(call(memory, world, verb, scope, other))
                assert not is_refused(key, verb, scope, other)
            except AccessError as error:
                assert is_refused(key, verb, scope, other)
                assert world.contents() == before
                answer = str(error)
            except EunoeError as error:
                answer = str(error)
            assert not [each for each in foreign if f" {words_of(each)} " in answer], (verb, answer)
            told_of = scopes_in(answer) - named
            assert told_of.isdisjoint(str(eunoe.Scope(**dict(each))) for each in foreign), (verb, answer)
            after = world.contents()
            if verb != "form":  # a conversation feeds streams that its speaker does not read
                assert {each: after.get(each) for each in foreign} == {each: before[each] for each in foreign}
                assert all(key.reaches(each) for each in after.keys() - before.keys())
            if "read" in key.rights:
                check_status(whole, memory, key)


def scopes_in(answer: str) -> set[str]:
    """The scopes that an answer names, as text or as Python shows them."""
    shown = (re.findall(r"(\w+)='(\w+)'", each) for each in re.findall(r"Scope\(([^)]*)\)", answer))
    return {str(eunoe.Scope(**dict(pairs))) for pairs in shown} | set(re.findall(r"[a-z]+=\w+(?:/[a-z]+=\w+)*", answer))


def check_status(whole: Memory, memory: Memory, key: Key) -> None:
    status, counts = memory.status(), Counter[str]()
    for scope in whole.scopes():
        if key.reaches(tuple(scope.pairs.items())):
            counts.update(item.kind for item in whole.list(scope, limit=1000).items)
    assert (status.messages, status.facts, status.observations) == tuple(counts[kind] for kind in KINDS)
    assert (status.target == "") == bool(key.tenant or key.scopes)
