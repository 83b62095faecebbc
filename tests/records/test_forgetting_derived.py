"""Forgetting reaches what was derived: atoms in other scopes, and every summary that took them in."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.records import stream_of
from tests.support.steps import steps_of

import eunoe
from eunoe.llm.contract import ScriptedLlm
from eunoe.model.atom import source_name, unique_supports
from eunoe.model.scope import Scope
from eunoe.store.contract import ItemQuery
from eunoe.store.schema import Job, SessionState, StreamLink, SummaryState

TALK = Scope(agent="cook", session="s1", user="anna")
ANNA = Scope(agent="cook", user="anna")
SHARD = Scope(agent="cook", shard="recipes")
FAR = Scope(team="kitchen")
SECRET = "The combination of the safe is 17-42-99."


@pytest.fixture
def memory(path):
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        yield memory


def store_of(memory):
    return steps_of(memory)


def derive(memory, owner, text, *groups, id="", kind="observation"):
    """Remembers what rests on groups of (scope, id); any one group bears it out."""
    kept = memory.remember(owner, text, kind=kind, id=id)
    store = store_of(memory)
    with store.writing():
        stream = store.create_stream(owner)
        (record,) = store.select(ItemQuery(stream.id, ids=[kept.id]))
        named = [[source_name(scope, id, owner) for scope, id in group] for group in groups]
        store.update([record._replace(supports=unique_supports(named), version=store.advance(stream.id).version)])
        scopes = {scope for group in groups for scope, _ in group}
        store.save([StreamLink(store.create_stream(scope).id, stream.id) for scope in scopes])
    return kept.id


def say(memory, *messages, scope=TALK):
    memory.observe(scope, [{"id": id, "content": text} for id, text in messages])


def ids(memory, scope):
    return [item.id for item in memory.list(scope, limit=1000, retired=True, exact=True).items]


def raw(path):
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


def summary(memory, scope):
    return next((one.text for one in memory.summaries.revisions(scope) if one.current), "")


def test_a_message_takes_along_what_was_learned_from_it_elsewhere(memory, path):
    say(memory, ("m1", SECRET), ("m2", "Tea, please."))
    safe = derive(memory, ANNA, "Anna told the code of her safe, 17-42-99.", [(TALK, "m1")])
    tea = derive(memory, ANNA, "Anna likes tea.", [(TALK, "m2")])
    shared = derive(memory, SHARD, "A safe opens with 17-42-99.", [(TALK, "m1")])
    report = memory.forget(TALK, "m1", verify=True)
    assert report.messages == ("m1",)
    assert set(report.atoms) == {safe, shared}
    assert set(report.scopes) == {TALK, ANNA, SHARD}
    assert report.verified
    assert (ids(memory, ANNA), ids(memory, SHARD)) == ([tea], [])
    assert b"17-42-99" not in raw(path)


@pytest.mark.parametrize("changed", [False, True])
def test_what_was_remembered_by_the_name_of_a_message_elsewhere_goes_with_it(memory, changed):
    say(memory, ("m1", SECRET), ("m2", "Tea, please."))
    source = [source_name(TALK, "m1", FAR)]
    kept = memory.remember(FAR, "There is a safe.", source=None if changed else source, source_scopes=[TALK])
    if changed:
        kept = memory.update(FAR, kept.id, "There is a safe with a code.", source=source, source_scopes=TALK)
    other = memory.remember(FAR, "Tea is wanted.", source=[source_name(TALK, "m2", FAR)], source_scopes=TALK)
    assert kept.id in memory.forget(TALK, "m1").atoms
    assert kept.id not in ids(memory, FAR)
    assert other.id in ids(memory, FAR)


def test_it_goes_on_from_scope_to_scope(memory):
    say(memory, ("m1", SECRET))
    first = derive(memory, ANNA, "Anna has a safe.", [(TALK, "m1")])
    second = derive(memory, SHARD, "Somebody has a safe.", [(ANNA, first)])
    third = derive(memory, FAR, "There are safes.", [(SHARD, second)])
    back = derive(memory, TALK, "We spoke of safes.", [(FAR, third)])
    report = memory.forget(TALK, "m1")
    assert set(report.atoms) == {first, second, third, back}
    assert all(ids(memory, scope) == [] for scope in (TALK, ANNA, SHARD, FAR))


def test_scopes_that_rest_on_each_other_come_to_an_end(memory):
    a = derive(memory, ANNA, "One holds the other.", [(SHARD, "b")], id="a")
    b = derive(memory, SHARD, "The other holds the one.", [(ANNA, "a")], id="b")
    assert set(memory.forget(ANNA, a).atoms) == {a, b}


def test_what_another_message_bears_out_stays_on_that_one(memory):
    say(memory, ("m1", SECRET), ("m2", "Tea!"), ("m3", "Tea, again."))
    tea = derive(memory, ANNA, "Anna likes tea.", [(TALK, "m1"), (TALK, "m2")], [(TALK, "m3")])
    version = next(stream.version for stream in memory.streams.list() if stream.scope == ANNA)
    report = memory.forget(TALK, "m1")
    assert (report.atoms, report.scopes) == ((), (TALK,))
    assert memory.get(ANNA, tea).source == (source_name(TALK, "m3", ANNA),)
    assert next(stream.version for stream in memory.streams.list() if stream.scope == ANNA) > version
    assert memory.forget(TALK, "m3").atoms == (tea,)


def test_the_same_id_in_another_scope_is_another_message(memory):
    other = Scope(agent="cook", session="s2", user="anna")
    say(memory, ("m1", SECRET))
    say(memory, ("m1", "Tea, please."), scope=other)
    tea = derive(memory, ANNA, "Anna likes tea.", [(other, "m1")])
    assert memory.forget(TALK, "m1").atoms == ()
    assert ids(memory, ANNA) == [tea]


def test_what_fell_does_not_come_back(memory):
    say(memory, ("m1", SECRET), ("m2", "My safe!"))
    derive(memory, ANNA, "Anna has a safe.", [(TALK, "m1")])
    memory.forget(TALK, "m1")
    assert memory.observe(TALK, {"id": "m1", "content": SECRET})[0].outcome == "forgotten"
    assert memory.remember(ANNA, "Anna has a safe.", kind="observation").outcome == "forgotten"
    source = [source_name(TALK, "m2", ANNA)]
    assert memory.remember(ANNA, "anna has a SAFE", source=source, source_scopes=TALK).outcome == "forgotten"
    assert memory.remember(SHARD, "Anna has a safe.").outcome == "stored"


def test_what_fell_may_return_if_that_was_said(memory):
    say(memory, ("m1", SECRET))
    derive(memory, ANNA, "Anna has a safe.", [(TALK, "m1")])
    memory.forget(TALK, "m1", may_return=True)
    assert memory.remember(ANNA, "Anna has a safe.").outcome == "stored"


def test_a_summary_in_another_scope_is_rebuilt_from_what_is_left(memory, path):
    say(memory, ("m1", SECRET), ("m2", "Tea, please."), ("m3", "I have a cat."))
    derive(memory, ANNA, "Anna likes tea.", [(TALK, "m2")])
    memory.summaries.consolidate(ANNA)
    derive(memory, ANNA, "Anna's safe opens with 17-42-99.", [(TALK, "m1")])
    derive(memory, ANNA, "Anna has a cat.", [(TALK, "m3")])
    memory.summaries.consolidate(ANNA)
    assert "17-42-99" in summary(memory, ANNA)
    report = memory.forget(TALK, "m1", verify=True)
    assert (report.revisions, report.rebuilt, report.verified) == (1, (ANNA,), True)
    assert [one.number for one in memory.summaries.revisions(ANNA)] == [1, 3]
    assert "Anna likes tea." in summary(memory, ANNA)
    assert "Anna has a cat." in summary(memory, ANNA)
    assert b"17-42-99" not in raw(path)


def test_with_a_model_the_summary_falls_back_at_once_and_is_rebuilt_later(path):
    scribe = ScriptedLlm(lambda prompt: " ".join(one["text"] for one in json.loads(prompt.text)["observations"]))
    with eunoe.open(path, embedder="none", llm=scribe, form=False) as memory:
        safe = memory.remember(ANNA, SECRET, kind="observation")
        memory.remember(ANNA, "Anna likes tea.", kind="observation")
        memory.summaries.consolidate(ANNA)
        report = memory.forget(ANNA, safe.id, verify=True)
        assert (report.revisions, report.rebuilt, report.verified) == (1, (), True)
        assert memory.summaries.revisions(ANNA) == []
        with store_of(memory).reading():
            assert [each.stream for each in store_of(memory).load(SummaryState, rebuild=True)] == [
                stream_of(store_of(memory), ANNA).id
            ]
        assert len(scribe.prompts) == 1  # forgetting does not wait for a model
        assert memory.summaries.consolidate(ANNA, force=False).text == "Anna likes tea."


@pytest.mark.parametrize("scope", [TALK, ANNA, SHARD], ids=str)
def test_the_background_rebuilds_a_summary_that_needs_a_model(path, scope):
    scribe = ScriptedLlm(lambda prompt: " ".join(one["text"] for one in json.loads(prompt.text)["observations"]))
    with eunoe.open(path, embedder="none", llm=scribe) as memory:
        safe = memory.remember(scope, SECRET, kind="observation")
        memory.remember(scope, "Anna likes tea.", kind="observation")
        memory.summaries.consolidate(scope)
        memory.forget(scope, safe.id)
        assert memory.flush()
        assert summary(memory, scope) == "Anna likes tea."


def test_a_whole_scope_goes_with_its_summary_and_all_that_came_of_it(memory, path):
    say(memory, ("m1", SECRET))
    memory.remember(TALK, "They spoke of 17-42-99.", kind="observation")
    memory.summaries.consolidate(TALK)
    memory.summaries.write(TALK, "A talk about 17-42-99, put by hand.")
    derive(memory, ANNA, "Anna's safe opens with 17-42-99.", [(TALK, "m1")])
    own = memory.remember(ANNA, "Anna likes tea.", kind="observation")
    memory.summaries.consolidate(ANNA)
    report = memory.forget(TALK, everything=True, verify=True)
    assert (report.revisions, report.rebuilt, report.verified) == (3, (ANNA,), True)
    assert set(report.scopes) == {TALK, ANNA}
    assert (memory.summaries.revisions(TALK), ids(memory, TALK), ids(memory, ANNA)) == ([], [], [own.id])
    assert summary(memory, ANNA) == "Anna likes tea."
    assert b"17-42-99" not in raw(path)
    with store_of(memory).reading():
        stream = store_of(memory).stream(Scope.of(TALK))
        assert store_of(memory).load(SessionState, stream=stream.id) == []
        assert store_of(memory).load(Job, stream=stream.id) == []
    assert memory.summaries.write(TALK, "A new talk.").number == 3


def test_a_scope_that_holds_nothing_any_more_is_not_listed(memory):
    say(memory, ("m1", SECRET))
    memory.remember(ANNA, "Anna likes tea.")
    memory.forget(TALK, everything=True, may_return=True)
    assert memory.scopes() == [ANNA]
    say(memory, ("m2", "Hello."))
    assert memory.scopes() == [TALK, ANNA]


def test_a_scope_that_was_forgotten_whole_is_listed_for_its_fingerprints_alone(memory):
    say(memory, ("m1", SECRET))
    memory.forget(TALK, everything=True)
    assert (memory.scopes(), memory.streams.list()) == ([TALK], [])
    out = io.StringIO()
    memory.admin.export(memory.scopes(), out)
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as other:
        other.admin.import_(out.getvalue().splitlines())
        assert other.observe(TALK, {"id": "m1", "content": SECRET})[0].outcome == "forgotten"


def test_a_summary_alone_goes_with_its_scope(memory, path):
    memory.summaries.write(ANNA, f"By hand: {SECRET}")
    report = memory.forget(ANNA, everything=True)
    assert (report.revisions, report.scopes, report.total) == (1, (ANNA,), 0)
    assert b"17-42-99" not in raw(path)


def test_a_person_is_forgotten_wherever_it_led(memory):
    memory.observe(
        TALK, [{"id": "m1", "content": "I know the safe.", "name": "Ben"}, {"id": "m2", "content": "Hi Ben"}]
    )
    safe = derive(memory, SHARD, "Somebody knows the safe.", [(TALK, "m1")])
    report = memory.forget(TALK, person="Ben")
    assert (report.messages, report.atoms, report.mentions) == (("m1",), (safe,), ("m2",))


def test_a_user_of_a_group_is_forgotten_by_the_name_on_their_messages(memory, path):
    group, ben = Scope(agent="cook", session="g"), Scope(agent="cook", user="ben")
    card = {"id": "m1", "role": "user", "user": "ben", "name": "Benjamin", "content": "I live in Reykjavik."}
    memory.observe(group, [card, {"id": "m2", "role": "user", "user": "anna", "content": "I like tea."}])
    memory.form(group)
    (learned,) = memory.list(ben).items
    assert set(learned.people) >= {"Benjamin", "ben"}
    report = memory.forget(group, person="Ben", verify=True)
    assert (report.messages, report.verified) == (("m1",), True)
    assert (ids(memory, group), ids(memory, ben)) == (["m2"], [])
    assert b"Reykjavik" not in raw(path)


@pytest.mark.parametrize("person", ["ben", "Benjamin"])
def test_what_is_known_of_a_user_is_found_by_either_name(memory, person):
    group, ben = Scope(agent="cook", session="g"), Scope(agent="cook", user="ben")
    memory.observe(group, {"role": "user", "user": "ben", "name": "Benjamin", "content": "I live in Reykjavik."})
    memory.form(group)
    assert memory.forget(ben, person=person).total == 1


def test_who_says_nothing_of_themselves_is_the_user_of_the_conversation(memory):
    memory.observe(TALK, [{"id": "m1", "content": "I live in Rome."}, {"id": "m2", "content": "Hi", "name": "Bob"}])
    memory.observe(TALK, {"id": "m3", "role": "assistant", "content": "Hello."})
    assert memory.forget(TALK, person="anna", verify=True).messages == ("m1",)


def test_words_that_only_a_summary_still_holds_are_taken_out_of_it(memory):
    kept = memory.remember(ANNA, SECRET)
    memory.summaries.write(ANNA, f"Anna said: {SECRET}")  # by hand, so that nothing tells where the words are from
    report = memory.forget(ANNA, kept.id, verify=True)
    assert (report.verified, report.revisions, summary(memory, ANNA)) == (True, 1, "")


def test_a_summary_written_after_one_that_is_left_empty_keeps_its_lineage_and_moves(memory):
    kept = memory.remember(ANNA, SECRET)
    tea = memory.remember(ANNA, "Anna likes tea.", kind="observation")
    memory.summaries.write(ANNA, f"Anna said: {SECRET}", absorbed=[tea.id])
    memory.summaries.write(ANNA, "She drinks it.")
    memory.forget(ANNA, kept.id)
    (left,) = memory.summaries.revisions(ANNA)
    assert (left.parent, left.absorbed, left.current) == (0, (tea.id,), True)
    out = io.StringIO()
    memory.admin.export(ANNA, out)
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as other:
        other.admin.import_(out.getvalue().splitlines())
        assert other.summaries.revisions(ANNA) == [left]
    memory.forget(ANNA, tea.id)
    assert memory.summaries.revisions(ANNA) == []


def test_the_same_words_of_somebody_else_do_not_excuse_a_summary(memory):
    kept = memory.remember(ANNA, SECRET)
    other = memory.remember(SHARD, SECRET)
    memory.summaries.write(ANNA, f"Anna said: {SECRET}")
    report = memory.forget(ANNA, kept.id, verify=True)
    assert (report.held_by, report.verified, summary(memory, ANNA)) == ({SHARD: (other.id,)}, True, "")


def test_a_summary_may_say_what_a_memory_of_its_scope_still_says(memory):
    first = memory.remember(ANNA, "Anna likes green tea.", kind="observation")
    other = memory.remember(ANNA, "It is known: Anna likes green tea. She drinks it daily.", kind="observation")
    memory.summaries.consolidate(ANNA)
    report = memory.forget(ANNA, first.id, verify=True)
    assert "Anna likes green tea." in summary(memory, ANNA)
    assert (report.traces, report.held_by, report.verified) == ((), {ANNA: (other.id,)}, False)


def test_several_scopes_with_a_common_child(memory):
    say(memory, ("m1", "One."))
    say(memory, ("m1", "Two."), scope=FAR)
    both = derive(memory, ANNA, "One and two.", [(TALK, "m1")], [(FAR, "m1")])
    assert memory.forget([TALK, FAR], everything=True).atoms == (both,)


SAID = {
    "a": "Anna bakes bread.",
    "b": "Ben sails to Kiel.",
    "c": "Carla has two cats.",
    "d": "Dora was born in 1981.",
    "e": "Emil hates loud music.",
    "f": "Frida teaches chemistry.",
}
NAMES = list(SAID)
HOMES = [TALK, ANNA, SHARD]


@settings(max_examples=60)
@given(
    homes=st.lists(st.sampled_from(HOMES), min_size=6, max_size=6),
    groups=st.lists(
        st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2), max_size=3), min_size=6, max_size=6
    ),
    chosen=st.sampled_from(NAMES),
)
def test_an_atom_falls_exactly_when_all_that_bears_it_out_has(homes, groups, chosen):
    """Against the plain definition: what has support keeps standing, in whatever order it is looked at."""
    home = dict(zip(NAMES, homes, strict=True))
    support = {name: [set(group) for group in found] for name, found in zip(NAMES, groups, strict=True)}
    gone = {chosen}
    while fell := {name for name in NAMES if support[name] and all(group & gone for group in support[name])} - gone:
        gone |= fell
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
        for name in NAMES:
            named = [[(home[one], one) for one in sorted(group)] for group in support[name]]
            derive(memory, home[name], SAID[name], *named, id=name)
        for scope in HOMES:
            memory.summaries.consolidate(scope)
        report = memory.forget(home[chosen], chosen)
        assert set(report.atoms) == gone
        left = {item.id: item for scope in HOMES for item in memory.list(scope).items}
        assert set(left) == set(NAMES) - gone
        for name, item in left.items():
            standing = {one for group in support[name] if not group & gone for one in group}
            assert set(item.source) == {source_name(home[one], one, home[name]) for one in standing}
        for scope in HOMES:
            assert not [name for name in gone if SAID[name] in summary(memory, scope)]
            assert all(SAID[name] in summary(memory, scope) for name in left if home[name] == scope)
