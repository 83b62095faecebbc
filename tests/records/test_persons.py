"""A person who is forgotten while others still mention them: the report says so, and what would remove it."""

import pytest

from eunoe.model.scope import Scope

pytestmark = pytest.mark.remote

ROOM, HALL = "room=1", "room=2"
TOM = [
    {"speaker": "Tom", "content": "My bank card ends in 4711.", "id": "m1"},
    {"speaker": "Eva", "content": "Tom, do not write that here!", "id": "m2"},
    {"speaker": "Eva", "content": "Tomorrow we eat tomatoes.", "id": "m3"},
]
MENTIONS = [
    {"content": "See the picture.", "caption": "TOM at the beach", "id": "x"},
    {"content": "Who was it?", "metadata": {"answer": ["it was tom"]}, "id": "x"},
    {"content": "(tom)", "id": "x"},
    {"content": "汤姆 and Tom's dog", "id": "x"},
    {"content": "Hello.", "speaker": "Tom's mother", "id": "x"},
]


def test_what_others_said_is_named_and_nothing_is_called_verified(memory):
    memory.observe(ROOM, TOM)
    report = memory.forget(ROOM, person="Tom", verify=True)
    assert (report.messages, report.mentions, report.traces) == (("m1",), ("m2",), ())
    assert report.mentions_by_scope == {Scope.parse(ROOM): ("m2",)}
    assert report.verified is False
    again = memory.forget(ROOM, person="Tom", mentions=True, verify=True)
    assert (again.messages, again.mentions, again.mentions_by_scope, again.verified) == (("m2",), (), {}, True)
    assert [item.id for item in memory.list(ROOM).items] == ["m3"]


def test_a_person_whom_nobody_mentions_is_gone(memory):
    memory.observe(ROOM, [TOM[0], TOM[2]])
    assert memory.forget(ROOM, person="Tom", verify=True).verified
    assert memory.forget(ROOM, person="Tom").verified is None


@pytest.mark.parametrize("message", MENTIONS, ids=repr)
def test_every_place_of_a_message_that_names_them_counts(memory, message):
    memory.observe(ROOM, [*TOM[:1], message])
    report = memory.forget(ROOM, person="Tom", verify=True)
    assert (report.mentions, report.verified) == (("x",), False)
    assert memory.forget(ROOM, person="Tom", mentions=True, verify=True).verified
    assert memory.list(ROOM).items == ()


def test_a_fact_that_mentions_them_counts(memory):
    kept = memory.remember(ROOM, "The card of Tom was stolen.")
    assert memory.forget(ROOM, person="Tom").mentions == (kept.id,)


def test_each_scope_has_its_own_and_one_that_was_not_named_has_none(memory):
    memory.observe(ROOM, TOM)
    memory.observe(HALL, [{**each, "id": f"h{each['id']}"} for each in TOM])
    memory.observe("room=3", [{"content": "Tom was here.", "id": "secret"}])
    report = memory.forget([ROOM, HALL], person="Tom", verify=True)
    assert report.mentions_by_scope == {Scope.parse(ROOM): ("m2",), Scope.parse(HALL): ("hm2",)}
    assert "secret" not in str(report)


def test_a_summary_that_names_them_counts_and_goes_with_the_mentions(memory):
    memory.observe(ROOM, TOM[:1])
    memory.summaries.write(ROOM, "The room is quiet.")
    memory.summaries.write(ROOM, "The room is quiet. Tom owes Eva money.")
    report = memory.forget(ROOM, person="Tom", verify=True)
    assert (report.mentions, report.summaries, report.verified) == ((), (Scope.parse(ROOM),), False)
    again = memory.forget(ROOM, person="Tom", mentions=True, verify=True)
    assert (again.summaries, again.revisions, again.verified) == ((), 1, True)
    assert [revision.text for revision in memory.summaries.revisions(ROOM)] == ["The room is quiet."]
    assert memory.admin.export(ROOM, "/dev/null") > 0


def test_forgetting_everything_of_an_empty_scope_tells_of_a_near_one(memory):
    memory.remember("agent=cook/user=anna", "Anna likes tea.")
    report = memory.forget("agent=cook", everything=True)
    assert report.total == 0
    assert "agent=cook holds nothing, but agent=cook/user=... does" in report.notes[0]
    assert memory.forget("agent=cook/user=anna", everything=True).notes == ()
