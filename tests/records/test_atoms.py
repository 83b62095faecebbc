"""Facts and observations: kept once, superseded instead of overwritten, readable as of any day."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import eunoe
from eunoe.errors import ConflictError, InputError, NotFoundError

ANNA = "user=anna"


@pytest.fixture
def clock(monkeypatch):
    """Sets the moment that the next writes are recorded at."""

    def at(text):
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
        monkeypatch.setattr("eunoe.engine.utc_now", lambda: moment)

    at("2024-01-01")
    return at


def day(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def texts(memory, scope=ANNA, **filters):
    return [item.text for item in memory.list(scope, limit=1000, **filters).items]


def found(memory, query, **filters):
    return sorted(hit.text for hit in memory.recall(ANNA, query, limit=50, **filters))


def test_every_field_comes_back(memory):
    receipt = memory.remember(
        ANNA,
        "Anna  likes\nTEA.\0",
        kind="observation",
        label="preference",
        files=["./src//a.py", "src/a.py", "b\\c.py"],
        pages=["home", "home"],
        people=["Anna", "Ben"],
        source=["m1"],
        time="2024-05-07",
        valid_from="2024-01-01T00:00:00.000001",
        valid_to=1_800_000_000,
        pinned=True,
        metadata={"deep": [1, {"a": None}]},
    )
    assert (receipt.outcome, receipt.closed) == ("stored", "")
    atom = memory.get(ANNA, receipt.id)
    assert (atom.text, atom.kind, atom.label) == ("Anna  likes\nTEA.\0", "observation", "preference")
    assert (atom.files, atom.pages, atom.people) == (("src/a.py", "b/c.py"), ("home",), ("Anna", "Ben"))
    assert (atom.source, atom.pinned, atom.metadata) == (("m1",), True, {"deep": [1, {"a": None}]})
    assert atom.time == day("2024-05-07")
    assert atom.valid_from == datetime(2024, 1, 1, 0, 0, 0, 1, UTC)
    assert atom.valid_to == datetime.fromtimestamp(1_800_000_000, UTC)
    assert (atom.retired, atom.supersedes, atom.superseded_by) == (None, "", "")
    assert atom.scope == eunoe.Scope(user="anna")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": ""}, "nothing to remember"),
        ({"text": " \n"}, "nothing to remember"),
        ({"text": None}, "must be text"),
        ({"text": "\ud800"}, "lone surrogate"),
        ({"text": "a", "kind": "message"}, "not one of"),
        ({"text": "a", "label": " "}, "blank"),
        ({"text": "a", "label": 5}, "must be text"),
        ({"text": "a", "id": "x" * 1025}, "longer than"),
        ({"text": "a", "id": None}, "must be text"),
        ({"text": "a", "people": "Anna"}, "did you mean"),
        ({"text": "a", "people": 5}, "list of texts"),
        ({"text": "a", "people": [["Anna"]]}, "not a name"),
        ({"text": "a", "files": ["", "a"]}, "not a name"),
        ({"text": "a", "source": ["\ud800"]}, "lone surrogate"),
        ({"text": "a", "time": "soon"}, "cannot read time"),
        ({"text": "a", "valid_from": "2024-01-02", "valid_to": "2024-01-01"}, "before valid_from"),
        ({"text": "a", "metadata": {"a": {1}}}, "JSON"),
        ({"text": "a", "metadata": {2: 1}}, "come back"),
        ({"text": "a", "colour": "red"}, "unknown field colour"),
        ({"label": "a"}, "no 'text'"),
        (5, "not a text or a dict"),
        ({"text": "a", "vector": [1.0, 2.0]}, "keeps no vectors"),
    ],
    ids=str,
)
def test_what_cannot_be_kept_is_refused_with_a_reason(memory, fields, reason):
    with pytest.raises(InputError, match=reason):
        memory.remember_many(ANNA, ["good", fields])
    assert memory.scopes() == []


def test_duplicates_are_recognised_and_said(memory):
    first = memory.remember(ANNA, "Anna likes tea.")
    for same in ("Anna likes tea.", " anna LIKES  tea", "“Anna likes tea”"):
        again = memory.remember(ANNA, same)
        assert (again.outcome, again.id, bool(again)) == ("duplicate", first.id, True)
    for other in ("Anna likes tea?", "Anna liked tea.", "Ben likes tea."):
        assert memory.remember(ANNA, other).outcome == "stored"
    assert memory.remember(ANNA, "Anna likes tea.", kind="observation").outcome == "stored"
    assert memory.remember("user=ben", "Anna likes tea.").outcome == "stored"


def test_numbers_in_high_places_are_not_the_same(memory):
    assert memory.remember(ANNA, "The area is 10² metres.").outcome == "stored"
    assert memory.remember(ANNA, "The area is 102 metres.").outcome == "stored"


def test_composed_and_decomposed_letters_are_the_same(memory):
    memory.remember(ANNA, "Zo\u00eb sings")
    assert memory.remember(ANNA, "Zoe\u0308 sings").outcome == "duplicate"


def test_duplicates_in_one_batch(memory):
    receipts = memory.remember_many(
        ANNA, ["a fact", "A fact.", {"text": "a fact", "id": "x"}, {"text": "b", "id": "x"}]
    )
    assert [receipt.outcome for receipt in receipts] == ["stored", "duplicate", "stored", "conflict"]
    assert receipts[1].id == receipts[0].id
    assert memory.remember_many(ANNA, []) == []


def test_ids_of_your_own(memory):
    assert memory.remember(ANNA, "one", id="x").id == "x"
    assert memory.remember(ANNA, "one", id="x").outcome == "duplicate"
    assert memory.remember(ANNA, "two", id="x").outcome == "conflict"
    assert memory.remember(ANNA, "one", id="y").outcome == "stored"
    assert memory.remember(ANNA, "one").outcome == "stored"
    assert memory.get(ANNA, "x").text == "one"


def test_a_closed_id_is_not_free(memory):
    kept = memory.remember(ANNA, "one")
    memory.update(ANNA, kept.id, "two")
    receipts = memory.remember_many(ANNA, [{"text": "one", "id": kept.id}, {"text": "three", "id": kept.id}, "one"])
    assert [receipt.outcome for receipt in receipts] == ["duplicate", "conflict", "stored"]
    assert receipts[2].id != kept.id


def test_update_closes_the_old_and_links_both(memory, clock):
    old = memory.remember(ANNA, "Anna lives in Paris.", label="home", people=["Anna"], valid_from="2020-01-01")
    clock("2024-02-01")
    new = memory.update(ANNA, old.id, "Anna lives in Rome.", valid_from="2023-06-01")
    assert (new.outcome, new.closed, bool(new)) == ("superseded", old.id, True)
    before, after = memory.history(ANNA, old.id)
    assert before.id == old.id
    assert (before.superseded_by, after.supersedes) == (new.id, old.id)
    assert (before.valid_from, before.valid_to) == (day("2020-01-01"), day("2023-06-01"))
    assert (before.recorded, before.retired) == (day("2024-01-01"), day("2024-02-01"))
    assert (after.valid_from, after.valid_to) == (day("2023-06-01"), None)
    assert (after.recorded, after.retired) == (day("2024-02-01"), None)
    assert (after.label, after.people) == ("home", ("Anna",))
    assert memory.history(ANNA, new.id) == [before, after]
    assert texts(memory) == ["Anna lives in Rome."]
    assert texts(memory, retired=True) == ["Anna lives in Paris.", "Anna lives in Rome."]


def test_without_a_time_the_new_holds_from_now(memory, clock):
    old = memory.remember(ANNA, "Anna lives in Paris.")
    clock("2024-02-01")
    new = memory.update(ANNA, old.id, "Anna lives in Rome.")
    assert memory.get(ANNA, old.id).valid_to == memory.get(ANNA, new.id).valid_from == day("2024-02-01")


def test_what_was_true_and_what_was_known(memory, clock):
    """Recorded in January: Paris. Recorded in March: Rome, and that since February."""
    old = memory.remember(ANNA, "Anna lives in Paris.", valid_from="2020-01-01")
    clock("2024-03-01")
    memory.update(ANNA, old.id, "Anna lives in Rome.", valid_from="2024-02-01")
    paris, rome = ["Anna lives in Paris."], ["Anna lives in Rome."]
    assert found(memory, "Where does Anna live?") == rome
    assert found(memory, "Where does Anna live?", as_of="2024-01-15") == paris
    assert found(memory, "Where does Anna live?", as_of="2024-02-15") == rome
    assert found(memory, "Where does Anna live?", as_of="2019-01-01") == []
    assert found(memory, "Where does Anna live?", known_at="2024-02-15") == paris
    assert found(memory, "Where does Anna live?", known_at="2024-03-15") == rome
    assert found(memory, "Where does Anna live?", known_at="2023-12-31") == []


def test_an_update_repeated_changes_nothing(memory):
    old = memory.remember(ANNA, "Anna lives in Paris.", label="home")
    new = memory.update(ANNA, old.id, "Anna lives in Rome.", metadata={"a": 1})
    again = memory.update(ANNA, old.id, "Anna lives in Rome.", metadata={"a": 1})
    assert (again.outcome, again.id) == ("duplicate", new.id)
    assert memory.update(ANNA, new.id, "Anna lives in Rome.").outcome == "duplicate"
    assert memory.update(ANNA, new.id).outcome == "duplicate"
    assert len(memory.history(ANNA, old.id)) == 2


def test_a_closed_atom_is_not_changed_again(memory):
    old = memory.remember(ANNA, "Anna lives in Paris.")
    new = memory.update(ANNA, old.id, "Anna lives in Rome.")
    for change in ({"text": "Anna lives in Bern."}, {"text": "Anna lives in Rome.", "label": "home"}):
        with pytest.raises(ConflictError, match=new.id):
            memory.update(ANNA, old.id, **change)
    assert texts(memory) == ["Anna lives in Rome."]


def test_fields_change_without_the_words(memory):
    old = memory.remember(ANNA, "Anna is away.", valid_to="2099-06-30", files=["a.py"])
    new = memory.update(ANNA, old.id, label="travel", pinned=True)
    atom = memory.get(ANNA, new.id)
    assert (atom.text, atom.label, atom.pinned, atom.files) == ("Anna is away.", "travel", True, ("a.py",))
    assert atom.valid_to == day("2099-06-30")
    assert memory.get(ANNA, memory.update(ANNA, new.id, "Anna is back.").id).valid_to is None


def test_an_update_that_cannot_be_is_refused(memory):
    old = memory.remember(ANNA, "Anna is away.")
    for changes in ({"colour": "red"}, {"valid_to": "2000-01-01"}, {"text": " "}, {"kind": "message"}):
        with pytest.raises(InputError):
            memory.update(ANNA, old.id, **changes)
    with pytest.raises(NotFoundError):
        memory.update(ANNA, "nothing", "words")
    with pytest.raises(NotFoundError):
        memory.update("user=ben", old.id, "words")
    assert memory.get(ANNA, old.id).retired is None
    assert memory.scopes() == [eunoe.Scope(user="anna")]


def test_an_update_into_known_words_closes_into_them(memory):
    rome = memory.remember(ANNA, "Anna lives in Rome.")
    rome2 = memory.update(ANNA, rome.id, "Anna lives in the centre of Rome.")
    paris = memory.remember(ANNA, "Anna lives in Paris.")
    merged = memory.update(ANNA, paris.id, "Anna lives in the centre of Rome.")
    assert (merged.outcome, merged.id, merged.closed) == ("superseded", rome2.id, paris.id)
    assert texts(memory) == ["Anna lives in the centre of Rome."]
    for id in (rome.id, rome2.id, paris.id):
        assert {version.id for version in memory.history(ANNA, id)} == {rome.id, rome2.id, paris.id}
    report = memory.forget(ANNA, rome2.id)
    assert set(report.atoms) == {rome.id, rome2.id, paris.id}


def test_an_update_into_forgotten_words_is_refused(memory):
    secret = memory.remember(ANNA, "Anna's PIN is 4711.")
    memory.forget(ANNA, secret.id)
    kept = memory.remember(ANNA, "Anna has a PIN.")
    receipt = memory.update(ANNA, kept.id, "Anna's PIN is 4711.")
    assert (receipt.outcome, bool(receipt)) == ("forgotten", False)
    assert texts(memory) == ["Anna has a PIN."]


def test_named_atoms_keep_apart_when_updated(memory):
    memory.remember(ANNA, "one", id="x")
    memory.remember(ANNA, "two")
    new = memory.update(ANNA, "x", "two")
    assert new.closed == "x"
    assert texts(memory) == ["two", "two"]


def test_pinning(memory):
    kept = memory.remember(ANNA, "Anna likes tea.")
    assert memory.pin(ANNA, kept.id).outcome == "stored"
    assert memory.get(ANNA, kept.id).pinned
    assert memory.pin(ANNA, kept.id).outcome == "duplicate"
    assert memory.pin(ANNA, kept.id, pinned=False).outcome == "stored"
    assert not memory.get(ANNA, kept.id).pinned
    with pytest.raises(NotFoundError):
        memory.pin("user=ben", kept.id)
    assert memory.scopes() == [eunoe.Scope(user="anna")]


def test_history_of_a_message_and_of_nothing(memory):
    (message,) = memory.observe(ANNA, "words")
    assert memory.history(ANNA, message.id) == []
    with pytest.raises(NotFoundError):
        memory.history(ANNA, "nothing")
    with pytest.raises(NotFoundError):
        memory.history("user=ben", message.id)


def test_files_and_folders(memory):
    one = memory.remember(ANNA, "about a", files=["src/a.py"])
    two = memory.remember(ANNA, "about both", files=["src/b/c.py", "docs/x.md"])
    memory.remember(ANNA, "about nothing")
    memory.remember("user=ben", "not Anna's", files=["src/a.py"])
    closed = memory.remember(ANNA, "old", files=["src/a.py"])
    new = memory.update(ANNA, closed.id, "new")

    def ids(*paths):
        return [atom.id for atom in memory.by_files(ANNA, paths)]

    assert ids("./src//a.py") == [new.id, one.id]
    assert ids("src") == [new.id, two.id, one.id]
    assert ids("docs/x.md", "src/b/") == [two.id]
    assert ids("src/a") == ids("other") == []
    assert memory.by_files("user=zoe", "src/a.py") == []


def test_an_update_that_reaches_back_before_the_old_atom_leaves_it_no_time(memory):
    old = memory.remember(ANNA, "Anna lives in Paris.", valid_from="2020-01-01")
    new = memory.update(ANNA, old.id, "Anna lives in Rome.", valid_from="2019-01-01")
    before = memory.get(ANNA, old.id)
    assert (before.valid_from, before.valid_to) == (day("2020-01-01"), day("2020-01-01"))
    for moment in ("2019-06-01", "2020-01-01", "2021-01-01"):
        assert [hit.id for hit in memory.recall(ANNA, "Where does Anna live?", as_of=moment)] == [new.id]


def test_a_memory_key_has_one_value_at_a_time(memory, clock):
    home = {"memory_key": "home"}
    paris = memory.remember(ANNA, "Anna lives in Paris.", metadata=home)
    clock("2024-02-01")
    rome = memory.remember(ANNA, "Anna lives in Rome.", metadata=home | {"by": "hand"})
    assert (rome.outcome, rome.closed) == ("superseded", paris.id)
    before, after = memory.history(ANNA, paris.id)
    assert (before.superseded_by, after.supersedes, after.metadata["by"]) == (rome.id, paris.id, "hand")
    assert before.valid_to == after.valid_from == day("2024-02-01")
    assert texts(memory) == ["Anna lives in Rome."]
    assert memory.remember(ANNA, "anna lives in rome", metadata=home).outcome == "duplicate"
    assert memory.remember(ANNA, "Anna lives in Paris.", metadata={"memory_key": " HOME "}).closed == rome.id


def test_a_memory_key_holds_within_one_batch_one_kind_and_one_scope(memory):
    key = {"metadata": {"memory_key": "car"}}
    receipts = memory.remember_many(
        ANNA,
        [{"text": "red", **key}, {"text": "blue", **key}, {"text": "green", "kind": "observation", **key}, "plain"],
    )
    assert [receipt.outcome for receipt in receipts] == ["stored", "superseded", "stored", "stored"]
    assert receipts[1].closed == receipts[0].id
    assert sorted(texts(memory)) == ["blue", "green", "plain"]
    assert memory.remember("user=ben", "black", **key).outcome == "stored"
    assert sorted(texts(memory)) == ["blue", "green", "plain"]


def test_a_memory_key_of_other_people_closes_nothing(memory):
    key = {"metadata": {"memory_key": "car"}}
    memory.remember(ANNA, "Anna's car is red", people=["Anna"], **key)
    assert memory.remember(ANNA, "Ben's car is blue", people=["Ben"], **key).outcome == "stored"
    assert memory.remember(ANNA, "The car is grey", people=["ANNA"], **key).outcome == "superseded"
    assert sorted(texts(memory)) == ["Ben's car is blue", "The car is grey"]


def test_what_is_remembered_of_an_earlier_time_closes_nothing_newer(memory):
    key = {"metadata": {"memory_key": "home"}}
    rome = memory.remember(ANNA, "Anna lives in Rome.", valid_from="2024-01-01", **key)
    for words, times in (
        ("Anna lived in Paris.", {"valid_from": "2020-01-01"}),
        ("Anna lived in Bern.", {"time": "2022-01-01"}),
        ("Anna lived in Oslo.", {"valid_to": "2019-01-01"}),
    ):
        receipt = memory.remember(ANNA, words, **times, **key)
        assert (receipt.outcome, receipt.closed) == ("stored", "")
    assert texts(memory) == ["Anna lives in Rome."]
    assert [atom.text.split()[-1] for atom in memory.history(ANNA, rome.id)] == ["Oslo.", "Paris.", "Bern.", "Rome."]
    assert found(memory, "Where did Anna live?", as_of="2021-01-01") == ["Anna lived in Paris."]


def test_a_pinned_value_is_closed_only_by_update(memory):
    key = {"metadata": {"memory_key": "home"}}
    paris = memory.remember(ANNA, "Anna lives in Paris.", pinned=True, **key)
    assert memory.remember(ANNA, "Anna lives in Rome.", **key).outcome == "stored"
    assert len(texts(memory)) == 2
    assert memory.update(ANNA, paris.id, "Anna lives in Bern.").outcome == "superseded"


def test_a_memory_key_with_an_id_of_your_own(memory):
    key = {"metadata": {"memory_key": "home"}}
    memory.remember(ANNA, "Paris", id="p", **key)
    receipt = memory.remember(ANNA, "Rome", id="r", **key)
    assert (receipt.outcome, receipt.id, receipt.closed) == ("superseded", "r", "p")
    assert memory.remember(ANNA, "Rome", id="r", **key).outcome == "duplicate"


@pytest.mark.parametrize("key", ["", "  ", 5, None, ["home"]], ids=repr)
def test_what_is_no_key_closes_nothing(memory, key):
    for text in ("one", "two"):
        assert memory.remember(ANNA, text, metadata={"memory_key": key}).outcome == "stored"


@pytest.mark.parametrize("verb", ["get", "history"])
def test_an_id_that_is_no_text_is_refused(memory, verb):
    memory.remember("user=anna", "Anna plays the cello.")
    with pytest.raises(InputError, match="id holds a lone surrogate"):
        getattr(memory, verb)("user=anna", "\ud800")
