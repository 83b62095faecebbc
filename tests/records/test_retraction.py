"""What was taken back stays in the log, and nothing else knows it any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eunoe
from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory
from eunoe.model.message import Message

TALK = "agent=cook/session=s1/user=anna"
ANNA = "user=anna"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        yield memory


def say(id: str, text: str, **fields: Any) -> Mapping[str, Any]:
    return {"id": id, "content": text, "role": "user", **fields}


def texts(memory: Memory, **options: Any) -> list[str]:
    return [item.text for item in memory.list(ANNA, **options).items]


def test_it_is_readable_and_found_by_nothing(memory: Memory) -> None:
    memory.observe(ANNA, [say("m1", "I live in Paris with Bruno."), say("m2", "I live in Rome.")])
    memory.recall(ANNA, "Paris")  # the index is there already
    assert [receipt.outcome for receipt in memory.retract(ANNA, ["m1"])] == ["stored"]
    assert [receipt.outcome for receipt in memory.retract(ANNA, ["m1"])] == ["duplicate"]
    taken = memory.get(ANNA, "m1")
    assert isinstance(taken, Message)
    assert (taken.text, taken.position) == ("I live in Paris with Bruno.", 0)
    assert taken.retired
    assert texts(memory) == ["I live in Rome."]
    assert texts(memory, retired=True) == ["I live in Paris with Bruno.", "I live in Rome."]
    assert [hit.id for hit in memory.recall(ANNA, "Paris Bruno")] == []
    assert [hit.id for hit in memory.recall(ANNA, "live", expired=True)] == ["m2"]
    assert [hit.id for hit in memory.recall(ANNA, "Paris", known_at=taken.recorded)] == ["m1"]
    assert "Paris" not in memory.context(TALK, "Where do I live?").text
    with pytest.raises(NotFoundError):
        memory.graph.neighbours(ANNA, "Bruno")
    assert (memory.status().messages, memory.status().retired) == (1, 1)


def test_what_is_restored_is_as_before(memory: Memory) -> None:
    memory.observe(ANNA, [say("m1", "I live in Paris."), say("m2", "I live in Rome.")])
    before = memory.list(ANNA)
    memory.retract(ANNA, ["m1", "m2"])
    assert memory.list(ANNA).items == ()
    receipts = memory.retract(ANNA, ["m2", "m1"], retracted=False)
    assert [(receipt.outcome, receipt.id) for receipt in receipts] == [("stored", "m2"), ("stored", "m1")]
    assert memory.list(ANNA) == before
    assert {hit.id for hit in memory.recall(ANNA, "Paris or Rome")} == {"m1", "m2"}


def test_other_openings_see_it_at_once(memory: Memory, path: Path) -> None:
    memory.observe(ANNA, [say("m1", "I live in Paris.")])
    with eunoe.open(path, embedder="none", llm="none", form=False) as other:
        assert other.recall(ANNA, "Paris")
        memory.retract(ANNA, "m1")
        assert not other.recall(ANNA, "Paris")
        memory.retract(ANNA, "m1", retracted=False)
        assert other.recall(ANNA, "Paris")


def test_only_messages_are_taken_back_and_all_or_none(memory: Memory) -> None:
    memory.observe(ANNA, [say("m1", "Hello.")])
    memory.remember(ANNA, "Anna likes tea.", id="fact")
    for ids, error in ((["m1", "fact"], InputError), (["m1", "nothing"], NotFoundError)):
        with pytest.raises(error):
            memory.retract(ANNA, ids)
    with pytest.raises(NotFoundError):
        memory.retract("user=ben", "m1")
    assert memory.retract(ANNA, []) == []
    assert texts(memory) == ["Hello.", "Anna likes tea."]
    memory.retract(ANNA, "m1")
    with pytest.raises(InputError, match="retracted=False"):
        memory.streams.unarchive(ANNA, "m1")


class TestObserve:
    def test_a_retracted_message_that_comes_again_is_known(self, memory: Memory) -> None:
        said = [say("m1", "With an id."), {"content": "With a time.", "time": 1_700_000_000}]
        first = memory.observe(ANNA, said)
        memory.retract(ANNA, [receipt.id for receipt in first])
        again = memory.observe(ANNA, said)
        assert [(receipt.outcome, receipt.id) for receipt in again] == [("duplicate", each.id) for each in first]
        assert texts(memory) == []
        assert memory.observe(ANNA, say("m1", "Other words."))[0].outcome == "conflict"

    def test_a_history_without_it_falls_into_step(self, memory: Memory) -> None:
        first = memory.observe(ANNA, ["Hello.", "An answer.", "A better answer."])
        memory.retract(ANNA, first[1].id)
        again = memory.observe(ANNA, ["Hello.", "A better answer.", "Thanks."])
        assert [receipt.outcome for receipt in again] == ["duplicate", "duplicate", "stored"]
        assert texts(memory) == ["Hello.", "A better answer.", "Thanks."]

    def test_what_was_said_again_keeps_its_place(self, memory: Memory) -> None:
        (first,) = memory.observe(ANNA, "Hello.")
        memory.retract(ANNA, first.id)
        (second,) = memory.observe(ANNA, "Hello.")
        assert second.outcome == "stored"
        memory.retract(ANNA, first.id, retracted=False)
        assert [item.id for item in memory.list(ANNA).items] == [first.id, second.id]


class TestForming:
    def formed(self, memory: Memory) -> list[str]:
        atoms = memory.recent(user="anna").items
        return sorted({atom.text for atom in atoms})

    def test_nothing_is_learned_from_it(self, memory: Memory) -> None:
        memory.observe(TALK, [say("m1", "I am allergic to peanuts."), say("m2", "I am allergic to milk.")])
        assert memory.status().due_messages == 2
        memory.retract(TALK, "m1")
        assert memory.status().due_messages == 1
        assert memory.form(TALK).messages == 1
        assert self.formed(memory)
        assert not any("peanuts" in text for text in self.formed(memory))

    def test_what_the_cursor_passed_is_learned_once_it_is_restored(self, memory: Memory) -> None:
        memory.observe(TALK, [say("m1", "I am allergic to peanuts."), say("m2", "I am allergic to milk.")])
        memory.retract(TALK, "m1")
        memory.form(TALK)
        memory.retract(TALK, "m1", retracted=False)
        assert memory.status().due_messages == 1
        assert memory.form(TALK).messages == 1
        assert any("peanuts" in text for text in self.formed(memory))
        assert memory.status().due_messages == 0
        memory.retract(TALK, "m1")
        memory.retract(TALK, "m1", retracted=False)
        before = self.formed(memory)
        memory.form(TALK)
        assert self.formed(memory) == before

    def test_what_another_forms_is_no_job(self, memory: Memory) -> None:
        memory.observe(TALK, [say("m1", "I like tea.", former="host"), say("m2", "I am allergic to milk.")])
        memory.retract(TALK, "m1")
        memory.form(TALK)
        memory.retract(TALK, "m1", retracted=False)
        assert memory.status().due_messages == 0

    @pytest.mark.parametrize("is_retracted", [False, True])
    def test_it_is_taken_back_while_it_is_read(self, path: Path, is_retracted: bool) -> None:
        def answer(prompt: Prompt) -> Any:
            if is_retracted:
                memory.retract(TALK, "m1")
            found = {"kind": "observation", "text": "Anna is allergic to peanuts.", "turns": [1], "key": None}
            return {"memories": [{"stream": 1, **found}]}

        with eunoe.open(path, embedder="none", llm=ScriptedLlm(answer), form=False) as memory:
            memory.observe(TALK, [say("m1", "I am allergic to peanuts.")])
            memory.form(TALK)
            assert any("peanuts" in text for text in self.formed(memory)) is not is_retracted


class TestTransfer:
    def export(self, memory: Memory, tmp_path: Path) -> list[str]:
        memory.admin.export(ANNA, tmp_path / "lines.jsonl")
        return (tmp_path / "lines.jsonl").read_text("utf-8").splitlines()

    def test_it_moves_as_it_is(self, memory: Memory, tmp_path: Path) -> None:
        memory.observe(ANNA, [say("m1", "I live in Paris."), say("m2", "I live in Rome.")])
        memory.retract(ANNA, "m1")
        lines = self.export(memory, tmp_path)
        with eunoe.open(tmp_path / "other.db", embedder="none", llm="none", form=False) as other:
            assert other.admin.import_(lines).stored == 2
            assert other.list(ANNA, retired=True) == memory.list(ANNA, retired=True)
            assert [hit.id for hit in other.recall(ANNA, "live")] == ["m2"]
            assert other.admin.import_(lines).stored == 0
            assert other.form(ANNA).messages == 1

    def test_it_is_taken_back_where_it_is_known(self, memory: Memory, tmp_path: Path) -> None:
        memory.observe(ANNA, [say("m1", "I live in Paris.")])
        early = self.export(memory, tmp_path)
        memory.retract(ANNA, "m1")
        late = self.export(memory, tmp_path)
        memory.admin.import_(early)
        assert texts(memory) == []
        with eunoe.open(tmp_path / "other.db", embedder="none", llm="none", form=False) as other:
            other.admin.import_(early)
            other.admin.import_(late)
            assert other.list(ANNA).items == ()
            assert other.status().due_messages == 0


def test_forgetting_reaches_it(memory: Memory) -> None:
    memory.observe(ANNA, [say("message-one", "The secret is 4711."), say("m2", "Hello.")])
    memory.retract(ANNA, "message-one")
    report = memory.forget(ANNA, "message-one", verify=True)
    assert (report.messages, report.verified) == (("message-one",), True)
    with pytest.raises(NotFoundError):
        memory.retract(ANNA, "message-one", retracted=False)
    assert memory.observe(ANNA, say("message-one", "The secret is 4711."))[0].outcome == "forgotten"


def test_a_message_with_the_same_identity_keeps_it_retracted(memory: Memory, tmp_path: Path) -> None:
    """As an import can bring it: the same words and time under another id."""
    said = {"content": "Hello.", "time": 1_700_000_000}
    with eunoe.open(tmp_path / "other.db", embedder="none", llm="none", form=False) as other:
        other.observe(ANNA, said)
        other.admin.export(ANNA, tmp_path / "lines.jsonl")
    (first,) = memory.observe(ANNA, said)
    memory.retract(ANNA, first.id)
    memory.admin.import_(tmp_path / "lines.jsonl")
    assert len(texts(memory)) == 1
    with pytest.raises(ConflictError, match="said again"):
        memory.retract(ANNA, first.id, retracted=False)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=20))
def test_whatever_comes_back_the_log_is_what_was_said(steps: list[tuple[int, bool]]) -> None:
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
        said = [say(f"m{number}", f"Sentence number {number}.") for number in range(6)]
        memory.observe(TALK, said)
        gone: set[str] = set()
        for number, retracted in steps:
            memory.retract(TALK, f"m{number}", retracted=retracted)
            gone = gone | {f"m{number}"} if retracted else gone - {f"m{number}"}
            memory.observe(TALK, said)
        assert [item.id for item in memory.list(TALK, retired=True).items] == [each["id"] for each in said]
        open_ids = [each["id"] for each in said if each["id"] not in gone]
        assert [item.id for item in memory.list(TALK).items] == open_ids
        assert sorted(hit.id for hit in memory.recall(TALK, "Sentence")) == open_ids
        assert memory.status().due_messages == len(open_ids)
        assert memory.admin.check()
