"""Moving in from Eden: made-up exports of its three collections, in every shape MongoDB's tools write."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict

import pytest

import eunoe
from eunoe.errors import InputError
from eunoe.hosts.eden import ImportCounts, MemoryBackend, migrate, search_facts
from eunoe.model.arguments import parse_time

AGENT = "675f880479e00297cd9b4688"
ANNA = "65284b18f8bbb9bff13ebe65"
BEN = "65284b18f8bbb9bff13ebe66"
SESSION = "6943f8a1c0ffee0000000001"
USER_SCOPE = f"agent={AGENT}/user={ANNA}"
SHARD_SCOPE = f"agent={AGENT}/shard=festival"
TALK_SCOPE = f"agent={AGENT}/session={SESSION}"


def oid(value):
    return {"$oid": value}


def number(place):
    """An id whose first bytes are the moment it was made, as MongoDB makes them."""
    return f"6943f8a2{place:016x}"


def session_memory(place, kind, content, **changes):
    return {
        "_id": oid(number(place)),
        "agent_id": oid(AGENT),
        "source_session_id": oid(SESSION),
        "memory_type": kind,
        "content": content,
        "source_message_ids": [oid(number(900 + place)), oid(number(950 + place))],
        "related_users": [oid(ANNA)],
        "shard_id": oid(number(300)) if kind in ("fact", "suggestion") else None,
        "agent_owner": oid(BEN),
        "createdAt": {"$date": "2025-12-18T10:00:00.000Z"},
        **changes,
    }


SESSIONS = [
    session_memory(1, "directive", "Always answer Anna in Italian."),
    session_memory(
        2, "directive", "Anna prefers short replies.", createdAt={"$date": {"$numberLong": "1766052000000"}}
    ),
    session_memory(3, "fact", "The festival opens on 12 June 2026.", createdAt={"$date": 1766052000000}),
    session_memory(4, "fact", "Verdelis plays on the main stage.", related_users=[oid(ANNA), oid(BEN)]),
    session_memory(5, "suggestion", "The food trucks should stand near the river."),
    session_memory(6, "episode", "Anna asked about the programme."),
    session_memory(7, "directive", "Taken in by the summary long ago."),
    session_memory(8, "fact", "Fell out of the window of facts."),
    session_memory(9, "suggestion", "Taken in as well."),
]
USER = {
    "_id": oid(number(200)),
    "agent_id": oid(AGENT),
    "user_id": oid(ANNA),
    "content": "Anna runs the festival. Braces {stay} & so does <markup>.",
    "unabsorbed_memory_ids": [oid(number(1)), oid(number(2)), oid(number(77))],
    "fully_formed_memory": "derived, and not taken over",
    "last_updated_at": {"$date": "2025-12-18T11:00:00Z"},
}
SHARD = {
    "_id": oid(number(300)),
    "agent_id": oid(AGENT),
    "shard_name": "festival",
    "extraction_prompt": "Everything about the festival: {dates}, people, places.",
    "is_active": True,
    "content": "The festival takes place in Turin.",
    "unabsorbed_memory_ids": [oid(number(5)), oid(number(6))],
    "facts": [oid(number(3)), oid(number(4)), oid(number(3)), oid(number(88))],
    "fully_formed_memory": None,
    "last_updated_at": {"$date": {"$numberLong": "1766055600000"}},
    "max_facts_per_shard": {"$numberInt": "60"},
    "max_agent_memories_before_consolidation": 12,
}


def write(folder, name, documents, shape):
    if shape == "array":
        text = json.dumps(documents)
    elif shape == "pretty":
        text = json.dumps(documents, indent=2, ensure_ascii=False)
    else:
        text = "\n".join(map(json.dumps, documents)) + "\n"
    path = folder / f"{name}.{'jsonl' if shape == 'lines' else 'json'}"
    path.write_text(text, encoding="utf-8")
    return path


def exports(folder, shape):
    parts = {"memory_user": [USER], "memory_agent": [SHARD], "memory_sessions": SESSIONS}
    return [write(folder, name, documents, shape) for name, documents in parts.items()]


@pytest.fixture
def files(tmp_path):
    return exports(tmp_path, "lines")


@pytest.fixture
def memory(path):
    with eunoe.open(path, embedder="none", llm=None, form=False) as memory:
        yield memory


def documents(tmp_path, *values, name="export"):
    return write(tmp_path, name, list(values), "lines")


def state(memory):
    """All there is, versions of streams included."""
    scopes = memory.scopes()
    items = [memory.list(scope, limit=1000, retired=True).items for scope in scopes]
    return scopes, items, memory.streams.list(), [memory.summaries.revisions(scope) for scope in scopes]


@pytest.mark.parametrize("shape", ["array", "pretty", "lines"])
def test_everything_comes_and_the_report_says_so(memory, tmp_path, shape):
    report = migrate(memory, *exports(tmp_path, shape))
    assert report.documents == 11
    assert report.settings == ImportCounts(stored=1)
    assert report.summaries == ImportCounts(stored=2)
    assert report.facts == ImportCounts(stored=2)
    assert report.observations == ImportCounts(stored=3)
    assert (report.episodes, report.absorbed, report.unlisted) == (1, 2, 1)
    assert report.missing == (f"{USER_SCOPE}: {number(77)}", f"{SHARD_SCOPE}: {number(88)}")
    assert report.problems == ()
    assert json.loads(json.dumps(asdict(report)))["facts"] == {
        "stored": 2,
        "known": 0,
        "forgotten": 0,
        "conflicts": 0,
    }


def test_summaries_become_the_first_revision(memory, files):
    migrate(memory, *files)
    (revision,) = memory.summaries.revisions(USER_SCOPE)
    assert (revision.number, revision.author, revision.current) == (1, "eden", True)
    assert revision.text == USER["content"]
    assert revision.recorded == parse_time("2025-12-18T11:00:00Z")
    assert memory.summaries.revisions(SHARD_SCOPE)[0].text == SHARD["content"]


def test_a_shard_keeps_its_settings(memory, files):
    migrate(memory, *files)
    (stream,) = memory.streams.list(shard="festival")
    assert stream.preset == "agent"
    assert stream.settings.extraction_prompt == SHARD["extraction_prompt"]
    assert (stream.settings.fact_buffer_max, stream.settings.consolidation_trigger) == (60, 12)
    assert (stream.facts, stream.observations, stream.settings.is_active) == (2, 1, True)


def test_atoms_keep_their_ids_times_people_and_sources(memory, files):
    migrate(memory, *files)
    fact = memory.get(SHARD_SCOPE, number(4))
    assert (fact.kind, fact.text, fact.people) == ("fact", "Verdelis plays on the main stage.", (ANNA, BEN))
    assert fact.source == (f"@{TALK_SCOPE}#{number(904)}", f"@{TALK_SCOPE}#{number(954)}")
    for id in (number(1), number(2)):
        item = memory.get(USER_SCOPE, id)
        assert (item.kind, item.time) == ("observation", parse_time("2025-12-18T10:00:00Z"))
    assert memory.get(SHARD_SCOPE, number(3)).time == parse_time("2025-12-18T10:00:00Z")


def test_run_twice_it_changes_nothing(memory, files):
    migrate(memory, *files)
    before = state(memory)
    report = migrate(memory, *files)
    assert state(memory) == before
    assert (report.settings, report.summaries) == (ImportCounts(known=1), ImportCounts(known=2))
    assert (report.facts, report.observations) == (ImportCounts(known=2), ImportCounts(known=3))


def test_what_was_forgotten_here_stays_forgotten(memory, files):
    migrate(memory, *files)
    memory.forget(SHARD_SCOPE, number(3))
    memory.forget(USER_SCOPE, everything=True)
    report = migrate(memory, *files)
    assert report.facts == ImportCounts(known=1, forgotten=1)
    assert report.observations == ImportCounts(known=1, forgotten=2)
    assert report.summaries == ImportCounts(known=1, forgotten=1)
    assert memory.summaries.revisions(USER_SCOPE) == []


def test_what_was_changed_here_stays_changed(memory, files):
    migrate(memory, *files)
    memory.streams.configure(SHARD_SCOPE, consolidation_trigger=5)
    memory.update(SHARD_SCOPE, number(3), "The festival opens on 13 June 2026.")
    memory.summaries.write(USER_SCOPE, "Anna runs two festivals.")
    before = state(memory)
    report = migrate(memory, *files)
    assert state(memory) == before
    assert report.settings == ImportCounts(conflicts=1)
    assert report.facts == ImportCounts(known=2)


def test_forgetting_a_message_that_came_later_takes_its_atoms(memory, files):
    migrate(memory, *files)
    memory.observe(TALK_SCOPE, [{"id": number(903), "content": "It opens on the 12th of June."}])
    memory.forget(TALK_SCOPE, number(903))
    assert number(3) not in [item.id for item in memory.list(SHARD_SCOPE).items]


def test_plain_ids_and_times_do_as_well(memory, tmp_path):
    user = {"_id": 5, "agent_id": "cook", "user_id": "anna", "unabsorbed_memory_ids": ["m1", "m2", "m3"]}
    sessions = [
        {"_id": "m1", "memory_type": "directive", "content": "One.", "formed_at": "2025-01-02T03:04:05"},
        {"_id": "m2", "memory_type": "directive", "content": "Two.", "created_at": "2025-01-02T03:04:05+02:00"},
        {"_id": "m3", "memory_type": "directive", "content": "Three.", "created_at": "last week"},
    ]
    report = migrate(memory, documents(tmp_path, user, *sessions))
    assert report.observations == ImportCounts(stored=3)
    times = [item.time for item in memory.list("agent=cook/user=anna").items]
    assert times == [parse_time("2025-01-02T03:04:05Z"), parse_time("2025-01-02T01:04:05Z"), None]


def test_without_a_time_the_id_tells_it(memory, tmp_path):
    user = {**USER, "unabsorbed_memory_ids": [oid(number(1))]}
    migrate(memory, documents(tmp_path, user, {**SESSIONS[0], "createdAt": None}))
    assert memory.get(USER_SCOPE, number(1)).time == parse_time(int("6943f8a2", 16))


def test_a_memory_of_another_agent_is_not_taken_in(memory, tmp_path):
    stranger = session_memory(1, "directive", "Somebody else's secret.", agent_id=oid("0" * 24))
    user = {**USER, "unabsorbed_memory_ids": [oid(number(1))]}
    report = migrate(memory, documents(tmp_path, user, stranger))
    assert report.observations == ImportCounts()
    assert "belongs to agent" in report.problems[0]
    assert memory.list(USER_SCOPE).items == ()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"_id": "x", "agent_id": ', "not JSON"),
        ('{"_id": ' + "[" * 200_000, "nested too deep"),
        ("7", "JSON object"),
        (json.dumps({"agent_id": "a", "user_id": "u"}), "_id is missing"),
        (json.dumps({"_id": "x", "something": "else"}), "no document of"),
        (json.dumps({**USER, "user_id": None}), "user_id"),
        (json.dumps({**USER, "agent_id": {"$oid": {"$oid": "x"}}}), "agent_id"),
        (json.dumps({**USER, "content": 5}), "text"),
        (json.dumps({**USER, "unabsorbed_memory_ids": "x"}), "no list"),
        (json.dumps({**USER, "unabsorbed_memory_ids": [None]}), "names nothing"),
        (json.dumps({**USER, "unabsorbed_memory_ids": [oid("m-bad")]}), "content is missing"),
        (json.dumps({**SHARD, "max_facts_per_shard": -1}), "max_facts_per_shard is left out"),
        (json.dumps({**SHARD, "max_facts_per_shard": {"$numberInt": "many"}}), "max_facts_per_shard is left out"),
        (
            json.dumps({"_id": "x", "agent_id": "a", "hash": "h", "scope": ["user"], "content": "c"}),
            "scope is ['user']",
        ),
        (json.dumps({"_id": "x", "memory_type": "dream", "content": "c"}), "'dream'"),
        (json.dumps({**USER, "last_updated_at": "yesterday"}), "last_updated_at is left out: 'yesterday' is no time"),
        (json.dumps({**USER, "last_updated_at": None, "createdAt": {"$date": "soon"}}), "createdAt is left out"),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_a_document_that_makes_no_sense_is_named_and_the_rest_comes(memory, tmp_path, bad, reason):
    good = [{"_id": "1", "agent_id": "cook", "user_id": name, "content": f"About {name}."} for name in ("anna", "ben")]
    broken = {"_id": "m-bad", "agent_id": AGENT, "memory_type": "directive"}
    path = tmp_path / "export.jsonl"
    path.write_text("\n".join([json.dumps(good[0]), bad, json.dumps(good[1]), json.dumps(broken)]))
    report = migrate(memory, path)
    assert report.summaries.stored >= 2
    assert [memory.summaries.revisions(f"agent=cook/user={name}")[0].text for name in ("anna", "ben")] == [
        "About anna.",
        "About ben.",
    ]
    assert any(reason in problem for problem in report.problems), report.problems
    assert all(problem.startswith("export.jsonl:") and "\n" not in problem for problem in report.problems)
    assert report.problems[0].startswith(("export.jsonl:2: ", "export.jsonl:4: "))
    before = state(memory)
    migrate(memory, path)
    assert state(memory) == before


def test_a_file_that_cannot_be_read_is_named_and_nothing_happens(memory, tmp_path):
    good = write(tmp_path, "memory_user", [USER], "lines")
    (tmp_path / "wide.json").write_bytes("[]".encode("utf-16"))
    with pytest.raises(InputError, match="cannot read"):
        migrate(memory, good, tmp_path / "nothing.json")
    with pytest.raises(InputError, match="not UTF-8"):
        migrate(memory, good, tmp_path / "wide.json")
    with pytest.raises(InputError, match="name the exported files"):
        migrate(memory)
    assert memory.scopes() == []


def of_memory2(place, scope, content, **changes):
    ids = {"agent_id": oid(AGENT), "user_id": oid(ANNA) if scope != "agent" else None, "session_id": oid(SESSION)}
    return {"_id": oid(number(place)), "scope": scope, "content": content, **ids, **changes}


def waiting(place, scope, content, **changes):
    return of_memory2(place, scope, content, absorbed=False, **changes)


MEMORY2 = {
    "memory2_facts": [
        of_memory2(
            401,
            "user",
            "Anna lives in Turin.",
            hash="a1",
            embedding=[0.1],
            version=2,
            formed_at={"$date": "2026-01-20T10:00:00Z"},
            source_message_ids=[oid(number(901))],
        ),
        of_memory2(402, "agent", "The kiln holds forty cups.", hash="a2"),
    ],
    "memory2_reflections": [
        waiting(411, "user", "Anna likes short replies."),
        waiting(412, "session", "They are planning the menu."),
        waiting(413, "agent", "Users ask for the opening hours first."),
        of_memory2(414, "user", "Taken in long ago.", absorbed=True),
        of_memory2(415, "user", "Marked as taken in, but still listed.", absorbed=True),
    ],
    "memory2_consolidated": [
        of_memory2(421, "user", None, consolidated_content="Anna runs the show.", unabsorbed_ids=[oid(number(415))]),
        of_memory2(
            422,
            "agent",
            None,
            consolidated_content="The agent sells cups.",
            word_limit=2000,
            unabsorbed_ids=[oid(number(413)), oid(number(499))],
        ),
        of_memory2(423, "session", None, consolidated_content="A talk about lunch.", unabsorbed_ids=[]),
    ],
}


@pytest.mark.parametrize("has_names", [True, False])
def test_the_collections_of_memory2_become_what_they_are(tmp_path, has_names):
    documents = [(name, document) for name, own in MEMORY2.items() for document in own]
    files = []
    for place, (name, document) in enumerate(documents):
        files.append(tmp_path / f"{name if has_names else 'dump'}_{place}.json")
        files[-1].write_text(json.dumps(document))
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        report = migrate(memory, *files)
        assert (report.summaries.stored, report.facts.stored, report.observations.stored) == (3, 2, 4)
        assert (report.absorbed, report.problems) == (1, ())
        assert report.missing == (f"agent={AGENT}/shard=agent: {number(499)}",)
        held = {
            str(scope): sorted(item.text for item in memory.list(scope, exact=True).items) for scope in memory.scopes()
        }
        assert held == {
            f"agent={AGENT}/shard=agent": ["The kiln holds forty cups.", "Users ask for the opening hours first."],
            USER_SCOPE: [
                "Anna likes short replies.",
                "Anna lives in Turin.",
                "Marked as taken in, but still listed.",
            ],
            f"agent={AGENT}/session={SESSION}/user={ANNA}": ["They are planning the menu."],
        }
        (fact,) = memory.get_many(USER_SCOPE, [number(401)])
        assert fact.time == parse_time("2026-01-20T10:00:00Z")
        context = memory.context(f"agent={AGENT}/session=new/user={ANNA}")
        for text in ("Anna runs the show.", "The agent sells cups.", "The kiln holds forty cups."):
            assert text in context.text
        assert migrate(memory, *files).facts.known == 2


class EdenSession:
    """A session as the platform has it."""

    def __init__(self, id, *users, incognito=False):
        self.id, self.users, self.messages = id, [{"_id": user} for user in users], []
        self.extras = type("Extras", (), {"incognito": incognito})()

    def say(self, content, role="user", sender=None):
        self.messages.append({"id": f"{self.id}-{len(self.messages)}", "role": role, "content": content})
        if sender:
            self.messages[-1]["sender"] = sender
        return self


def test_a_session_is_kept_and_stands_in_the_users_next_one(memory):
    backend = MemoryBackend(memory)

    async def live():
        monday = EdenSession("s1", ANNA).say("I am allergic to peanuts.").say("Noted.", role="eden")
        assert not await backend.maybe_form_memories(AGENT, monday)  # too little was said
        assert await backend.form_memories(AGENT, monday)
        assert not await backend.form_memories(AGENT, monday)  # nothing is new
        tuesday = EdenSession("s2", ANNA).say("What must I not cook with?")
        return (
            await backend.assemble_memory_context(tuesday, {"id": AGENT}, {"id": ANNA}),
            await backend.assemble_memory_context(EdenSession("s3", ANNA, BEN), AGENT, ANNA),
            await backend.assemble_memory_context(EdenSession("s4", BEN), AGENT, BEN),
        )

    own, shared, other = asyncio.run(live())
    assert "allergic to peanuts" in own
    assert "peanuts" not in shared + other


def test_an_agent_learns_from_all_its_users_if_eden_says_so(memory):
    backend, session = MemoryBackend(memory), EdenSession("s1", ANNA).say("The kiln opens at nine.")
    asyncio.run(backend.form_memories(AGENT, session))
    assert memory.streams.list(agent=AGENT, shard="agent") == []
    for enabled in (True, False):
        asyncio.run(backend.form_memories(AGENT, session, {"agent_memory_enabled": enabled}))
        (shard,) = memory.streams.list(agent=AGENT, shard="agent")
        assert shard.settings.is_active is enabled


def test_nothing_is_kept_of_an_incognito_session(memory):
    backend, session = MemoryBackend(memory), EdenSession("s1", ANNA, incognito=True).say("I am allergic to peanuts.")

    async def live():
        assert not await backend.maybe_form_memories(AGENT, session)
        assert not await backend.form_memories(AGENT, session)
        return await backend.assemble_memory_context(session, AGENT, ANNA)

    assert asyncio.run(live()) == ""
    assert memory.scopes() == []


def test_an_agent_may_have_no_memory_of_its_users(memory):
    backend, agent = MemoryBackend(memory), {"_id": AGENT, "user_memory_enabled": False}
    memory.remember(USER_SCOPE, "Anna is allergic to peanuts.")

    async def live():
        session = EdenSession("s1", ANNA).say("I live in Turin.")
        assert await backend.form_memories(AGENT, session, agent)
        return await backend.assemble_memory_context(EdenSession("s2", ANNA), agent, {"_id": ANNA})

    assert asyncio.run(live()) == ""
    assert {scope.get("user") for scope in memory.scopes() if "session" in scope} == {None}


@pytest.mark.parametrize("session", [None, {"messages": []}, {"id": None}, EdenSession(None, ANNA)])
def test_a_session_without_an_id_is_refused(memory, session):
    with pytest.raises(InputError, match="session has no id"):
        asyncio.run(MemoryBackend(memory).form_memories(AGENT, session))
    assert memory.scopes() == []


def test_facts_are_found_for_their_own_user_and_of_the_agent(memory):
    memory.remember(f"agent={AGENT}/shard=agent", "The kiln holds forty cups.")
    memory.remember(USER_SCOPE, "Anna's kiln is electric.")
    memory.remember(f"agent={AGENT}/user={BEN}", "Ben's kiln burns gas.")

    def found(*arguments, **options):
        facts = asyncio.run(search_facts("kiln", AGENT, *arguments, memory=memory, **options))
        return {(fact["content"], fact["scope"]) for fact in facts}

    own, shared = ("Anna's kiln is electric.", "user"), ("The kiln holds forty cups.", "agent")
    assert found(ANNA) == found(ANNA, search_type="text") == {own, shared}
    assert found() == found(ANNA, ["agent"]) == {shared}
    assert found(None, ["user"]) == set()
    with pytest.raises(InputError, match="search_type"):
        found(ANNA, search_type="fuzzy")
