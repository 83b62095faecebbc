"""A user's scope means everything of that user to verbs that read or forget; any other scope means itself alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

import eunoe
from eunoe.errors import AccessError, ConflictError, EunoeError, NotFoundError, ScopeError
from eunoe.memory import Memory

SCOPES = {
    name: eunoe.Scope.parse(name)
    for name in (
        *("user=anna", "session=monday/user=anna", "agent=cook/user=anna", "agent=cook/session=s1/user=anna"),
        *("agent=therapist/user=anna", "agent=cook", "agent=cook/user=ben", "project=x", "project=x/user=anna"),
        *("tenant=acme/user=anna", "agent=cook/tenant=acme", "agent=cook/session=s1/tenant=acme/user=anna"),
    )
}
ASKED = {
    "user=anna": [name for name in SCOPES if "user=anna" in name and "tenant" not in name],
    "user=anna/*": [name for name in SCOPES if "user=anna" in name and "tenant" not in name],
    "agent=cook/user=anna": ["agent=cook/user=anna", "agent=cook/session=s1/user=anna"],
    "session=monday/user=anna": ["session=monday/user=anna"],
    "agent=cook": ["agent=cook"],
    "agent=cook/*": [name for name in SCOPES if "agent=cook" in name and "tenant" not in name],
    "project=x": ["project=x"],
    "project=x/*": ["project=x", "project=x/user=anna"],
    "tenant=acme/user=anna": ["tenant=acme/user=anna", "agent=cook/session=s1/tenant=acme/user=anna"],
    "tenant=acme": [],
    "tenant=acme/*": [name for name in SCOPES if "tenant=acme" in name],
}


@pytest.fixture
def filled(memory: Memory) -> Memory:
    for name in SCOPES:
        memory.observe(name, {"content": f"Bruno the dog barks at {name}.", "id": f"m {name}"})
        memory.remember(name, f"Bruno belongs to {name}.", id=f"f {name}", files=["dog.md"])
    return memory


def exported(memory: Memory, scope: str, **how: bool) -> set[str]:
    file = io.StringIO()
    memory.admin.export(scope, file, **how)
    return {line["scope"] for line in map(json.loads, file.getvalue().splitlines()) if line.get("id")}


def scopes_of(items: Any) -> set[str]:
    return {str(item.scope) for item in items}


READS: dict[str, Callable[..., set[str]]] = {
    "recall": lambda memory, scope, **how: scopes_of(memory.recall(scope, "Bruno", limit=99, **how)),
    "list": lambda memory, scope, **how: scopes_of(memory.list(scope, **how).items),
    "recent": lambda memory, scope, **how: scopes_of(memory.recent(within=scope, **how).items),
    "by_files": lambda memory, scope, **how: scopes_of(memory.by_files(scope, ["dog.md"], **how)),
    "export": exported,
}


@pytest.mark.remote
@pytest.mark.parametrize("verb", READS)
@pytest.mark.parametrize("asked", ASKED)
def test_a_scope_means_what_it_says(filled: Memory, verb: str, asked: str) -> None:
    read = READS[verb]
    if ASKED[asked] or verb != "export":
        assert read(filled, asked) == set(ASKED[asked])
    if asked.endswith("/*"):
        with pytest.raises(EunoeError, match="leave out"):
            read(filled, asked, exact=True)
    elif asked in SCOPES:
        assert read(filled, asked, exact=True) == {asked}


@pytest.mark.parametrize("asked", ["user=anna", "agent=cook/user=anna", "agent=cook/*", "agent=cook", "tenant=acme/*"])
def test_forgetting_reaches_as_far_as_reading(filled: Memory, asked: str) -> None:
    report = filled.forget(asked, everything=True, verify=True)
    assert report.verified
    assert set(map(str, report.scopes)) == set(ASKED[asked])
    assert {str(item.scope) for item in filled.recent(limit=99).items} == set(SCOPES) - set(ASKED[asked])


def test_forgetting_exactly_leaves_what_is_within(filled: Memory) -> None:
    filled.forget("user=anna", everything=True, exact=True)
    assert {str(item.scope) for item in filled.list("user=anna").items} == {*ASKED["user=anna"]} - {"user=anna"}


@pytest.mark.remote
def test_an_id_is_found_where_it_is(filled: Memory) -> None:
    far = "f agent=cook/session=s1/user=anna"
    assert str(filled.get("user=anna", far).scope) == "agent=cook/session=s1/user=anna"
    assert [item.id for item in filled.get_many("user=anna", ["f user=anna", "none", far])] == ["f user=anna", far]
    assert filled.history("user=anna", far)[0].id == far
    for scope, exact in (("user=anna", True), ("agent=therapist/user=anna", False), ("agent=cook", False)):
        with pytest.raises(NotFoundError):
            filled.get(scope, far, exact=exact)
    with pytest.raises(NotFoundError, match="agent=cook/session=s1/user=anna has it: name that scope"):
        filled.pin("user=anna", far)
    assert filled.forget("user=anna", far).atoms == (far,)


@pytest.mark.remote
def test_an_id_that_several_scopes_have_is_not_guessed(memory: Memory) -> None:
    for session in "ab":
        memory.remember(f"session={session}/user=anna", f"Session {session}.", id="note")
    for verb in (memory.get, memory.history, memory.forget):
        with pytest.raises(ConflictError, match="session=a/user=anna and session=b/user=anna"):
            verb("user=anna", "note")
    memory.remember("user=anna", "Her own.", id="note")
    assert memory.get("user=anna", "note").text == "Her own."
    assert memory.forget("user=anna", "note").total == 1


def test_what_a_conversation_and_its_user_keep_alike_is_recalled_once(memory: Memory) -> None:
    for scope in ("user=anna", "session=s1/user=anna", "session=s2/user=anna"):
        memory.remember(scope, "Anna likes tea.")
    assert [hit.text for hit in memory.recall("user=anna", "tea")] == ["Anna likes tea."]
    assert len(memory.list("user=anna").items) == 3


def test_turns_of_two_sessions_are_no_neighbours(memory: Memory) -> None:
    """What one agent's session says before an answer lends nothing to the session of another agent with its name."""
    for place in range(20):
        for agent in "ab":
            memory.observe(f"agent={agent}/session=s/user=anna", f"Agent {agent} says word{place} number {place}.")
    alone = memory.recall("agent=a/session=s/user=anna", "word7", limit=3)
    together = [hit for hit in memory.recall("user=anna", "word7", limit=6) if "agent=a/" in str(hit.scope)]
    assert [hit.text for hit in together][:1] == [hit.text for hit in alone][:1]
    index = memory._engine.indexes
    [held] = index.read([eunoe.Scope.parse("user=anna/*")], lambda _, held: held)
    layout, owner = held.index.layout, held.index.columns["stream"]
    rows = [row for row in range(held.index.rows) if layout.before[row] >= 0]
    assert len(rows) == 38
    assert all(owner[row] == owner[layout.before[row]] for row in rows)


@pytest.mark.remote
def test_what_is_written_or_changed_elsewhere_is_read_at_once(memory: Memory) -> None:
    for session in range(3):
        memory.observe(f"session={session}/user=anna", f"Bruno was at place{session}.")
    assert len(memory.recall("user=anna", "Bruno")) == 3
    kept = memory.remember("agent=cook/user=anna", "Bruno eats fish.")
    assert "Bruno eats fish." in [hit.text for hit in memory.recall("user=anna", "Bruno fish")]
    memory.update("agent=cook/user=anna", kept.id, "Bruno eats meat.")
    texts = [hit.text for hit in memory.recall("user=anna", "What does Bruno eat?")]
    assert ("Bruno eats meat." in texts, "Bruno eats fish." in texts) == (True, False)
    memory.forget("session=1/user=anna", everything=True)
    assert not any("place1" in hit.text for hit in memory.recall("user=anna", "Bruno place1"))


WRITES: dict[str, Callable[[Memory, str], object]] = {
    "observe": lambda memory, scope: memory.observe(scope, "Hello."),
    "remember": lambda memory, scope: memory.remember(scope, "A fact."),
    "remember_many": lambda memory, scope: memory.remember_many(scope, ["A fact."]),
    "update": lambda memory, scope: memory.update(scope, "f", "Another."),
    "expire": lambda memory, scope: memory.expire(scope, "f", None),
    "retract": lambda memory, scope: memory.retract(scope, "m"),
    "pin": lambda memory, scope: memory.pin(scope, "f"),
    "form": lambda memory, scope: memory.form(scope),
    "context": lambda memory, scope: memory.context(scope, "Hello"),
    "look_up": lambda memory, scope: memory.look_up(scope, "Hello"),
    "configure": lambda memory, scope: memory.streams.configure(scope, keep_best=3),
    "write": lambda memory, scope: memory.summaries.write(scope, "A summary."),
}


@pytest.mark.remote
@pytest.mark.parametrize("verb", WRITES)
def test_writing_names_one_scope(memory: Memory, verb: str) -> None:
    with pytest.raises(ScopeError, match="leave out '/\\*'"):
        WRITES[verb](memory, "agent=cook/*")
    assert memory.scopes() == []


def test_everything_within_takes_the_right_admin(filled: Memory) -> None:
    for tenant, scopes in (("acme", ()), ("", ("agent=cook",)), ("", ("agent=cook/*",))):
        reader = filled.restricted(tenant, scopes, ["read", "forget"])
        admin = filled.restricted(tenant, scopes, ["read", "forget", "admin"])
        for verb in READS.values():
            with pytest.raises(AccessError, match="admin"):
                verb(reader, "agent=cook/*")
            assert verb(admin, "agent=cook/*")
            assert verb(reader, "agent=cook/user=anna/*" if not tenant else "user=anna/*")
        with pytest.raises(AccessError, match="admin"):
            reader.forget("agent=cook/*", everything=True)


@pytest.mark.remote
def test_a_question_about_a_user_looks_into_all_that_is_theirs(memory: Memory) -> None:
    memory.observe("agent=cook/session=s1/user=anna", "My sister lives in Turin.")
    memory.observe("agent=therapist/session=s2/user=anna", "My sister lives in fear of spiders.")
    memory.observe("session=s3/user=ben", "My sister lives in Oslo.")
    question = "Where does my sister live?"
    assert {hit.text[-9:] for hit in memory.look_up("user=anna", question)} == {"in Turin.", " spiders."}
    assert {hit.text[-9:] for hit in memory.look_up("agent=cook/user=anna", question)} == {"in Turin."}
    assert memory.look_up("user=anna", question, exact=True) == []
    assert memory.look_up("user=anna", question, users=["ben"]) == []
    assert "spiders" not in memory.context("agent=cook/session=s4/user=anna", question).text


def test_what_its_user_closed_is_not_told_by_a_session(memory: Memory) -> None:
    for scope in ("session=s1/user=anna", "user=anna"):
        memory.remember(scope, "Anna lives in Paris.")
    before = eunoe.model.arguments.utc_now()
    (kept,) = memory.list("user=anna", exact=True).items
    memory.update("user=anna", kept.id, "Anna lives in Rome.")
    question = "Where does Anna live?"
    assert [hit.text for hit in memory.recall("user=anna", question)] == ["Anna lives in Rome."]
    assert [item.text for item in memory.list("user=anna").items] == ["Anna lives in Rome."]
    assert [hit.text for hit in memory.recall("user=anna", question, known_at=before)] == ["Anna lives in Paris."]
    assert [hit.text for hit in memory.recall("session=s1/user=anna", question)] == ["Anna lives in Paris."]
    memory.remember("session=s2/user=anna", "Anna lives in Paris.")  # she moved back
    assert len(memory.list("user=anna").items) == 2
    assert len(memory.recall("user=anna", question)) == 2
