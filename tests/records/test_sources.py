"""A source in another scope: nobody learns by it what that scope holds who does not name the scope."""

import pytest

import eunoe
from eunoe.errors import InputError, NotFoundError
from eunoe.model.arguments import parse_time
from eunoe.model.atom import source_name

pytestmark = pytest.mark.remote

MINE, THEIRS = "tenant=a/user=anna", "tenant=b/user=eve"
SAID = "2020-02-02T20:20:20+00:00"
KEYED = {"metadata": {"memory_key": "anna/home"}}
FORMS = [
    "@tenant=b/user=eve#{id}",
    "@user=eve/tenant=b#{id}",
    "@tenant=b/user=eve/#{id}",
    "@tenant=b/user=eve#",
    "@tenant=b#{id}",
    "@user=eve#{id}",
    "@tenant=%62/user=eve#{id}",
]
"""Ways to write the id of a message in another scope, or what looks like one."""


@pytest.fixture
def shared(memory):
    memory.observe(THEIRS, [{"id": "m1", "content": "The code is 4711.", "time": SAID}])
    memory.remember(THEIRS, "Eve has a code.", id="f1")
    memory.remember(MINE, "Anna lives in Paris.", time="2010-01-01", **KEYED)
    return memory


def outcomes(memory, id):
    """All that naming a source tells, for every way to write it and every verb that takes one."""
    own = memory.remember(MINE, f"Anna has a cat called {id}.").id
    told = []
    for form in FORMS:
        source = [form.format(id=id)]
        item = {"text": "Anna lives in Rome.", "source": source, **KEYED}
        for attempt in (
            lambda source=source: memory.remember(MINE, "Anna lives in Rome.", source=source, **KEYED),
            lambda source=source: memory.remember_many(
                MINE, [{"text": "Anna lives in Rome.", "source": source, **KEYED}]
            ),
            lambda source=source: memory.update(MINE, own, "Anna has a dog.", source=source),
            lambda item=item: memory.at(MINE).remember(**item),
        ):
            try:
                told.append(("taken", bool(attempt())))
            except (InputError, NotFoundError) as error:
                told.append((type(error).__name__, str(error).replace(id, "ID")))
    return told


def test_the_answer_is_the_same_whether_the_source_exists_or_not(shared):
    assert outcomes(shared, "m1") == outcomes(shared, "m2") == outcomes(shared, "f1")


def test_a_source_in_a_scope_that_is_not_named_is_refused_and_keeps_nothing(shared):
    before = [item.id for item in shared.list(MINE).items]
    with pytest.raises(InputError, match=r"^source '@tenant=b/user=eve#m1' is in another scope: name that sc"):
        shared.remember(MINE, "Anna lives in Rome.", source=["@tenant=b/user=eve#m1"], **KEYED)
    assert [item.id for item in shared.list(MINE).items] == before
    assert SAID not in str(shared.list(MINE, retired=True))
    with pytest.raises(InputError, match="source_scopes"):
        shared.remember(MINE, "Anna.", source=["@tenant=b/user=eve#m1"], source_scopes=["tenant=b", "user=eve", MINE])


@pytest.mark.parametrize("named", [THEIRS, [THEIRS], {"tenant": "b", "user": "eve"}, (MINE, THEIRS)])
def test_a_source_in_a_scope_that_is_named_is_taken(shared, named):
    kept = shared.remember(MINE, "Anna lives in Rome.", source=["@tenant=b/user=eve#m1"], source_scopes=named, **KEYED)
    assert shared.get(MINE, kept.id).valid_from == parse_time(SAID)
    assert kept.id in shared.forget(THEIRS, "m1").atoms


def test_an_update_keeps_a_source_that_the_atom_has_and_takes_no_other(shared):
    source = ["@tenant=b/user=eve#m1"]
    kept = shared.remember(MINE, "Anna has a code.", source=source, source_scopes=THEIRS)
    new = shared.update(MINE, kept.id, "Anna has a PIN.")
    assert shared.get(MINE, new.id).source == tuple(source)
    with pytest.raises(InputError, match="in another scope"):
        shared.update(MINE, new.id, "Anna has two.", source=[*source, "@tenant=b/user=eve#f1"])
    shared.update(MINE, new.id, "Anna has two.", source=["@tenant=b/user=eve#f1"], source_scopes=THEIRS)


def test_a_source_written_with_ones_own_scope_needs_no_other(shared):
    shared.observe(MINE, [{"id": "m9", "content": "I moved."}])
    kept = shared.remember(MINE, "Anna moved.", source=["@user=anna/tenant=a#m9"])
    assert kept.id in shared.forget(MINE, "m9").atoms


def test_what_is_formed_rests_on_the_conversation_it_came_from(path):
    talk = eunoe.Scope.parse("agent=cook/session=s1/user=anna")
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.observe(talk, ["I am allergic to peanuts.", "Please call me Ann.", "I live in Turin.", "My dog is Bo."])
        memory.form(talk)
        owner = eunoe.Scope.parse("agent=cook/user=anna")
        facts = memory.list(owner, exact=True).items
        names = {source for fact in facts for source in fact.source}
        said = {source_name(talk, item.id, owner) for item in memory.list(talk, kinds=["message"]).items}
        assert names
        assert names <= said


def test_nothing_else_tells_of_another_scope(shared):
    """Ids, cursors and questions about another's memories get the answer that made-up ones get."""
    foreign = shared.list(THEIRS, limit=1).next
    assert foreign
    assert [item.scope for item in shared.list(MINE, after=foreign).items] in ([], [eunoe.Scope.parse(MINE)])
    for verb in (shared.get, shared.history, shared.pin, shared.streams.unarchive, shared.forget, shared.update):
        told = []
        for id in ("m1", "f1", "zz"):
            with pytest.raises(NotFoundError) as caught:
                verb(MINE, id)
            told.append(str(caught.value).replace(id, "ID"))
        assert len(set(told)) == 1
    assert shared.admin.access_counts(MINE, ["m1", "f1", "zz"]) == {}
    assert shared.by_files(MINE, ["a.py"]) == []
    for text in ("Eve has a code.", "Eve has no code."):
        assert shared.remember(MINE, text).outcome == "stored"
    assert [each.outcome for each in shared.observe(MINE, [{"id": "m1", "content": "Hello."}])] == ["stored"]
    assert shared.recall(MINE, "4711 code", kinds=["message"]) == []
