"""Vectors made after the reply: a write does not wait for them, a recall finds what was said all the same."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.letters import Letters, Slow

import eunoe
from eunoe.embed import pending_vectors, store_embedder
from eunoe.engine import Engine
from eunoe.errors import StoreFullError
from eunoe.memory import Memory

ANNA = {"user": "anna"}
ROOT = Path(__file__).parents[2]


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.held.set()


class Clock:
    """The clock of the embedder, which can be put on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = 0.0
        for module in (pending_vectors, store_embedder):
            monkeypatch.setattr(module, "time", self)

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def leap(self) -> None:
        self._ahead += 1000


def pending_count(path: Path) -> int:
    """How many vectors a store still lacks, as one sees it that makes none."""
    with eunoe.open(path, embedder="none") as memory:
        return memory.status().unembedded


def make_elsewhere(path: Path, rows: int) -> None:
    """Another process makes the oldest of the vectors that are missing."""
    with eunoe.open(path, embedder=Letters(), form=False) as other, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending_vectors, "BATCH_SIZE", rows)
        assert other._engine.pending.make_step() == rows


def leave_pending(path: Path, *texts: str) -> None:
    """Memories whose vectors are still to be made, as a process leaves them that had no embedder."""
    with eunoe.open(path, embedder=Letters()):
        pass
    with eunoe.open(path) as memory:
        memory.remember_many(ANNA, texts)
    assert pending_count(path) == len(texts)


class TestAfterTheReply:
    @pytest.fixture(autouse=True)
    def patient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """How busy the machine is must not decide what is found, nor what is made before the end."""
        monkeypatch.setattr(pending_vectors, "_RECALL_SECONDS", 60.0)
        monkeypatch.setattr(pending_vectors, "_CLOSE_SECONDS", 60.0)

    def test_a_small_write_does_not_wait_for_its_vectors(self, path: Path, slow: Slow) -> None:
        slow.held.clear()
        with eunoe.open(path, embedder=slow, form=False) as memory:
            receipts = memory.observe(ANNA, ["I play the cello.", "It rained."])
            assert [(receipt.outcome, receipt.embedded) for receipt in receipts] == [("stored", False)] * 2
            assert memory.status().unembedded == 2
            slow.held.set()
            assert memory.flush()
            status = memory.status()
            assert (status.unembedded, status.vectors) == (0, {"letters": 2})

    def test_they_are_made_at_once_without_another_call(self, path: Path, slow: Slow) -> None:
        with eunoe.open(path, embedder=slow) as memory:
            memory.flush()
            slow.awaited = "Anna plays the cello."
            memory.remember(ANNA, slow.awaited)
            assert slow.came.wait(60)

    def test_a_large_write_waits_for_them(self, path: Path, slow: Slow) -> None:
        slow.held.clear()
        with eunoe.open(path, embedder=slow) as memory:
            receipts = memory.remember_many(ANNA, [f"fact number {number}" for number in range(100)])
            assert all(receipt.embedded for receipt in receipts)
            assert memory.status().unembedded == 0

    def test_a_write_waits_again_when_too_many_wait(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending_vectors, "_MAX_BACKLOG", 2)
        slow.held.clear()
        with eunoe.open(path, embedder=slow) as memory:
            made = [memory.remember(ANNA, f"fact number {number}").embedded for number in range(5)]
            assert made == [False, False, False, True, True]
            slow.held.set()
            memory.flush()
            assert memory.status().vectors == {"letters": 5}
            assert not memory.remember(ANNA, "another fact").embedded

    def test_what_was_just_said_is_found_by_its_meaning(self, path: Path, slow: Slow) -> None:
        with eunoe.open(path, embedder=slow, form=False) as memory:
            for number in range(20):
                said = f"{'abcdefghij'[number % 10] * (number + 3)}"
                memory.observe(ANNA, [said])
                assert memory.recall(ANNA, said, recipe="dense", limit=1)[0].text == said
                new = memory.remember(ANNA, f"{said} {said}")
                assert memory.recall(ANNA, "x", vector=slow.embed_query(said), recipe="dense", limit=2)
                memory.update(ANNA, new.id, f"{said} {said} jjj")
                found = memory.recall(ANNA, f"{said} {said} jjj", recipe="dense", limit=1)[0]
                assert found.text == f"{said} {said} jjj"

    def test_the_same_is_found_however_quick_the_background_is(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def asked(name: str, between: Callable[[Memory], object]) -> list[list[tuple[str, float]]]:
            found = []
            with eunoe.open(tmp_path / name, embedder=Slow(), form=False) as memory:
                for number in range(12):
                    memory.observe(ANNA, [f"{['bead', 'jig', 'cafe'][number % 3]} number {number}", "I see."])
                    between(memory)
                    hits = memory.recall(ANNA, "a bad cage", limit=30)
                    found.append([(hit.text, hit.score) for hit in hits])
            return found

        quick = asked("quick.db", lambda memory: memory.flush())
        assert asked("usual.db", lambda memory: None) == quick
        monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
        assert asked("never.db", lambda memory: None) == quick

    def test_only_the_scopes_that_are_asked_are_waited_for(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
        with eunoe.open(path, embedder=slow) as memory:
            memory.remember(ANNA, "Anna plays the cello.")
            memory.remember("user=ben", "Ben plays the flute.")
            memory.recall(ANNA, "cello")
            assert slow.seen == ["Anna plays the cello."]
            memory.recall([ANNA, "user=ben"], "cello")
            assert slow.seen == ["Anna plays the cello.", "Ben plays the flute."]

    def test_a_recall_does_not_wait_long_for_the_background(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending_vectors, "_RECALL_SECONDS", 0.2)
        slow.held.clear()
        with eunoe.open(path, embedder=slow, form=False) as memory:
            memory.remember(ANNA, "Anna plays the cello.")
            assert slow.entered.wait(60)
            assert memory.recall(ANNA, "cello", recipe="dense")
            assert memory.status().unembedded == 0
            slow.held.set()
            assert memory.flush()
            assert memory.status().vectors == {"letters": 1}

    @pytest.mark.parametrize(("most", "left"), [(3, 0), (2, 3)])
    def test_a_recall_leaves_what_is_much_to_the_background(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch, most: int, left: int
    ) -> None:
        leave_pending(path, "one", "two", "three")
        monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
        monkeypatch.setattr(pending_vectors, "_MAX_FOR_RECALL", most)
        with eunoe.open(path, embedder=slow) as memory:
            memory.recall(ANNA, "three")
            assert memory.status().unembedded == left

    @pytest.mark.parametrize(("sure", "made"), [(0, []), (5, ["5", "4"]), (99, ["5", "4", "3", "2", "1"])])
    def test_a_recall_that_is_late_makes_what_is_sure_and_newest_first(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch, sure: int, made: list[str]
    ) -> None:
        leave_pending(path, *(f"no {number}" for number in range(1, 6)))
        monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
        monkeypatch.setattr(pending_vectors, "_STEP_TEXTS", 1)
        monkeypatch.setattr(pending_vectors, "_RECALL_SECONDS", 0.0)
        monkeypatch.setattr(pending_vectors, "_SURE_CHARACTERS", sure)
        with eunoe.open(path, embedder=slow) as memory:
            memory.recall(ANNA, "three")
            assert slow.seen == [f"no {number}" for number in made]
            assert memory.flush()
            assert memory.status().unembedded == 0

    def test_an_embedder_that_fails_holds_up_nothing(self, path: Path, slow: Slow) -> None:
        slow.broken = True
        with eunoe.open(path, embedder=slow) as memory:
            memory.observe(ANNA, ["The build fails with ERR_42.", "It rained."])
            assert memory.recall(ANNA, "ERR_42")[0].text == "The build fails with ERR_42."
            assert memory.flush()
            status = memory.status()
            assert (status.unembedded, "nobody there" in status.embedder_error) == (2, True)
        assert pending_count(path) == 2
        slow.broken = False
        with eunoe.open(path, embedder=slow) as memory:
            assert memory.recall(ANNA, "jjj", recipe="dense")
            assert memory.status().vectors == {"letters": 2}

    def test_a_store_that_cannot_be_written_is_read_all_the_same(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
        monkeypatch.setattr(pending_vectors, "_RECALL_SECONDS", 0.01)
        with eunoe.open(path, embedder=slow, form=False) as memory:
            memory.remember(ANNA, "Anna plays the cello.")
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                assert memory.recall(ANNA, "cello")[0].text == "Anna plays the cello."
                other.execute("ROLLBACK")
            assert memory.recall(ANNA, "a cello", recipe="dense")
            assert memory.status().unembedded == 0

    @pytest.mark.parametrize("error", [StoreFullError("no room left"), ZeroDivisionError("no number")])
    def test_a_failure_after_the_reply_is_logged(
        self,
        path: Path,
        slow: Slow,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        error: Exception,
    ) -> None:
        def put(*_: object) -> int:
            raise error

        with eunoe.open(path, embedder=slow, form=False) as memory, monkeypatch.context() as patch:
            patch.setattr(pending_vectors.PendingVectors, "_make", put)
            memory.remember(ANNA, "Anna plays the cello.")
            memory._engine._threads.shutdown()
        assert {record.name for record in caplog.records} == {"eunoe"}
        assert str(error) in caplog.text
        assert pending_count(path) == 0

    def test_closing_leaves_nothing_pending_count(self, path: Path, slow: Slow) -> None:
        with eunoe.open(path, embedder=slow, form=False) as memory:
            memory.observe(ANNA, ["I play the cello.", "It rained."])
        assert pending_count(path) == 0

    @pytest.mark.parametrize(("little", "left"), [(3, 0), (2, 3)])
    def test_closing_makes_up_for_little_only(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch, little: int, left: int
    ) -> None:
        leave_pending(path, "one", "two", "three")
        monkeypatch.setattr(pending_vectors, "_MAX_AT_CLOSE", little)
        with eunoe.open(path, embedder=slow):
            pass
        assert pending_count(path) == left

    def test_flush_makes_up_for_everything(self, path: Path, slow: Slow) -> None:
        leave_pending(path, *(f"number {number}" for number in range(10)))
        with eunoe.open(path, embedder=slow) as memory:
            assert not memory.flush(0)
            assert memory.flush()
            assert memory.status().unembedded == 0

    def test_flush_goes_on_where_another_process_was_quicker(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        leave_pending(path, "one", "two", "three", "four")
        monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
        monkeypatch.setattr(pending_vectors, "_STEP_TEXTS", 1)

        def meanwhile() -> None:
            if slow.seen in ([], ["one"]):
                make_elsewhere(path, 1)

        slow.meanwhile = meanwhile
        with eunoe.open(path, embedder=slow) as memory:
            assert memory.flush()
            assert slow.seen == ["one", "two", "three", "four"]
            assert memory.status().vectors == {"letters": 4}

    def test_flush_ends_where_vectors_cannot_be_kept(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        leave_pending(path, "one", "two")
        monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
        with eunoe.open(path, embedder=slow) as memory:
            monkeypatch.setattr(pending_vectors.PendingVectors, "_make", lambda *_: 0)
            assert memory.flush()
            assert memory.status().unembedded == 2

    def test_a_memory_forgotten_meanwhile_leaves_no_vector(self, path: Path, slow: Slow) -> None:
        slow.held.clear()
        with eunoe.open(path, embedder=slow) as memory:
            kept = memory.remember(ANNA, "Anna plays the cello.")
            gone = memory.remember(ANNA, "Anna has shingles.")
            assert slow.entered.wait(60)
            report = memory.forget(ANNA, gone.id, verify=True)
            assert report.verified
            slow.held.set()
            assert memory.flush()
            assert memory.status().vectors == {"letters": 1}
            assert memory.recall(ANNA, "Anna plays the cello.", recipe="dense")[0].id == kept.id
        assert b"shingles" not in path.read_bytes()

    def test_another_opening_makes_what_it_asks_for_itself(self, path: Path, slow: Slow) -> None:
        other = Slow()
        slow.held.clear()
        with eunoe.open(path, embedder=slow) as first, eunoe.open(path, embedder=other) as second:
            first.remember(ANNA, "Anna plays the cello.")
            assert slow.entered.wait(60)
            assert second.recall(ANNA, "Anna plays the cello.", recipe="dense", limit=1)
            assert other.seen == ["Anna plays the cello."]
            version = first.streams.list()[0].version
            slow.held.set()
            assert first.flush()
            assert first.status().vectors == {"letters": 1}
            assert first.streams.list()[0].version == version

    def test_what_a_killed_process_left_is_made_by_the_next(self, path: Path) -> None:
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)])},
        )
        with child:
            assert child.stdout
            assert child.stdout.readline() == "stored\n"
            child.send_signal(signal.SIGKILL)
        assert pending_count(path) == 1
        with eunoe.open(path, embedder=Slow()) as memory:
            assert memory.recall(ANNA, "Anna plays the cello.", recipe="dense", limit=1)
            assert memory.status().vectors == {"letters": 1}

    def test_many_threads_may_write_and_ask(self, path: Path, slow: Slow) -> None:
        with eunoe.open(path, embedder=slow, form=False) as memory:

            def talk(who: int) -> None:
                for number in range(10):
                    said = f"{'abcdefghij'[number] * (who + 5)}"
                    memory.observe(f"user=u{who}", [said])
                    found.append(memory.recall(f"user=u{who}", said, recipe="dense", limit=1)[0].text == said)

            found: list[bool] = []
            threads = [threading.Thread(target=talk, args=(who,)) for who in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert found == [True] * 40
            memory.flush()
            assert memory.status().vectors == {"letters": 40}

    def test_what_another_process_left_is_found_within_a_minute(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = Clock(monkeypatch)
        with eunoe.open(path, embedder=slow, form=False) as memory:
            memory.remember(ANNA, "Anna plays the cello.")
            assert memory.flush()
            slow.awaited = "Ben plays the flute."
            with eunoe.open(path) as other:
                other.remember("user=ben", slow.awaited)
            clock.leap()
            memory.recall(ANNA, "cello")
            assert slow.came.wait(60)

    def test_vectors_of_two_lengths_are_not_mixed(
        self, path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)

        def write_elsewhere() -> None:
            slow.meanwhile = lambda: None
            with eunoe.open(path, embedder=Letters(alphabet="abcd")) as other:
                other.remember(ANNA, "Ben plays the flute.")

        with eunoe.open(path, embedder=slow, form=False) as memory:
            memory.remember(ANNA, "Anna plays the cello.")
            slow.meanwhile = write_elsewhere
            assert memory.flush()
            status = memory.status()
            assert (status.unembedded, status.vectors) == (1, {"letters": 1})
            assert "10 dimensions now" in status.embedder_error


KILLED = """
import sys, threading
import eunoe
from tests.support.letters import Slow
slow = Slow()
slow.held.clear()
memory = eunoe.open(sys.argv[1], embedder=slow)
memory.remember({"user": "anna"}, "Anna plays the cello.")
slow.entered.wait()
print("stored", flush=True)
threading.Event().wait()
"""
