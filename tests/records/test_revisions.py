"""Versions of a summary: none is overwritten, none is lost, and none outlives what it was made from."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from tests.support.records import NOON
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.model.scope import Scope
from eunoe.records import revisions
from eunoe.store.schema import Absorption, Lease

ANNA = Scope(user="anna")


class Desk:
    """A stream of one scope, and what the ledger does with its summary."""

    def __init__(self, memory, scope=ANNA):
        self.memory, self.scope = memory, scope
        self.store = steps_of(memory)

    def note(self, *texts):
        receipts = self.memory.remember_many(self.scope, [{"text": text, "kind": "observation"} for text in texts])
        return [receipt.id for receipt in receipts]

    @property
    def stream(self):
        with self.store.reading():
            return self.store.stream(self.scope)

    def commit(self, parent, text, ids=(), author="model"):
        with self.store.writing():
            stream = self.store.create_stream(self.scope)
            return revisions.commit_revision(self.store, stream, parent, text, ids, author, NOON)

    def purge(self, *gone):
        with self.store.writing():
            return revisions.purge_revisions(self.store, self.store.create_stream(self.scope), gone)

    @property
    def current(self):
        with self.store.reading():
            return revisions.current_revision(self.store, self.stream)

    @property
    def state(self):
        with self.store.reading():
            return revisions.load_summary(self.store, self.stream)

    @property
    def waiting(self):
        with self.store.reading():
            return [row.id for row in revisions.unabsorbed(self.store, self.stream.id)]

    @property
    def absorbed(self):
        with self.store.reading():
            return {each.id: each.revision for each in self.store.load(Absorption, stream=self.stream.id)}

    @property
    def numbers(self):
        return [revision.number for revision in self.memory.summaries.revisions(self.scope)]


@pytest.fixture
def desk(memory):
    return Desk(memory)


def test_a_scope_without_a_summary_has_no_revisions(memory):
    assert memory.summaries.revisions("user=nobody") == []
    with steps_of(memory).reading():
        assert revisions.current_revision(steps_of(memory), None) is None


def test_a_commit_takes_in_what_it_names_in_one_step(desk):
    a, b, c = desk.note("a", "b", "c")
    version = desk.stream.version
    first = desk.commit(0, "a and b", [a, b])
    assert (first.number, first.parent, first.absorbed, first.current) == (1, 0, (a, b), True)
    assert desk.waiting == [c]
    assert desk.absorbed == {a: 1, b: 1}
    assert desk.stream.version > version
    second = desk.commit(1, "a, b and c", [c])
    assert (second.number, second.parent) == (2, 1)
    assert [one.current for one in desk.memory.summaries.revisions(ANNA)] == [False, True]
    assert desk.absorbed == {a: 1, b: 1, c: 2}


def test_a_commit_on_an_older_revision_is_refused(desk):
    a, b = desk.note("a", "b")
    desk.commit(0, "a", [a])
    with pytest.raises(ConflictError, match="1 is"):
        desk.commit(0, "b", [b])
    assert desk.waiting == [b]
    assert desk.current.text == "a"


@pytest.mark.parametrize("change", ["forget", "update", "absorb", "unknown"])
def test_a_commit_of_an_observation_that_does_not_wait_any_more_is_refused(desk, change):
    a, b = desk.note("a word", "b word")
    if change == "forget":
        desk.memory.forget(ANNA, a)
    elif change == "update":
        desk.memory.update(ANNA, a, "another word")
    elif change == "absorb":
        desk.commit(0, "a", [a])
    named = "nobody" if change == "unknown" else a
    before = desk.current
    with pytest.raises(ConflictError, match="write it anew"):
        desk.commit(1 if change == "absorb" else 0, "a word and b word", [named, b])
    assert desk.current == before
    assert b in desk.waiting


def test_facts_and_messages_are_never_absorbed(desk):
    desk.memory.observe(ANNA, {"id": "m1", "content": "hello"})
    fact = desk.memory.remember(ANNA, "a fact")
    for id in ("m1", fact.id):
        with pytest.raises(ConflictError):
            desk.commit(0, "text", [id])


def test_a_text_by_hand_takes_in_nothing(desk):
    (a,) = desk.note("a")
    desk.commit(0, "a", [a])
    (b,) = desk.note("b")
    revision = desk.memory.summaries.write(ANNA, "by hand", author="anna")
    assert (revision.number, revision.parent, revision.absorbed, revision.author) == (2, 1, (), "anna")
    assert desk.waiting == [b]
    assert desk.memory.summaries.write(ANNA, "by hand") == revision
    assert desk.memory.summaries.write(ANNA, "by hand", parent=1) == revision
    assert desk.numbers == [1, 2]


def test_a_text_by_hand_starts_a_summary_of_a_new_scope(memory):
    revision = memory.summaries.write("user=new", "Nobody knows them.", parent=0)
    assert (revision.number, revision.parent, revision.author) == (1, 0, "hand")


def test_a_text_by_hand_may_ask_for_its_parent(desk):
    desk.memory.summaries.write(ANNA, "one")
    with pytest.raises(ConflictError):
        desk.memory.summaries.write(ANNA, "two", parent=0)
    assert desk.memory.summaries.write(ANNA, "two", parent=1).number == 2


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_summary_is_refused(desk, text):
    desk.memory.summaries.write(ANNA, "one")
    with pytest.raises(InputError, match="says nothing"):
        desk.memory.summaries.write(ANNA, text)
    with pytest.raises(InputError, match="says nothing"):
        desk.commit(1, text)
    assert desk.current.text == "one"


def test_nobody_writes_by_hand_under_the_name_of_the_machine(desk):
    with pytest.raises(InputError, match="extractive"):
        desk.memory.summaries.write(ANNA, "mine", author="extractive")


@pytest.mark.parametrize("number", [0, -1, 2**63, "1", True])
def test_a_number_that_no_revision_can_have_is_refused(desk, number):
    with pytest.raises(InputError, match="number is"):
        desk.memory.summaries.restore(ANNA, number)


def test_a_restored_text_has_the_lineage_it_had(desk):
    a, b, c = desk.note("a", "b", "c")
    desk.commit(0, "a", [a], "first author")
    desk.commit(1, "ab", [b])
    desk.commit(2, "abc", [c])
    restored = desk.memory.summaries.restore(ANNA, 1)
    assert (restored.number, restored.parent, restored.text, restored.author) == (4, 1, "a", "first author")
    assert desk.waiting == [b, c]
    assert desk.absorbed == {a: 1}
    again = desk.memory.summaries.restore(ANNA, 3)
    assert (again.number, again.parent, again.text) == (5, 3, "abc")
    assert desk.waiting == []
    assert desk.absorbed == {a: 1, b: 2, c: 3}


def test_restoring_what_is_current_changes_nothing(desk):
    desk.memory.summaries.write(ANNA, "one")
    version = desk.stream.version
    assert desk.memory.summaries.restore(ANNA, 1).number == 1
    assert (desk.numbers, desk.stream.version) == ([1], version)


@pytest.mark.parametrize("scope", ["user=anna", "user=nobody"])
def test_a_revision_that_never_was_cannot_be_restored(desk, scope):
    desk.memory.summaries.write(ANNA, "one")
    with pytest.raises(NotFoundError, match="revision 7"):
        desk.memory.summaries.restore(scope, 7)


def test_a_purge_goes_back_to_the_last_clean_revision(desk):
    a, b, c, d = desk.note("a", "b", "c", "d")
    desk.commit(0, "a", [a])
    desk.commit(1, "abc", [b, c])
    desk.commit(2, "abcd", [d])
    assert desk.purge(b)
    assert desk.numbers == [1]
    assert (desk.state.revision, desk.state.last, desk.state.rebuild) == (1, 3, 1)
    assert set(desk.waiting) == {b, c, d}  # the rows themselves are not the purge's business
    assert desk.commit(1, "acd", [c, d]).number == 4
    assert desk.state.rebuild == 0


def test_a_text_by_hand_on_a_tainted_one_goes_too(desk):
    a, b = desk.note("a", "b")
    desk.commit(0, "a", [a])
    desk.commit(1, "ab", [b])
    desk.memory.summaries.write(ANNA, "a and b, nicely put")
    desk.memory.summaries.restore(ANNA, 2)
    assert desk.purge(b)
    assert desk.numbers == [1]


def test_a_purge_keeps_a_restored_text_that_never_held_it(desk):
    a, b, c = desk.note("a", "b", "c")
    desk.commit(0, "a", [a])
    desk.commit(1, "ab", [b])
    desk.memory.summaries.restore(ANNA, 1)
    desk.commit(3, "ac", [c])
    assert not desk.purge(b)
    assert desk.numbers == [1, 3, 4]
    assert (desk.current.text, desk.state.rebuild) == ("ac", 0)
    assert desk.absorbed == {a: 1, c: 4}


def test_a_first_revision_without_lineage_stays(desk):
    desk.memory.summaries.write(ANNA, "from elsewhere", author="import")
    (a,) = desk.note("a")
    desk.commit(1, "from elsewhere, and a", [a])
    desk.memory.forget(ANNA, a)
    assert (desk.current.text, desk.state.rebuild) == ("from elsewhere", 0)


def test_nothing_is_rebuilt_from_nothing(desk):
    (a,) = desk.note("a")
    desk.commit(0, "a", [a])
    report = desk.memory.forget(ANNA, a)
    assert (report.revisions, report.rebuilt) == (1, ())
    assert (desk.current, desk.numbers, desk.state.rebuild) == (None, [], 0)
    assert desk.memory.summaries.write(ANNA, "anew").number == 2


def test_a_purge_without_a_summary_is_nothing(desk):
    (a,) = desk.note("a")
    assert not desk.purge(a)
    assert not desk.purge()


def test_a_purge_ends_the_work_of_whoever_read_what_is_gone(desk):
    a, _ = desk.note("a", "b")
    desk.commit(0, "a", [a])
    with desk.store.writing():
        desk.store.save([desk.state._replace(lease=Lease("somebody", NOON + timedelta(days=99_999)))])
    assert desk.purge(a)
    assert (desk.state.lease.owner, desk.state.lease.until) == ("", None)


def test_a_purge_of_something_else_lets_the_work_go_on(desk):
    a, b = desk.note("a", "b")
    desk.commit(0, "a", [a])
    with desk.store.writing():
        desk.store.save([desk.state._replace(lease=Lease("somebody", NOON + timedelta(days=99_999)))])
    assert not desk.purge(b)
    assert desk.state.lease.owner == "somebody"


class Summaries(RuleBasedStateMachine):
    """Everything that can happen to a summary, in any order, against what must hold after each step."""

    notes = Bundle("notes")

    @initialize()
    def begin(self):
        self.opened = eunoe.open(":memory:", embedder="none", llm="none", form=False)
        self.memory = self.opened.__enter__()
        self.memory.streams.configure(ANNA, consolidation_trigger=2, consolidated_max_words=60)
        self.desk = Desk(self.memory)
        self.words: dict[str, str] = {}
        self.gone: set[str] = set()
        self.seen: dict[int, str] = {}
        self.count = 0

    def teardown(self):
        self.opened.__exit__(None, None, None)

    def _word(self):
        self.count += 1
        return f"marker{self.count:04d}x"

    def _keep(self, receipt, word):
        self.words[receipt.id] = word
        return receipt.id

    @rule(target=notes)
    def remember(self):
        word = self._word()
        text = f"Anna keeps the {word} in her garden shed."
        return self._keep(self.memory.remember(ANNA, text, kind="observation"), word)

    @rule(force=st.booleans())
    def consolidate(self, force):
        waiting = len(self.desk.waiting)
        due = force or waiting >= 2 or self.desk.state.rebuild
        revision = self.memory.summaries.consolidate(ANNA, force=force)
        assert (revision is not None) == bool(waiting and due)
        assert revision is None or self.desk.waiting == []

    @rule()
    def revise(self):
        standing = self.desk.current
        self.memory.summaries.write(ANNA, f"{standing.text if standing else 'By hand.'} Written {self._word()}.")

    @rule(choice=st.integers(0, 50))
    def restore(self, choice):
        numbers = self.desk.numbers
        if numbers:
            self.memory.summaries.restore(ANNA, numbers[choice % len(numbers)])

    @rule(target=notes, old=notes)
    def supersede(self, old):
        if self.words.get(old) is None or self.memory.get(ANNA, old).retired:
            return old
        word = self._word()
        return self._keep(self.memory.update(ANNA, old, f"Anna lost the {word} in the woods."), word)

    @rule(note=notes)
    def forget(self, note):
        if note not in self.words:
            return
        report = self.memory.forget(ANNA, note)
        assert note in report.atoms
        assert not self.desk.state.rebuild  # without a model it is rebuilt at once
        self.gone |= {self.words.pop(id) for id in report.atoms}

    @invariant()
    def nothing_forgotten_is_left(self):
        for revision in self.memory.summaries.revisions(ANNA):
            assert not [word for word in self.gone if word in revision.text]
            assert set(revision.absorbed) <= set(self.words)

    @invariant()
    def the_lineage_is_what_is_absorbed_and_no_observation_is_lost(self):
        known = {revision.number: revision for revision in self.memory.summaries.revisions(ANNA)}
        number, lineage = self.desk.state.revision, set()
        while number:
            assert lineage.isdisjoint(known[number].absorbed)
            lineage |= set(known[number].absorbed)
            number = known[number].parent
        living = {item.id for item in self.memory.list(ANNA, limit=1000).items}
        assert set(self.desk.absorbed) == lineage
        assert living <= lineage | set(self.desk.waiting)
        assert lineage.isdisjoint(self.desk.waiting)

    @invariant()
    def numbers_never_come_back(self):
        for revision in self.memory.summaries.revisions(ANNA):
            assert self.seen.setdefault(revision.number, revision.text) == revision.text
        assert max(self.seen, default=0) <= self.desk.state.last

    @invariant()
    def only_one_counts_and_what_must_be_rebuilt_can_be(self):
        current = [revision.number for revision in self.memory.summaries.revisions(ANNA) if revision.current]
        assert current == ([self.desk.state.revision] if self.desk.state.revision else [])
        assert not self.desk.state.rebuild or self.desk.waiting


TestSummaries = Summaries.TestCase
TestSummaries.settings = settings(max_examples=40, stateful_step_count=30)
