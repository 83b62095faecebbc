"""New memories that wait until somebody has looked at them: stored, listed, and out of everything else."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import AccessError, ConflictError, InputError, NotFoundError
from eunoe.llm.contract import ScriptedLlm
from eunoe.memory import Memory

ANNA = "user=anna"
ATOMS = ("fact", "observation")


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        yield memory


def turn_on(memory: Memory, review: str = "all", **changes: Any) -> None:
    memory.streams.configure(ANNA, review=review, extraction_fields=["fact", "observation"], **changes)


def say(memory: Memory, *texts: str, **fields: Any) -> eunoe.FormReport:
    memory.observe(ANNA, [{"role": "user", "content": text, **fields} for text in texts])
    return memory.form(ANNA)


def waiting(memory: Memory) -> dict[str, eunoe.Atom]:
    return {item.text: item for item in memory.recent(in_review=True).items if isinstance(item, eunoe.Atom)}


def recalled(memory: Memory, query: str) -> list[str]:
    return [hit.text for hit in memory.recall(ANNA, query, kinds=ATOMS)]


def move(memory: Memory) -> tuple[str, str]:
    """A home that is in force, and another one that waits to take its place."""
    turn_on(memory, "off")
    say(memory, "I live in Turin.", time="2024-01-01")
    (old,) = memory.recent().items
    turn_on(memory)
    say(memory, "I live in Rome now.", time="2024-03-01")
    (new,) = waiting(memory).values()
    return old.id, new.id


class TestWaiting:
    def test_it_is_off_unless_it_is_turned_on(self, memory: Memory) -> None:
        report = say(memory, "I am allergic to peanuts.")
        assert (len(report.stored), report.in_review) == (1, 0)
        assert waiting(memory) == {}

    @pytest.mark.parametrize(
        ("of_session", "of_user", "expected"),
        [("off", "all", 1), ("uncertain", "all", 1), ("all", "off", 1), ("off", "off", 0)],
    )
    def test_a_session_takes_the_strictest_review_of_its_users(
        self, memory: Memory, of_session: str, of_user: str, expected: int
    ) -> None:
        session = "session=s1/user=anna"
        turn_on(memory, of_user)
        memory.streams.configure(session, review=of_session, extraction_fields=["fact"])
        memory.observe(session, [{"role": "user", "content": "I am allergic to peanuts."}])
        memory.form(session)
        streams = {stream.scope.text: stream for stream in memory.streams.list(user="anna")}
        assert streams[session].in_review == expected
        assert streams[ANNA].in_review == (of_user == "all")
        assert any(hit.kind == "fact" for hit in memory.recall(session, "peanuts")) is (expected == 0)

    def test_a_group_takes_the_strictest_review_of_those_who_speak(self, memory: Memory) -> None:
        turn_on(memory)
        memory.streams.configure("session=s1", extraction_fields=["fact"])
        for name in ("ben", "anna"):
            message = {"role": "user", "user": name, "content": f"I am {name} and I am allergic to peanuts."}
            memory.observe("session=s1", [message])
        memory.form("session=s1")
        streams = {stream.scope.text: stream for stream in memory.streams.list()}
        assert streams["session=s1"].facts == 0 < streams["session=s1"].in_review
        assert streams["user=ben"].in_review == 0

    def test_what_waits_is_listed_and_counted_and_nowhere_else(self, memory: Memory) -> None:
        turn_on(memory, consolidation_trigger=1, fact_extraction_max=0)
        report = say(memory, "I am allergic to peanuts.", "I love Mozart.")
        assert len(report.stored) == report.in_review == memory.status().in_review == 2
        (stream,) = memory.streams.list(user="anna")
        assert (stream.in_review, stream.facts, stream.observations) == (2, 0, 0)
        assert (memory.status().facts, memory.status().observations) == (0, 0)
        for text, atom in waiting(memory).items():
            assert atom.in_review
            assert memory.get(ANNA, atom.id) in memory.list(ANNA).items
            assert text in [item.text for item in memory.recent().items]
        assert memory.recent(in_review=False).items == ()
        assert recalled(memory, "peanuts Mozart") == []
        assert all(hit.kind == "message" for hit in memory.look_up(ANNA, "peanuts Mozart"))
        assert [hit.kind for hit in memory.recall(ANNA, "peanuts", as_of="2124-01-01", known_at="2124-01-01")] == [
            "message", "message",
        ]  # fmt: skip
        context = memory.context(ANNA)
        assert "peanuts" not in context.static
        assert report.consolidated == ()
        assert memory.summaries.consolidate(ANNA) is None
        assert memory.streams.apply_retention(ANNA, keep_best=1).archived == ()

    def test_the_graph_and_files_leave_it_out(self, memory: Memory) -> None:
        kept = memory.remember(ANNA, "Anna Berg met Felix Cole.", files=["a.py"])
        assert memory.by_files(ANNA, ["a.py"])
        memory.review(ANNA, kept.id, keep=False)
        assert memory.by_files(ANNA, ["a.py"]) == []
        assert memory.graph.neighbours(ANNA).entities == ()
        with pytest.raises(NotFoundError):
            memory.graph.neighbours(ANNA, "Felix Cole")
        assert memory.graph.extract(ANNA, ask=False).due == 0
        memory.review(ANNA, kept.id)
        assert memory.by_files(ANNA, ["a.py"])
        assert memory.graph.neighbours(ANNA, "Felix Cole").entities

    def test_the_same_said_again_waits_once(self, memory: Memory) -> None:
        turn_on(memory)
        say(memory, "I love Mozart.")
        report = say(memory, "I really love Mozart.")
        assert (report.merged, report.in_review, len(waiting(memory))) == (1, 0, 1)


class TestUncertain:
    def test_what_is_worth_little_by_the_rules_waits(self, memory: Memory) -> None:
        turn_on(memory, "uncertain", observation_extraction_min=2, observation_extraction_max=5)
        say(memory, "I am allergic to peanuts.", "Tom made a soup with beans for all of us.")
        assert not any("peanuts" in text for text in waiting(memory))
        assert recalled(memory, "peanuts") == ["anna: I am allergic to peanuts."]
        assert len(waiting(memory)) == memory.status().in_review == 1

    def test_what_closes_another_waits(self, memory: Memory) -> None:
        turn_on(memory, "uncertain")
        say(memory, "I live in Turin.", time="2024-01-01")
        assert waiting(memory) == {}
        say(memory, "I live in Rome now.", time="2024-03-01")
        (atom,) = waiting(memory).values()
        assert [memory.get(ANNA, id).text for id in atom.replaces] == ["anna: I live in Turin."]
        assert recalled(memory, "Where does Anna live?") == ["anna: I live in Turin."]

    def test_an_answer_that_turns_barely_bear_out_waits(self, path: Path) -> None:
        said = "I moved to Oslo in May because of the harbour job that my cousin found for me."
        answer = {
            "memories": [
                {"kind": "fact", "text": said, "turns": [1]},
                {"kind": "fact", "text": "Anna works in the harbour of Oslo.", "turns": [1]},
            ]
        }
        with eunoe.open(path, embedder="none", llm=ScriptedLlm([answer] * 3), form=False) as memory:
            turn_on(memory, "uncertain", fact_extraction_max=5)
            say(memory, said)
            assert list(waiting(memory)) == ["Anna works in the harbour of Oslo."]


class TestKeeping:
    def test_what_is_kept_is_recalled(self, memory: Memory) -> None:
        turn_on(memory)
        say(memory, "I am allergic to peanuts.")
        (atom,) = waiting(memory).values()
        assert [receipt.outcome for receipt in memory.review(ANNA, [atom.id])] == ["stored"]
        assert [receipt.outcome for receipt in memory.review(ANNA, atom.id)] == ["duplicate"]
        assert recalled(memory, "peanuts") == [atom.text]
        assert atom.text in memory.context(ANNA).static
        assert memory.status().in_review == 0
        assert not memory.get(ANNA, atom.id).in_review

    def test_what_is_kept_takes_the_place_of_the_old_one(self, memory: Memory) -> None:
        old, new = move(memory)
        assert recalled(memory, "Where does Anna live?") == ["anna: I live in Turin."]
        assert memory.get(ANNA, old).retired is None
        assert [version.id for version in memory.history(ANNA, old)] == [old]
        (receipt,) = memory.review(ANNA, new)
        assert (receipt.outcome, receipt.closed) == ("superseded", old)
        assert recalled(memory, "Where does Anna live?") == ["anna: I live in Rome now."]
        assert [version.id for version in memory.history(ANNA, new)] == [old, new]
        assert memory.get(ANNA, new).replaces == ()
        assert f"{memory.get(ANNA, old).valid_to:%Y-%m-%d}" == "2024-03-01"

    def test_undone_the_old_one_is_in_force_again(self, memory: Memory) -> None:
        old, new = move(memory)
        before = memory.get(ANNA, old), memory.get(ANNA, new)
        memory.review(ANNA, new)
        assert [receipt.outcome for receipt in memory.review(ANNA, new, keep=False)] == ["stored"]
        assert (memory.get(ANNA, old), memory.get(ANNA, new)) == before
        assert recalled(memory, "Where does Anna live?") == ["anna: I live in Turin."]
        memory.review(ANNA, new)
        assert [version.id for version in memory.history(ANNA, new)] == [old, new]

    def test_what_else_the_old_one_said_is_kept_and_undone(self, memory: Memory) -> None:
        turn_on(memory, "off")
        say(memory, "I live in Turin with my wife Eva.", time="2024-01-01")
        turn_on(memory)
        say(memory, "I live in Rome now.", time="2024-03-01")
        (new,) = waiting(memory).values()
        rest = "anna: I live in Turin with my wife Eva. (until 2024-03-01)"
        for _ in range(2):
            memory.review(ANNA, new.id)
            assert rest in recalled(memory, "Who is Eva?")
            memory.review(ANNA, new.id, keep=False)
            assert recalled(memory, "Who is Eva?") == ["anna: I live in Turin with my wife Eva."]

    def test_a_rejected_one_leaves_the_old_one_as_it_was(self, memory: Memory) -> None:
        old, new = move(memory)
        before = memory.get(ANNA, old)
        assert memory.forget(ANNA, new, verify=True).atoms == (new,)
        assert memory.get(ANNA, old) == before
        assert memory.status().in_review == 0

    def test_the_old_one_may_be_forgotten_meanwhile(self, memory: Memory) -> None:
        old, new = move(memory)
        report = memory.forget(ANNA, old, verify=True)
        (said,) = (id for ids in report.held_by.values() for id in ids)
        assert (report.atoms, report.traces, report.verified) == ((old,), (), False)
        assert memory.get(ANNA, said).text == "I live in Turin."
        assert [receipt.outcome for receipt in memory.review(ANNA, new)] == ["stored"]
        assert recalled(memory, "Where does Anna live?") == ["anna: I live in Rome now."]

    def test_a_pinned_one_is_not_closed(self, memory: Memory) -> None:
        old, new = move(memory)
        memory.pin(ANNA, old)
        memory.review(ANNA, new)
        assert memory.get(ANNA, old).retired is None

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_of_two_that_wait_the_later_one_wins(self, memory: Memory, order: tuple[int, int]) -> None:
        _, rome = move(memory)
        say(memory, "I live in Oslo now.", time="2024-05-01")
        oslo = next(atom.id for text, atom in waiting(memory).items() if "Oslo" in text)
        ids = [rome, oslo]
        memory.review(ANNA, ids[order[0]])
        if memory.get(ANNA, ids[order[1]]).retired is None:
            memory.review(ANNA, ids[order[1]])
        assert recalled(memory, "Where does Anna live?") == ["anna: I live in Oslo now."]
        assert memory.status().in_review == 0

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_one_that_comes_late_closes_nothing_that_was_said_after_it(
        self, memory: Memory, order: tuple[int, int]
    ) -> None:
        _, rome = move(memory)
        say(memory, "I live in Bern now.", time="2024-02-01")
        bern = next(atom.id for text, atom in waiting(memory).items() if "Bern" in text)
        for place in order:
            memory.review(ANNA, (rome, bern)[place])
        assert recalled(memory, "Where does Anna live?") == ["anna: I live in Rome now."]

    def test_a_later_one_by_hand_closes_what_waits(self, memory: Memory) -> None:
        old, new = move(memory)
        key = memory.get(ANNA, new).metadata["memory_key"]
        memory.remember(ANNA, "Anna lives in Oslo.", metadata={"memory_key": key}, people=["anna"])
        assert waiting(memory) == {}
        with pytest.raises(ConflictError, match="closed by"):
            memory.review(ANNA, new)
        assert memory.get(ANNA, old).retired is not None

    def test_an_earlier_one_by_hand_is_in_force_until_the_later_one_is_kept(self, memory: Memory) -> None:
        _, new = move(memory)
        key = memory.get(ANNA, new).metadata["memory_key"]
        memory.remember(ANNA, "Anna lives in Bern.", metadata={"memory_key": key}, people=["anna"], time="2024-02-01")
        assert recalled(memory, "Where does Anna live?") == ["Anna lives in Bern."]
        memory.review(ANNA, new)
        assert recalled(memory, "Where does Anna live?") == ["anna: I live in Rome now."]


class TestByHand:
    def test_to_correct_one_keeps_it(self, memory: Memory) -> None:
        old, new = move(memory)
        receipt = memory.update(ANNA, new, "Anna lives in Rome, near the river.")
        assert recalled(memory, "Where does Anna live?") == ["Anna lives in Rome, near the river."]
        assert [version.id for version in memory.history(ANNA, old)] == [old, new, receipt.id]
        assert memory.status().in_review == 0

    def test_to_pin_one_keeps_it(self, memory: Memory) -> None:
        old, new = move(memory)
        memory.pin(ANNA, new)
        assert memory.get(ANNA, new).pinned
        assert memory.get(ANNA, old).superseded_by == new
        with pytest.raises(ConflictError, match="pinned"):
            memory.review(ANNA, new, keep=False)

    def test_to_remember_the_same_keeps_it(self, memory: Memory) -> None:
        turn_on(memory)
        say(memory, "I am allergic to peanuts.")
        (atom,) = waiting(memory).values()
        assert memory.remember(ANNA, atom.text, kind=atom.kind).outcome == "duplicate"
        assert recalled(memory, "peanuts") == [atom.text]

    def test_what_a_summary_holds_cannot_wait(self, memory: Memory) -> None:
        note = memory.remember(ANNA, "Anna seems tired.", kind="observation")
        memory.summaries.consolidate(ANNA)
        with pytest.raises(ConflictError, match="summary"):
            memory.review(ANNA, note.id, keep=False)


class TestMisuse:
    def test_all_or_none(self, memory: Memory) -> None:
        _, new = move(memory)
        with pytest.raises(NotFoundError):
            memory.review(ANNA, [new, "nothing"])
        assert memory.get(ANNA, new).in_review

    def test_messages_are_not_reviewed(self, memory: Memory) -> None:
        (receipt,) = memory.observe(ANNA, "hello")
        with pytest.raises(InputError, match="message"):
            memory.review(ANNA, receipt.id)

    def test_it_needs_the_right_to_write(self, memory: Memory) -> None:
        _, new = move(memory)
        with pytest.raises(AccessError, match="write"):
            memory.restricted(rights=["read"]).review(ANNA, new)
        with pytest.raises(AccessError, match="out of reach"):
            memory.restricted(scopes=["user=ben"]).review(ANNA, new)
        assert memory.restricted(scopes=["user=ben"]).status().in_review == 0
        assert memory.restricted(scopes=["user=anna"]).status().in_review == 1


def test_an_export_takes_it_along(memory: Memory, tmp_path: Path) -> None:
    old, new = move(memory)
    lines = io.StringIO()
    memory.admin.export(ANNA, lines)
    with eunoe.open(tmp_path / "other.db", embedder="none", llm="none") as other:
        other.admin.import_(lines.getvalue().splitlines())
        assert other.get(ANNA, new) == memory.get(ANNA, new)
        assert recalled(other, "Where does Anna live?") == ["anna: I live in Turin."]
        other.review(ANNA, new)
        assert other.get(ANNA, old).superseded_by == new
