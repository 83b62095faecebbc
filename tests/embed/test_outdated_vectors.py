"""A store of a model that the package has replaced: it opens, says so, is searched, and is embedded anew on the way."""

import logging
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.support import vowels
from tests.support.letters import Letters
from tests.support.vowels import NEW, OLD, Vowels, make_old
from tests.support.waiting import wait_until

import eunoe
from eunoe.embed import pending_vectors, store_embedder
from eunoe.embed.replaced_models import REPLACED
from eunoe.engine import Engine
from eunoe.errors import EmbedderError, ModelMismatchError
from eunoe.memory import Memory
from eunoe.model.result import Reembedding

ANNA, BEN = "user=anna", "user=ben"
ROOT = Path(__file__).parents[2]
TEXTS = [f"Anna bought a {word}." for word in ("cello", "flute", "harp", "drum", "horn", "lute")]


@pytest.fixture
def new(monkeypatch: pytest.MonkeyPatch) -> Vowels:
    """The package has a new model in the place of the old one."""
    model = Vowels()
    monkeypatch.setitem(REPLACED, OLD, model)  # type: ignore[arg-type]
    return model


@pytest.fixture
def no_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made in the background, and a step is two texts: what is made can be counted."""
    monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
    monkeypatch.setattr(pending_vectors, "_STEP_TEXTS", 2)
    monkeypatch.setattr(pending_vectors, "_BLOCK_RECORDS", 2)


@pytest.fixture
def old_store(path: Path) -> Path:
    make_old(path, ANNA, TEXTS)
    return path


def make_steps(memory: Memory, count: int = 1) -> None:
    for _ in range(count):
        memory._engine.pending.make_step()


def assert_all_new(memory: Memory, count: int) -> None:
    status = memory.status()
    assert (status.embedder, status.vectors, status.reembedding) == (NEW, {NEW: count}, None)
    assert (status.unembedded, status.embedder_error) == (0, "")
    assert memory.admin.check()


class TestOpening:
    @pytest.mark.usefixtures("no_background")
    @pytest.mark.parametrize("is_named", [False, True])
    def test_a_store_of_the_old_model_opens_and_says_so(self, old_store: Path, new: Vowels, is_named: bool) -> None:
        with eunoe.open(old_store, embedder=new if is_named else "auto") as memory:
            status = memory.status()
            assert (status.embedder, status.embedder_error, status.unembedded) == (NEW, "", 0)
            assert status.reembedding == Reembedding(OLD, NEW, 0, 6)
            make_steps(memory)
            assert memory.status().reembedding == Reembedding(OLD, NEW, 2, 6)
            assert memory.status().vectors == {OLD: 4, NEW: 2}
            assert memory.admin.check()

    @pytest.mark.usefixtures("no_background", "new")
    def test_it_is_logged_once(self, old_store: Path, new: Vowels, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "eunoe")
        for _ in range(3):
            with eunoe.open(old_store, embedder=new):
                pass
        assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
            "vowels has replaced letters; vectors are made anew behind replies"
        ]

    def test_without_an_embedder_nothing_changes(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store, embedder="none") as memory:
            assert memory.recall(ANNA, "cello")[0].text == TEXTS[0]
            assert (memory.status().embedder, memory.status().reembedding) == (OLD, None)
        assert new.seen == []

    def test_who_opened_it_without_an_embedder_stays_without(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store, embedder="none") as memory, eunoe.open(old_store, embedder=new) as other:
            assert other.admin.reembed() == 6
            assert memory.recall(ANNA, "cello")[0].text == TEXTS[0]
            memory.remember(ANNA, "Anna sold the drum.")
            assert memory.embedder is None
            assert memory.status().unembedded == 1

    @pytest.mark.usefixtures("new")
    def test_a_model_that_replaces_nothing_is_refused(self, old_store: Path) -> None:
        with pytest.raises(ModelMismatchError, match="letters, not wordllama"):
            eunoe.open(old_store, embedder="static")
        with eunoe.open(old_store, embedder="none") as memory:
            assert memory.status().vectors == {OLD: 6}

    @pytest.mark.usefixtures("no_background")
    def test_a_store_that_others_write_is_searched_by_words_first(
        self, old_store: Path, new: Vowels, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store_embedder, "_REPLACE_SECONDS", 0.01)
        with closing(sqlite3.connect(old_store, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with eunoe.open(old_store) as memory:
                assert memory.recall(ANNA, "cello")[0].text == TEXTS[0]
                error = "vowels has replaced letters, but the store cannot be written"
                assert (memory.status().embedder, error in memory.status().embedder_error) == (OLD, True)
                other.execute("ROLLBACK")
                memory.recall(ANNA, "cello")
                assert (memory.status().embedder, memory.status().embedder_error) == (NEW, "")
                assert memory.admin.reembed() == 6
                assert_all_new(memory, 6)

    @pytest.mark.usefixtures("no_background", "new")
    def test_reembed_waits_for_a_store_that_was_held_when_it_was_opened(self, old_store: Path) -> None:
        with closing(sqlite3.connect(old_store, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with eunoe.open(old_store) as memory:
                assert memory.status().embedder == OLD
                other.execute("ROLLBACK")
                assert memory.admin.reembed() == 6
                assert_all_new(memory, 6)

    def test_a_new_model_that_cannot_be_had_leaves_words(
        self, old_store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(REPLACED, OLD, "nowhere")
        with eunoe.open(old_store) as memory:
            assert memory.recall(ANNA, "cello")[0].text == TEXTS[0]
            assert "'nowhere' is not an embedder" in memory.status().embedder_error
            assert memory.status().vectors == {OLD: 6}

    def test_the_older_package_finds_a_whole_store(self, old_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "_work_after_reply", lambda self: None)
            patch.setattr(pending_vectors, "_STEP_TEXTS", 2)
            patch.setitem(REPLACED, OLD, Vowels())
            with eunoe.open(old_store) as memory:
                make_steps(memory)
        with eunoe.open(old_store) as memory:  # the older one replaces nothing
            assert memory.recall(ANNA, "cello")[0].text == TEXTS[0]
            assert "vowels" in memory.status().embedder_error
            memory.remember(ANNA, "Anna sold the drum.")
            assert memory.admin.reembed(Letters(OLD)) == 3
            assert memory.status().vectors == {OLD: 7}
            assert memory.recall(ANNA, "Anna sold the drum.", recipe="dense")[0].text == "Anna sold the drum."


@pytest.mark.usefixtures("no_background")
class TestMeanwhile:
    def test_vectors_of_the_old_model_are_compared_with_nothing(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store) as memory:
            assert memory.recall(ANNA, TEXTS[0], recipe="dense") == []
            make_steps(memory)
            hits = memory.recall(ANNA, TEXTS[0], recipe="dense")
            assert {hit.text for hit in hits} == {TEXTS[5], TEXTS[4]}
            for hit in hits:
                assert hit.score == pytest.approx(new.embed_query(TEXTS[0]) @ new.embed_query(hit.text), abs=0.01)

    def test_words_find_what_has_no_new_vector_yet(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store, embedder=new) as memory:
            make_steps(memory, 2)
            for text in TEXTS:
                assert memory.recall(ANNA, text.removeprefix("Anna bought a "))[0].text == text
            notes = memory.recall(ANNA, "cello").notes
            assert notes == ("still to be re-embedded with vowels, and found by words alone: 2 of 6",)
            assert memory.recall(ANNA, "cello", recipe="lexical").notes == ()
            make_steps(memory, 2)
            assert memory.recall(ANNA, "cello").notes == ()

    def test_the_newest_come_first_and_before_them_those_that_have_none(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store) as memory:
            make_steps(memory)
            memory.remember(ANNA, "Anna sold the drum.")
            make_steps(memory, 3)
            assert new.seen == [TEXTS[4], TEXTS[5], "Anna sold the drum.", TEXTS[2], TEXTS[3], TEXTS[0], TEXTS[1]]

    def test_scopes_that_are_asked_come_first(self, old_store: Path, new: Vowels) -> None:
        make_old(old_store, BEN, ["Ben has a cat.", "Ben has a dog.", "Ben has a cow."])
        make_old(old_store, "user=cleo", ["Cleo has a bird."])
        with eunoe.open(old_store) as memory:
            memory.recall(ANNA, "harp")
            make_steps(memory)
            memory.recall(BEN, "cat")
            make_steps(memory, 3)
            assert new.seen[:2] == [TEXTS[4], TEXTS[5]]
            assert new.seen[2:5] == ["Ben has a dog.", "Ben has a cow.", "Ben has a cat."]
            assert "Cleo has a bird." in new.seen[5:7]

    def test_a_recall_makes_none_itself(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store) as memory:
            memory.recall(ANNA, "harp")
            assert new.seen == []

    def test_neither_flushing_nor_closing_waits(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store) as memory:
            memory.remember(ANNA, "Anna sold the drum.")
            assert memory.flush()
            assert new.seen == ["Anna sold the drum."]
        assert new.seen == ["Anna sold the drum."]

    def test_what_is_forgotten_leaves_no_vector_of_either(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store) as memory:
            ids = {item.text: item.id for item in memory.list(ANNA).items}
            make_steps(memory)
            with closing(sqlite3.connect(old_store)) as file:
                vectors = [data for (data,) in file.execute("SELECT data FROM vectors ORDER BY seq")]
            assert memory.forget(ANNA, [ids[TEXTS[0]], ids[TEXTS[5]]], verify=True).verified
            assert memory.status().vectors == {OLD: 3, NEW: 1}
            make_steps(memory, 3)
            assert_all_new(memory, 4)
        assert vectors[0] not in old_store.read_bytes()
        assert vectors[5] not in old_store.read_bytes()

    def test_a_memory_that_is_forgotten_or_changed_while_its_vector_is_made(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store) as memory:
            ids = {item.text: item.id for item in memory.list(ANNA).items}

            def meanwhile() -> None:
                new.meanwhile = lambda: None
                memory.forget(ANNA, ids[TEXTS[5]])
                memory.update(ANNA, ids[TEXTS[4]], text="Anna bought a horse.")

            new.meanwhile = meanwhile
            make_steps(memory, 5)
            assert_all_new(memory, 6)
            assert memory.recall(ANNA, "Anna bought a horse.", recipe="dense")[0].text == "Anna bought a horse."

    def test_a_model_that_fails_loses_nothing(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store) as memory:
            new.broken = True
            make_steps(memory)
            assert memory.recall(ANNA, "cello")[0].text == TEXTS[0]
            assert "nobody there" in memory.status().embedder_error
            assert memory.status().vectors == {OLD: 6}
            with pytest.raises(EmbedderError, match="nobody there"):
                memory.admin.reembed()
            new.broken = False
            assert memory.admin.reembed() == 6
            assert_all_new(memory, 6)

    def test_two_replaced_models_at_once(self, old_store: Path, new: Vowels, monkeypatch: pytest.MonkeyPatch) -> None:
        with eunoe.open(old_store) as memory:
            make_steps(memory)
        last = Letters("last", "xyz")
        monkeypatch.setitem(REPLACED, OLD, last)
        monkeypatch.setitem(REPLACED, NEW, last)
        with eunoe.open(old_store) as memory:
            assert memory.status().reembedding == Reembedding(f"{OLD}, {NEW}", "last", 0, 6)
            assert memory.admin.reembed() == 6
            assert memory.status().vectors == {"last": 6}

    def test_another_model_by_hand_leaves_nothing_of_either(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store) as memory:
            make_steps(memory)
            assert memory.admin.reembed("static") == 6
            assert memory.status().vectors == {"wordllama-256": 6}
            assert memory.status().reembedding is None

    def test_a_vector_that_is_there_twice_is_made_no_third_time(self, old_store: Path, new: Vowels) -> None:
        """As an older package leaves it whose own re-embedding was stopped."""
        with eunoe.open(old_store) as memory:
            make_steps(memory)
            with memory._engine.store.writing():
                store = memory._engine.store
                numbers = {name: store.model(name).number for name in (OLD, NEW)}
                store.put_vectors(numbers[OLD], [(seq, bytes(20)) for seq in store.embedded(numbers[NEW], 9)])
            assert memory.admin.reembed() == 4
            assert_all_new(memory, 6)

    def test_what_cannot_be_read_is_left_out(self, old_store: Path, new: Vowels) -> None:
        with closing(sqlite3.connect(old_store, isolation_level=None)) as file:
            file.execute("UPDATE items SET text = 'scratched' WHERE seq IN (2, 6)")
        with eunoe.open(old_store) as memory:
            assert memory.admin.reembed() == 4
            assert memory.status().vectors == {NEW: 4}
            assert "scratched" not in "".join(new.seen)

    def test_a_part_of_the_store_is_counted_apart(self, old_store: Path, new: Vowels) -> None:
        make_old(old_store, BEN, ["Ben has a cat."])
        with eunoe.open(old_store) as memory:
            make_steps(memory)
            assert memory.restricted(scopes=[BEN], rights=["read"]).status().reembedding is None
            assert memory.restricted(scopes=[ANNA], rights=["read"]).status().reembedding == Reembedding(OLD, NEW, 1, 6)

    def test_a_copy_goes_on_where_the_store_was(self, old_store: Path, new: Vowels, tmp_path: Path) -> None:
        with eunoe.open(old_store) as memory:
            make_steps(memory)
            memory.admin.backup(tmp_path / "copy.db")
            memory.admin.export(ANNA, tmp_path / "anna.jsonl")
        eunoe.restore(tmp_path / "copy.db", tmp_path / "restored.db")
        with eunoe.open(tmp_path / "restored.db", embedder=new) as memory:
            assert memory.status().reembedding == Reembedding(OLD, NEW, 2, 6)
            assert memory.admin.reembed() == 4
            assert_all_new(memory, 6)
        with eunoe.open(tmp_path / "imported.db", embedder=new) as memory:
            memory.admin.import_(tmp_path / "anna.jsonl")
            assert_all_new(memory, 6)


class TestBehindReplies:
    def test_they_are_made_to_the_last(self, path: Path, new: Vowels) -> None:
        make_old(path, ANNA, [f"number {number}" for number in range(100)])
        with eunoe.open(path) as memory:
            memory.recall(ANNA, "number 7")
            wait_until(lambda: memory.status().reembedding is None)
            assert_all_new(memory, 100)
            assert sorted(new.seen) == sorted(f"number {number}" for number in range(100))

    def test_a_process_that_only_writes_makes_none(self, old_store: Path, new: Vowels) -> None:
        with eunoe.open(old_store, form="due") as memory:
            memory.remember(ANNA, "Anna sold the drum.")
            memory._engine._threads.shutdown()
            assert new.seen == []

    def test_others_write_ask_and_forget_meanwhile(
        self, path: Path, new: Vowels, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending_vectors, "_STEP_TEXTS", 3)
        scopes = [f"user=u{number}" for number in range(4)]
        for scope in scopes:
            make_old(path, scope, [f"{scope} said {'abcdefghij'[number % 10] * number}" for number in range(30)])
        with eunoe.open(path, form=False) as memory:
            old = {scope: [item.id for item in memory.list(scope).items] for scope in scopes}

            def talk(scope: str) -> None:
                for number in range(10):
                    memory.remember(scope, f"later {'jihgfedcba'[number] * 9} {number}")
                    memory.forget(scope, old[scope][number * 2])
                    found.append(
                        any(hit.text.endswith(f" {number}") for hit in memory.recall(scope, f"later {number}"))
                    )

            found: list[bool] = []
            threads = [threading.Thread(target=talk, args=(scope,)) for scope in scopes]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert found == [True] * 40
            wait_until(lambda: memory.status().reembedding is None)
            assert memory.flush()
            assert_all_new(memory, 120)

    def test_closing_leaves_the_rest_to_the_next(self, path: Path, new: Vowels) -> None:
        make_old(path, ANNA, [f"number {number}" for number in range(100)])
        with eunoe.open(path) as memory:
            is_making, is_closing = threading.Event(), threading.Event()

            def wait() -> None:
                is_making.set()
                assert is_closing.wait(60)

            new.meanwhile = wait
            memory.recall(ANNA, "number 7")
            assert is_making.wait(60)
            memory._engine._threads.shutdown(wait=False)  # as closing begins
            is_closing.set()
        assert len(new.seen) == 32
        with eunoe.open(path, embedder="none") as memory:
            assert memory.status().vectors == {OLD: 68, NEW: 32}


class TestByHand:
    @pytest.mark.parametrize("answers", [False, True])
    def test_progress_is_that_of_the_whole_store(
        self, path: Path, new: Vowels, monkeypatch: pytest.MonkeyPatch, answers: bool
    ) -> None:
        monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
        monkeypatch.setattr(pending_vectors, "BATCH_SIZE", 64 if answers else 32)
        monkeypatch.setattr(pending_vectors, "_STEP_TEXTS", 32 if answers else 16)
        make_old(path, ANNA, [f"number {number}" for number in range(100)])
        seen: list[tuple[int, int]] = []

        def stop(done: int, total: int) -> None:
            seen.append((done, total))
            if len(seen) == 2:
                raise InterruptedError

        with eunoe.open(path, form=False) as memory:
            if answers:  # then steps are small
                memory.recall(ANNA, "number 7")
            with pytest.raises(InterruptedError):
                memory.admin.reembed(progress=stop)
            assert memory.admin.reembed(new, progress=stop) == 36
            assert seen == [(32, 100), (64, 100), (96, 100), (100, 100)]
            assert_all_new(memory, 100)
        assert len(new.seen) == len(set(new.seen)) == 100

    def test_progress_comes_to_its_end_though_another_makes_the_rest(
        self, path: Path, new: Vowels, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
        monkeypatch.setattr(pending_vectors, "BATCH_SIZE", 32)
        make_old(path, ANNA, [f"number {number}" for number in range(100)])
        seen: list[tuple[int, int]] = []

        def leave_the_rest_to_another(done: int, total: int) -> None:
            seen.append((done, total))
            if len(seen) == 1:
                with eunoe.open(path, embedder=new, form=False) as other:
                    assert other.admin.reembed() == 68

        with eunoe.open(path, form=False) as memory:
            assert memory.admin.reembed(progress=leave_the_rest_to_another) == 32
            assert seen == [(32, 100), (100, 100)]
            assert_all_new(memory, 100)


def start(path: Path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, vowels.__file__, str(path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)])},
    )


class TestProcesses:
    @pytest.mark.usefixtures("no_background")
    def test_one_that_is_killed_leaves_the_rest_to_the_next(self, old_store: Path, new: Vowels) -> None:
        with start(old_store, "talk") as child:
            assert child.stdin
            assert child.stdout
            for text in TEXTS[:3]:
                assert child.stdout.readline() == f"{text}\n"
                if text != TEXTS[2]:
                    child.stdin.write("\n")
                    child.stdin.flush()
            child.kill()
        with eunoe.open(old_store, embedder=new, form=False) as memory:
            assert memory.status().reembedding == Reembedding(OLD, NEW, 2, 6)
            assert memory.admin.check()
            assert memory.admin.reembed() == 4
            assert sorted(new.seen) == sorted(TEXTS[2:])
            assert_all_new(memory, 6)

    def test_two_at_once_make_each_vector_count_once(self, path: Path, new: Vowels) -> None:
        make_old(path, ANNA, [f"number {number}" for number in range(200)])
        children = [start(path, "all") for _ in range(2)]
        made = [int(child.communicate(timeout=60)[0]) for child in children]
        assert [child.returncode for child in children] == [0, 0]
        assert sum(made) == 200
        with eunoe.open(path, embedder=new) as memory:
            assert_all_new(memory, 200)
