"""Export and import of what stands beside the memories: settings, jobs, summaries, access counts, links."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import InputError
from eunoe.model.arguments import utc_now
from eunoe.model.atom import unique_supports
from eunoe.records.log import load_session
from eunoe.records.revisions import load_summary, unabsorbed
from eunoe.store.contract import ItemQuery
from eunoe.store.schema import (
    Absorption,
    AccessCount,
    Job,
    RevisionRecord,
    SessionState,
    SettingsRecord,
    StreamLink,
    SummaryState,
)

ANNA = "agent=cook/user=anna"
TALK = "agent=cook/session=s1/user=anna"
GROUP = "agent=cook/session=s2"
SHARD = "agent=cook/shard=recipes"
NOW = utc_now()


@pytest.fixture
def other(tmp_path):
    with eunoe.open(tmp_path / "other.db", embedder="none", llm=None, form=False) as memory:
        yield memory


@pytest.fixture
def memory(path):
    with eunoe.open(path, embedder="none", llm=None, form=False) as memory:
        yield memory


def store_of(memory):
    return steps_of(memory)


def lines_of(memory, *scopes):
    out = io.StringIO()
    memory.admin.export(list(scopes) or memory.scopes(), out)
    return out.getvalue().splitlines()


def stream_of(memory, scope):
    return store_of(memory).stream(eunoe.Scope.of(scope))


def say(memory, scope, count, start=0):
    texts = [f"message {number} of {scope}" for number in range(start, start + count)]
    memory.observe(scope, [{"content": text, "id": f"{scope} {place}"} for place, text in enumerate(texts, start)])


def numbers(memory, scope):
    store = store_of(memory)
    with store.reading():
        records = store.select(ItemQuery(stream_of(memory, scope).id, kinds=("message",)))
        return {record.id: record.seq for record in records}


def pass_over(memory, scope, *formed):
    """Take the messages at these places as formed, and make jobs of the others before the last of them."""
    store = store_of(memory)
    seqs = list(numbers(memory, scope).values())
    with store.writing():
        stream = stream_of(memory, scope)
        session = load_session(store, stream) or SessionState(stream.id)
        last = max(formed)
        before = [0, *seqs]
        due = [place for place in range(last) if place not in formed]
        store.drop(Job, stream=stream.id)
        store.save([Job(stream.id, before[place], seqs[place]) for place in due])
        left = len(seqs) - last - 1
        store.save([session._replace(cursor=seqs[last], messages=left, weight=float(left))])


def due(memory, scope):
    """Ids of the messages that are still to be formed."""
    store = store_of(memory)
    seqs = numbers(memory, scope)
    with store.reading():
        stream = stream_of(memory, scope)
        session = load_session(store, stream) or SessionState(stream.id)
        jobs = store.load(Job, stream=stream.id)
    return {id for id, seq in seqs.items() if seq > session.cursor or any(job.start < seq <= job.stop for job in jobs)}


def revise(memory, scope, *absorbed, current=None):
    """One revision for each list of ids, each written from the one before."""
    store = store_of(memory)
    with store.writing():
        stream = store.create_stream(eunoe.Scope.of(scope))
        for number, ids in enumerate(absorbed, 1):
            text = f"summary {number} of {scope}"
            store.save([RevisionRecord(stream.id, number, number - 1, text, tuple(ids), "hand", NOW)])
            store.save([Absorption(stream.id, id, number) for id in ids])
        store.save([SummaryState(stream.id, current or len(absorbed), len(absorbed))])


def scopes_of(store, streams):
    return [stream.scope for stream in store.streams(ids=streams)]


def state(memory, scope):
    """What the store says of a scope beside its memories, in terms that do not depend on numbers."""
    store = store_of(memory)
    with store.reading():
        stream = stream_of(memory, scope)
        records = {record.seq: record for record in store.select(ItemQuery(stream.id))}
        counts = store.load(AccessCount, seq=list(records))
        settings = store.load(SettingsRecord, stream=stream.id)
        session = load_session(store, stream)
        summary = store.load(SummaryState, stream=stream.id)
        kept = (
            [each[1:] for each in settings],
            session and sorted(session.users),
            [(each.revision, each.last, each.rebuild) for each in summary],
            [each[1:] for each in store.load(RevisionRecord, stream=stream.id)],
            {each.id: each.revision for each in store.load(Absorption, stream=stream.id)},
            scopes_of(store, [link.source for link in store.load(StreamLink, stream=stream.id)]),
            scopes_of(store, [link.stream for link in store.load(StreamLink, source=stream.id)]),
            {records[count.seq].id: count[1:] for count in counts},
            {record.id: record.supports for record in records.values()},
        )
    return kept, due(memory, scope)


def everything(memory):
    return {scope.text: state(memory, scope) for scope in memory.scopes()}, store_of(memory).path.exists()


def fill(memory):
    memory.streams.set_preset("team", like="user", owner=["team"], consolidated_max_words=77)
    memory.streams.set_preset("user", consolidation_trigger=3)
    memory.streams.configure(SHARD, extraction_prompt="Recipes {and} tricks.", fact_buffer_max=7)
    memory.streams.configure("team=blue", keep_best=5)
    say(memory, TALK, 6)
    pass_over(memory, TALK, 1, 2, 4)
    memory.observe(GROUP, [{"content": "hello", "user": "ben"}, {"content": "hi", "user": "cid"}])
    source = [f"@{TALK}#{TALK} 1", f"@{TALK}#{TALK} 2"]
    memory.remember(SHARD, "Salt the water.", id="salt", source=source, source_scopes=TALK)
    for number in range(4):
        memory.remember(ANNA, f"Anna likes dish {number}.", kind="observation", id=f"o{number}")
    revise(memory, ANNA, ["o0", "o1"], ["o2"])
    store = store_of(memory)
    with store.writing():
        (record,) = store.select(ItemQuery(stream_of(memory, SHARD).id, ids=["salt"]))
        supports = unique_supports([*record.supports, ("m7", f"@{GROUP}#x"), ("m8",)])
        store.update([record._replace(supports=supports)])
        store.save([StreamLink(stream_of(memory, GROUP).id, record.stream)])
        store.add_access([AccessCount(record.seq, 3, NOW)])
        session = load_session(store, stream_of(memory, GROUP))
        store.save([session._replace(users=("ben", "cid", "dora"))])
        dora = store.create_stream(eunoe.Scope.of("agent=cook/user=dora"))
        store.save([StreamLink(session.stream, dora.id)])


def test_a_round_trip_keeps_the_state(memory, other):
    fill(memory)
    lines = lines_of(memory)
    report = other.admin.import_(lines)
    assert everything(other) == everything(memory)
    assert other.streams.presets() == memory.streams.presets()
    assert report.lines == report.stored == len(lines) - 1
    assert other.streams.list(shard="recipes")[0].settings.extraction_prompt == "Recipes {and} tricks."
    assert [one.text for one in other.summaries.revisions(ANNA)] == [f"summary {n} of {ANNA}" for n in (1, 2)]
    assert sorted(lines_of(other)) == sorted(lines)


def test_read_twice_it_changes_nothing(memory, other):
    fill(memory)
    lines = lines_of(memory)
    other.admin.import_(lines)
    before = everything(other), {stream.scope: stream.version for stream in other.streams.list()}
    report = other.admin.import_(lines)
    assert (report.stored, report.conflicts, report.forgotten) == (0, 0, 0)
    assert report.duplicates == len(lines) - 1
    assert (everything(other), {stream.scope: stream.version for stream in other.streams.list()}) == before
    assert memory.admin.import_(lines).stored == 0


def test_what_was_formed_stays_formed_and_what_was_due_stays_due(memory, other):
    say(memory, TALK, 6)
    pass_over(memory, TALK, 1, 2, 4)
    other.admin.import_(lines_of(memory))
    assert due(other, TALK) == {f"{TALK} 0", f"{TALK} 3", f"{TALK} 5"}
    assert other.status().due_messages == memory.status().due_messages == 3


def test_a_log_longer_than_a_batch_keeps_its_cursor(memory, other):
    say(memory, TALK, 2300)
    pass_over(memory, TALK, *range(2250))
    other.admin.import_(lines_of(memory))
    assert due(other, TALK) == due(memory, TALK)
    assert len(due(other, TALK)) == 50
    store = store_of(other)
    with store.reading():
        assert store.load(Job, stream=stream_of(other, TALK).id) == []
        assert load_session(store, stream_of(other, TALK)).messages == 50


def test_messages_that_wait_here_are_not_passed_over(memory, other):
    say(memory, TALK, 4)
    pass_over(memory, TALK, 0, 1, 2)
    say(other, TALK, 12, start=10)
    other.admin.import_(lines_of(memory))
    assert due(other, TALK) == {f"{TALK} {n}" for n in (3, *range(10, 22))}
    assert other.status().due_messages == 13


def test_a_later_export_says_that_what_waits_here_was_formed(memory, other):
    say(memory, TALK, 6)
    other.admin.import_(lines_of(memory))
    assert len(due(other, TALK)) == 6
    pass_over(memory, TALK, 0, 1, 3)
    other.admin.import_(lines_of(memory))
    assert due(other, TALK) == due(memory, TALK) == {f"{TALK} 2", f"{TALK} 4", f"{TALK} 5"}
    pass_over(memory, TALK, 0, 1, 2, 3, 4)
    other.admin.import_(lines_of(memory))
    assert due(other, TALK) == {f"{TALK} 5"}


def test_a_conversation_formed_before_the_move_is_not_formed_again(memory, other):
    memory.observe(TALK, ["I am allergic to peanuts.", "Please call me Ann.", "My sister lives in Turin."])
    assert memory.form(TALK).messages == 3
    memory.observe(TALK, ["I moved to Rome last week."])
    other.admin.import_(lines_of(memory))
    before = [item.id for item in memory.list(ANNA, limit=99, exact=True).items]
    assert [item.id for item in other.list(ANNA, limit=99, exact=True).items] == before
    assert other.form(TALK).messages == 1
    assert other.form(TALK).messages == 0


def test_a_session_that_is_incognito_here_takes_nothing_in(memory, other):
    say(memory, TALK, 2)
    other.streams.set_incognito(TALK)
    assert other.admin.import_(lines_of(memory)).forgotten == 2
    assert other.scopes() == []


def test_messages_that_name_a_session_which_is_incognito_here_stay_away(memory, other):
    memory.observe(ANNA, [{"content": "A secret.", "session": "s9"}, {"content": "Hello.", "session": "s8"}])
    other.streams.set_incognito(f"{ANNA}/session=s9")
    report = other.admin.import_(lines_of(memory))
    assert (report.stored, report.forgotten) == (1, 1)
    assert [item.text for item in other.list(ANNA, exact=True).items] == ["Hello."]


def test_what_was_formed_here_is_not_due_again(memory, other):
    say(memory, TALK, 5)
    other.admin.import_(lines_of(memory))
    pass_over(other, TALK, 0, 1, 2, 3, 4)
    other.admin.import_(lines_of(memory))
    assert due(other, TALK) == set()


def test_messages_of_the_first_format_are_not_formed(other):
    say(other, TALK, 3)
    pass_over(other, TALK, 0, 1, 2)
    old = [json.dumps({"eunoe": 1})]
    for line in map(json.loads, lines_of(other)[1:]):
        line.pop("formed", None)
        old.append(json.dumps({**line, "scope": "agent=cook/session=old/user=anna"}))
    assert other.admin.import_(old).stored == 3
    assert len(due(other, "agent=cook/session=old/user=anna")) == 3
    assert other.status().due_messages == 3


def test_users_of_a_group_are_known_after_the_import(memory, other):
    memory.observe(GROUP, [{"content": "hello", "user": "ben"}, {"content": "hi", "user": "cid"}])
    other.admin.import_(lines_of(memory))
    store = store_of(other)
    with store.reading():
        assert load_session(store, stream_of(other, GROUP)).users == ("ben", "cid")


def test_forgetting_reaches_through_imported_links(memory, other):
    say(memory, TALK, 2)
    memory.remember(SHARD, "Salt the water.", source=[f"@{TALK}#{TALK} 1"], source_scopes=TALK)
    other.admin.import_(lines_of(memory, SHARD))
    other.admin.import_(lines_of(memory, TALK))
    other.forget(TALK, f"{TALK} 1")
    assert other.list(SHARD).items == ()


def test_each_group_of_sources_still_bears_the_atom_out_alone(memory, other):
    say(memory, ANNA, 3)
    memory.remember(ANNA, "Anna likes tea.", id="tea", source=[f"{ANNA} 0"])
    store = store_of(memory)
    with store.writing():
        (record,) = store.select(ItemQuery(stream_of(memory, ANNA).id, ids=["tea"]))
        store.update([record._replace(supports=((f"{ANNA} 0",), (f"{ANNA} 1", f"{ANNA} 2")))])
    other.admin.import_(lines_of(memory))
    other.forget(ANNA, f"{ANNA} 0")
    assert other.get(ANNA, "tea").source == (f"{ANNA} 1", f"{ANNA} 2")
    other.forget(ANNA, f"{ANNA} 2")
    assert [item.id for item in other.list(ANNA, exact=True).items] == [f"{ANNA} 1"]


def observations(memory, *ids):
    for id in ids:
        memory.remember(ANNA, f"Anna did {id}.", kind="observation", id=id)


def test_revisions_that_differ_are_kept(memory, other):
    for one in (memory, other):
        observations(one, "a", "b")
    revise(memory, ANNA, ["a"], ["b"])
    revise(other, ANNA, ["a"])
    store = store_of(other)
    with store.writing():
        (revision,) = store.load(RevisionRecord, stream=stream_of(other, ANNA).id)
        store.save([revision._replace(text="what stands here")])
    before = everything(other)
    report = other.admin.import_(lines_of(memory))
    assert (report.conflicts, report.stored) == (1, 0)
    assert everything(other) == before


def test_revisions_that_only_went_on_are_taken(memory, other):
    observations(memory, "a", "b")
    revise(memory, ANNA, ["a"])
    other.admin.import_(lines_of(memory))
    revise(memory, ANNA, ["a"], ["b"])
    assert other.admin.import_(lines_of(memory)).stored == 1
    assert everything(other) == everything(memory)


def test_an_older_export_moves_no_summary_back(memory, other):
    observations(memory, "a", "b")
    revise(memory, ANNA, ["a"])
    old = lines_of(memory)
    revise(memory, ANNA, ["a"], ["b"])
    other.admin.import_(lines_of(memory))
    assert other.admin.import_(old).stored == 0
    assert everything(other) == everything(memory)


def test_a_summary_of_what_was_forgotten_here_is_refused(memory, other):
    observations(memory, "a", "b", "c")
    revise(memory, ANNA, ["a"], ["b"], ["c"])
    lines = lines_of(memory)
    other.remember(ANNA, "Anna did b.", kind="observation", id="b")
    other.forget(ANNA, "b")
    other.admin.import_(lines)
    assert [(one.number, one.current) for one in other.summaries.revisions(ANNA)] == [(1, True)]
    store = store_of(other)
    with store.reading():
        stream = stream_of(other, ANNA)
        assert store.load(Absorption) == [Absorption(stream.id, "a", 1)]
        assert [record.id for record in unabsorbed(store, stream.id)] == ["c"]
        assert load_summary(store, stream).rebuild
    assert store.find_traces(["summary 2 of", "summary 3 of"]) == {}
    assert other.admin.import_(lines).stored == 0


def test_a_summary_of_words_forgotten_here_under_another_id_is_refused(memory, other):
    observations(memory, "a")
    revise(memory, ANNA, ["a"])
    kept = other.remember(ANNA, "Anna did a.", kind="observation")
    other.forget(ANNA, kept.id)
    report = other.admin.import_(lines_of(memory))
    assert (report.forgotten, report.stored) == (2, 0)
    assert other.summaries.revisions(ANNA) == []


def test_a_summary_dropped_here_does_not_come_back(memory, other):
    memory.summaries.write(ANNA, "Written by hand.")
    lines = lines_of(memory)
    other.admin.import_(lines)
    other.forget(ANNA, everything=True)
    report = other.admin.import_(lines)
    assert (report.forgotten, report.stored) == (1, 0)
    assert other.summaries.revisions(ANNA) == []


def test_settings_and_presets_that_differ_are_kept(memory, other):
    memory.streams.set_preset("user", consolidation_trigger=3)
    memory.streams.configure(ANNA, keep_best=5)
    other.streams.set_preset("user", consolidation_trigger=4)
    other.streams.configure(ANNA, keep_best=6)
    report = other.admin.import_(lines_of(memory))
    assert (report.conflicts, report.stored) == (2, 0)
    assert (other.streams.presets()["user"].consolidation_trigger, other.streams.list()[0].settings.keep_best) == (4, 6)


def test_settings_that_fit_no_preset_here_are_a_conflict(memory, other):
    memory.streams.set_preset("team", like="user", owner=["team"])
    memory.streams.configure("team=blue", keep_best=5)
    lines = [line for line in lines_of(memory) if '"preset", "name"' not in line]
    assert other.admin.import_(lines).conflicts == 1
    assert other.streams.list() == []


def test_only_presets_of_the_exported_streams_travel(memory):
    fill(memory)
    kinds = [json.loads(line).get("name") for line in lines_of(memory, SHARD)[1:]]
    assert [kind for kind in kinds if kind] == []
    assert json.loads(lines_of(memory, "team=blue")[1])["name"] == "team"


def test_access_counts_are_not_added_twice(memory, other):
    memory.remember(ANNA, "Anna likes tea.", id="tea")
    store = store_of(memory)
    with store.writing():
        (record,) = store.select(ItemQuery(stream_of(memory, ANNA).id, ids=["tea"]))
        store.add_access([AccessCount(record.seq, 3, NOW)])
    for _ in range(3):
        other.admin.import_(lines_of(memory))
    assert other.admin.access_counts(ANNA, ["tea"]) == {"tea": eunoe.Access(3, NOW)}


GOOD = {"scope": ANNA, "kind": "fact", "id": "x", "text": "good", "recorded": "2024-01-01"}
REVISION = {"number": 1, "parent": 0, "text": "t", "author": "a", "absorbed": [], "recorded": "2024-01-01"}
SUMMARY = {"scope": ANNA, "kind": "summary", "current": 1, "last": 1, "rebuild": False, "revisions": [REVISION]}
SETTINGS = {"scope": ANNA, "kind": "settings", "preset": "user", "changes": {}}
SESSION = {"scope": TALK, "kind": "session", "users": ["anna"]}
PRESET = {"kind": "preset", "name": "user", "changes": {}}


def test_the_lines_the_bad_ones_are_made_from_are_good(other):
    report = other.admin.import_([json.dumps(line) for line in (GOOD, SUMMARY, SETTINGS, SESSION, PRESET)])
    assert report.stored == 5


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({**GOOD, "source": ["a", 5]}, "source"),
        ({**GOOD, "source": "a"}, "list of texts"),
        ({**GOOD, "source": ["a", ["b", ["c"]]]}, "source"),
        ({**GOOD, "source": {"a": 1}}, "list of texts"),
        ({**GOOD, "uses": 3}, "."),
        ({**GOOD, "uses": {"times": -1, "last": "2024-01-01"}}, "number"),
        ({**GOOD, "uses": {"times": 1}}, "'last' is missing"),
        ({**GOOD, "formed": 1}, "formed"),
        ({**SUMMARY, "revisions": []}, "none"),
        ({**SUMMARY, "revisions": 5}, "."),
        ({**SUMMARY, "revisions": [5]}, "."),
        ({**SUMMARY, "revisions": [REVISION, REVISION]}, "does not follow"),
        ({**SUMMARY, "revisions": [{**REVISION, "parent": 1}]}, "does not follow"),
        ({**SUMMARY, "revisions": [{**REVISION, "number": 0}]}, "does not follow"),
        ({**SUMMARY, "revisions": [{**REVISION, "number": True}]}, "number"),
        ({**SUMMARY, "revisions": [{**REVISION, "text": " "}]}, "says nothing"),
        ({**SUMMARY, "revisions": [{**REVISION, "text": "\ud800"}]}, "surrogate"),
        ({**SUMMARY, "revisions": [{**REVISION, "absorbed": "o1"}]}, "list"),
        ({**SUMMARY, "revisions": [{**REVISION, "recorded": "soon"}]}, "cannot read"),
        ({**SUMMARY, "current": 2}, "does not fit"),
        ({**SUMMARY, "last": 0}, "does not fit"),
        ({**SUMMARY, "last": 10**30}, "number"),
        ({**SUMMARY, "rebuild": "yes"}, "rebuild"),
        ({**SETTINGS, "preset": 5}, "preset"),
        ({**SETTINGS, "changes": {"no_such": 1}}, "no setting no_such"),
        ({**SETTINGS, "changes": {"keep_best": -1}}, "keep_best"),
        ({**SETTINGS, "changes": []}, "mapping"),
        ({**SESSION, "users": "anna"}, "list"),
        ({**SESSION, "users": [{}]}, "not a name"),
        ({"kind": "preset", "name": "user"}, "'changes' is missing"),
        ({**PRESET, "name": 5}, "name"),
        ({**PRESET, "changes": {"owner": 5}}, "owner"),
        ({"kind": "summary"}, "scope"),
    ],
    ids=lambda value: ascii(value)[:70],
)
def test_a_bad_line_is_named_and_changes_nothing(other, line, reason):
    first = json.dumps({**GOOD, "id": "first", "text": "first"})
    with pytest.raises(InputError, match=reason) as caught:
        other.admin.import_([first, json.dumps(line)])
    assert str(caught.value).startswith("line 2: ")
    assert [item.text for item in other.list(ANNA, exact=True).items] == ["first"]
    assert other.summaries.revisions(ANNA) == []


@hypothesis_settings(max_examples=30)
@given(data=st.data())
def test_any_state_survives_the_way_there_and_back(data):
    """Whatever was formed, absorbed, used and restored, both stores say the same, and so does a second export."""
    with (
        eunoe.open(":memory:", embedder="none", llm=None, form=False) as one,
        eunoe.open(":memory:", embedder="none", llm=None, form=False) as two,
    ):
        count = data.draw(st.integers(1, 12))
        say(one, TALK, count)
        formed = data.draw(st.sets(st.integers(0, count - 1)))
        if formed:
            pass_over(one, TALK, *formed)
        names = [f"o{number}" for number in range(data.draw(st.integers(0, 6)))]
        sources = st.lists(st.sampled_from([f"@{TALK}#{TALK} 0", "m1", "m2"]), unique=True, max_size=3)
        for name in names:
            options = {"kind": "observation", "id": name, "source": data.draw(sources), "source_scopes": [TALK]}
            one.remember(ANNA, f"Anna did {name}.", **options)
        ends = sorted(data.draw(st.sets(st.integers(0, len(names)), max_size=4)))
        parts = [names[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        if parts:
            revise(one, ANNA, *parts)
        if names and data.draw(st.booleans()):
            one.forget(ANNA, data.draw(st.sampled_from(names)))
        lines = lines_of(one)
        two.admin.import_(lines)
        assert everything(two) == everything(one)
        assert sorted(lines_of(two)) == sorted(lines)
        assert two.admin.import_(lines).stored == 0
        assert everything(two) == everything(one)


def test_messages_for_a_user_alone_are_counted_as_due_after_the_import(memory, other):
    """The group's own stream is off: only who spoke says where its messages lead."""
    memory.streams.configure("agent=cook/session=group", is_active=False)
    memory.observe("agent=cook/session=group", {"content": "I am allergic to peanuts.", "user": "anna"})
    other.admin.import_(lines_of(memory))
    assert memory.status().due_messages == other.status().due_messages == 1
    assert other.admin.process_cold_sessions(idle=0, minimum=1).messages == 1
