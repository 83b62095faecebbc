"""The store's model: remembered, never mixed, changed on purpose. What it failed to make is made later."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.letters import Letters
from tests.support.long_texts import FILLER, long_text

import eunoe
from eunoe.embed import load_embedder, store_embedder
from eunoe.embed.store_embedder import BATCH_SIZE, StoreEmbedder
from eunoe.embed.word_vectors import StaticEmbedder
from eunoe.engine import Engine
from eunoe.errors import EmbedderError, InputError, ModelMismatchError
from eunoe.memory import Memory
from eunoe.text.sentences import split_into_parts

ANNA = {"user": "anna"}


@pytest.fixture
def no_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made in the background, so that what a verb makes can be counted."""
    monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)


def test_a_store_remembers_its_model(path: Path) -> None:
    with eunoe.open(path, embedder="static") as memory:
        memory.remember(ANNA, "Anna plays the cello.")
    with eunoe.open(path) as memory:
        assert memory.status().embedder == "wordllama-256"
        assert memory.status().vectors == {"wordllama-256": 1}


def test_a_model_that_is_another_by_now_is_not_mixed_with_the_old(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with eunoe.open(path, embedder="static") as memory:
        memory.remember(ANNA, "Anna plays the cello.")
    monkeypatch.setattr(StaticEmbedder, "name", "wordllama-257")
    with eunoe.open(path) as memory:
        assert not memory.remember(ANNA, "Ben plays the flute.").embedded
        assert memory.recall(ANNA, "Who plays the flute?")[0].text == "Ben plays the flute."
        status = memory.status()
        assert (status.embedder, status.vectors) == ("wordllama-256", {"wordllama-256": 1})
        assert "'static' is wordllama-257 here" in status.embedder_error
        assert memory.admin.reembed("static") == 2
        assert memory.status().vectors == {"wordllama-257": 2}


def test_a_new_store_takes_the_default(path: Path) -> None:
    with eunoe.open(path) as memory:
        assert memory.status().embedder == load_embedder().name


def test_another_model_is_refused(path: Path) -> None:
    with eunoe.open(path, embedder=Letters()) as memory:
        memory.remember(ANNA, "Anna plays the cello.")
    with pytest.raises(ModelMismatchError, match=r"letters.*reembed"):
        eunoe.open(path, embedder="static")
    with eunoe.open(path, embedder=Letters()) as memory:
        assert memory.status().vectors == {"letters": 1}


def test_without_an_embedder_everything_still_works(path: Path) -> None:
    with eunoe.open(path, embedder="none") as memory:
        assert memory.remember(ANNA, "Anna plays the cello.").embedded
        assert memory.recall(ANNA, "Who plays the cello?")[0].text == "Anna plays the cello."
        assert memory.status().embedder == "none"
        assert memory.status().unembedded == 0


@pytest.mark.usefixtures("no_background")
def test_a_store_opened_without_its_embedder_marks_what_comes_in(path: Path) -> None:
    with eunoe.open(path, embedder=Letters()) as memory:
        memory.remember(ANNA, "Anna plays the cello.")
    with eunoe.open(path) as memory:
        assert not memory.remember(ANNA, "Ben plays the flute.").embedded
        assert memory.status().unembedded == 1
        assert "letters" in memory.status().embedder_error
        assert memory.recall(ANNA, "Who plays the flute?")[0].text == "Ben plays the flute."
    with eunoe.open(path, embedder=Letters()) as memory:
        assert memory.admin.reembed() == 1
        assert memory.status().unembedded == 0


@pytest.mark.usefixtures("no_background")
def test_a_failing_embedder_costs_nothing_but_its_vectors(path: Path) -> None:
    letters = Letters()
    letters.broken = True
    with eunoe.open(path, embedder=letters) as memory:
        receipts = memory.observe(ANNA, ["The build fails with ERR_42.", "It rained."])
        assert [(receipt.outcome, receipt.embedded) for receipt in receipts] == [("stored", False)] * 2
        assert memory.recall(ANNA, "ERR_42")[0].text == "The build fails with ERR_42."
        assert memory.status().unembedded == 2
        assert "nobody there" in memory.status().embedder_error
        with pytest.raises(EmbedderError, match="nobody there"):
            memory.admin.reembed()
        letters.broken = False
        assert memory.admin.reembed() == 2
        status = memory.status()
        assert (status.unembedded, status.embedder_error, status.vectors) == (0, "", {"letters": 2})


def test_missing_vectors_are_made_after_the_next_call(path: Path) -> None:
    letters = Letters()
    letters.broken = True
    with eunoe.open(path, embedder=letters) as memory:
        memory.remember(ANNA, "Anna plays the cello.")
    letters.broken = False
    with eunoe.open(path, embedder=letters) as memory:
        memory.recall(ANNA, "cello")
    with eunoe.open(path, embedder="none") as memory:
        assert memory.status().unembedded == 0


def test_reembed_changes_the_model(path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with eunoe.open(path, embedder=Letters()) as memory:
        memory.remember_many(ANNA, [f"fact number {number}" for number in range(600)])
        vowels = Letters("vowels", "aeiou")
        assert memory.admin.reembed(vowels, progress=lambda done, total: seen.append((done, total))) == 600
        assert memory.status().vectors == {"vowels": 600}
        assert seen[-1] == (600, 600)
        assert seen == sorted(seen)
        assert memory.recall(ANNA, "fact number 77", recipe="dense")[0].score > 0
    with pytest.raises(ModelMismatchError):
        eunoe.open(path, embedder=Letters())


def test_reembed_goes_on_where_it_stopped(path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise InterruptedError

    vowels = Letters("vowels", "aeiou")
    with eunoe.open(path, embedder=Letters()) as memory:
        memory.remember_many(ANNA, [f"fact number {number}" for number in range(600)])
        with pytest.raises(InterruptedError):
            memory.admin.reembed(vowels, progress=stop)
        assert memory.status().embedder == "letters"
        assert 0 < memory.status().vectors["vowels"] < 600
        assert memory.recall(ANNA, "fact number 77", recipe="dense")
    with eunoe.open(path, embedder=Letters()) as memory:
        memory.admin.reembed(vowels)
        assert memory.status().vectors == {"vowels": 600}
    assert len(vowels.seen) == 600


def test_what_comes_in_while_reembedding_is_not_left_without_a_vector(path: Path) -> None:
    with eunoe.open(path, embedder=Letters()) as memory, eunoe.open(path, embedder=Letters()) as other:
        memory.remember_many(ANNA, [f"fact number {number}" for number in range(300)])

        def meanwhile(done: int, total: int) -> None:
            other.remember(ANNA, f"came in at {done}")

        memory.admin.reembed(Letters("vowels", "aeiou"), progress=meanwhile)
        memory.admin.reembed()
        status = memory.status()
        assert status.unembedded == 0
        assert status.vectors == {"vowels": status.facts}


def test_a_model_that_replaces_a_failing_one_is_used_at_once(path: Path) -> None:
    letters = Letters()
    letters.broken = True
    with eunoe.open(path, embedder=letters, form=False) as memory:
        memory.remember(ANNA, "Anna plays the cello.")
        assert memory.status().embedder_error
        assert memory.admin.reembed(Letters("vowels", "aeiou")) == 1
        assert memory.status().embedder_error == ""
        assert memory.remember(ANNA, "Ben plays the flute.").embedded


def test_an_empty_store_that_another_process_writes_to_first_keeps_its_model(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_then_write(spec: Any) -> Any:
        monkeypatch.undo()
        with eunoe.open(path, embedder=Letters()) as other:
            other.remember(ANNA, "Anna plays the cello.")
        return load_embedder(spec)

    monkeypatch.setattr(store_embedder, "load_embedder", load_then_write)
    with pytest.raises(ModelMismatchError, match="come from letters, not vowels"):
        eunoe.open(path, embedder=Letters("vowels", "aeiou"))


def test_a_model_that_is_changed_here_is_not_lost_to_a_thread_that_looks_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = StoreEmbedder._use
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        memory.remember(ANNA, "Anna plays the cello.")
        embedder = memory._engine.embedder
        thread = threading.Thread(target=embedder.follow_store)

        def look_then_use(*arguments: Any) -> None:
            if threading.current_thread() is not thread:
                thread.start()
                thread.join(0.2)
            use(*arguments)

        monkeypatch.setattr(StoreEmbedder, "_use", look_then_use)
        memory.admin.reembed(Letters("vowels", "aeiou"))
        thread.join()
        assert embedder.embedder is not None
        assert (embedder.name, embedder.error) == ("vowels", "")


def test_a_change_of_model_by_another_process_is_followed(path: Path) -> None:
    with eunoe.open(path, embedder=Letters()) as memory, eunoe.open(path, embedder=Letters()) as other:
        memory.remember(ANNA, "Anna plays the cello.")
        other.admin.reembed("static")
        memory.remember(ANNA, "Ben plays the flute.")
        assert memory.recall(ANNA, "flute", recipe="dense")[0].text == "Ben plays the flute."
        assert memory.status().embedder == "wordllama-256"
        assert memory.status().vectors == {"wordllama-256": 2}


def test_vectors_of_ones_own(path: Path) -> None:
    with eunoe.open(path, embedder=Letters()) as memory:
        memory.remember(ANNA, "first", vector=[1.0] + [0.0] * 9)
        memory.remember(ANNA, "second", vector=[0.0] * 9 + [1.0])
        hits = memory.recall(ANNA, "anything", vector=[0.0] * 9 + [2.0], recipe="dense", limit=1)
        assert hits[0].text == "second"
        with pytest.raises(InputError, match="3 dimensions"):
            memory.remember(ANNA, "third", vector=[1.0, 2.0, 3.0])
        assert memory.status().facts == 2


def test_a_vector_for_a_store_that_keeps_none_is_refused(path: Path) -> None:
    with eunoe.open(path, embedder="none") as memory, pytest.raises(InputError, match="keeps no vectors"):
        memory.remember(ANNA, "first", vector=[1.0])


def test_a_vector_of_another_length_is_refused_from_the_first(path: Path) -> None:
    with eunoe.open(path) as memory:
        with pytest.raises(InputError, match="3 dimensions"):
            memory.remember(ANNA, "first", vector=[1.0, 2.0, 3.0])
        memory.remember(ANNA, "second one")
        assert memory.recall(ANNA, "second")[0].text == "second one"


def test_an_embedder_that_changed_its_length_is_a_failing_one(path: Path) -> None:
    with eunoe.open(path, embedder=Letters()) as memory:
        memory.remember(ANNA, "Anna plays the cello.")
    with eunoe.open(path, embedder=Letters(alphabet="abcd")) as memory:
        assert not memory.remember(ANNA, "Ben plays the flute.").embedded
        assert memory.recall(ANNA, "Who plays the flute?")[0].text == "Ben plays the flute."
        assert memory.recall(ANNA, "Who plays the cello?")[0].text == "Anna plays the cello."
        assert "4 dimensions now" in memory.status().embedder_error
        with pytest.raises(EmbedderError, match="4 dimensions"):
            memory.admin.reembed(Letters(alphabet="abcd"))
        assert memory.admin.reembed(Letters("other", alphabet="abcd")) == 2
        assert memory.status().vectors == {"other": 2}


@pytest.mark.usefixtures("no_background")
def test_a_model_changed_while_missing_vectors_are_made_gets_none_of_the_old(path: Path) -> None:
    letters = Letters()
    letters.broken = True
    with eunoe.open(path, embedder=letters) as memory:
        memory.remember(ANNA, "Anna plays the cello.")
        letters.broken = False

        def meanwhile() -> None:
            with eunoe.open(path, embedder="none") as other:
                other.admin.reembed("static")

        letters.meanwhile = meanwhile
        assert memory.admin.reembed() == 0
        assert memory.status().vectors == {"wordllama-256": 1}
        assert memory.status().unembedded == 0


@pytest.mark.usefixtures("no_background")
def test_a_model_changed_while_a_write_waits_gets_none_of_the_old(path: Path) -> None:
    letters, others = Letters(), Letters("others", "klmnopqrst")
    with eunoe.open(path, embedder=letters) as memory:
        letters.meanwhile = lambda: memory.admin.reembed(others)
        assert not memory.remember(ANNA, "Anna plays the cello.").embedded
        assert memory.admin.reembed() == 1
        assert others.seen == ["Anna plays the cello."]
        assert memory.status().vectors == {"others": 1}


@pytest.mark.parametrize("alphabet", ["jihgfedcba", "abc"])
def test_a_question_read_by_the_old_model_is_not_compared_with_vectors_of_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alphabet: str
) -> None:
    def recall(memory: Memory) -> list[tuple[str, float]]:
        return [(hit.text, hit.score) for hit in memory.recall(ANNA, "Who plays a cello?")]

    def embed_then_change(text: str) -> object:
        question = embed_question(text)
        memory.admin.reembed(Letters("others", alphabet))
        return question

    texts = ["Anna plays the cello.", "Ben has a flute.", "A cab, a face."]
    with (
        eunoe.open(tmp_path / "words.db", embedder="none", form=False) as words,
        eunoe.open(tmp_path / "memory.db", embedder=Letters(), form=False) as memory,
    ):
        words.observe(ANNA, texts)
        memory.observe(ANNA, texts)
        embed_question = memory._engine.embedder.embed_question
        monkeypatch.setattr(memory._engine.embedder, "embed_question", embed_then_change)
        assert recall(memory) == recall(words)
        monkeypatch.undo()
        assert recall(memory) != recall(words)


def test_a_question_that_the_encoder_cannot_read_is_asked_by_its_words() -> None:
    said = ("The cake 🎉 is done.", "Rain again.", "No, sun.", "👍", "😂😂")
    with eunoe.open(":memory:") as memory:
        memory.observe("user=anna", [{"content": text, "session": text} for text in said])
        assert [hit.text for hit in memory.recall("user=anna", "🎉")] == ["The cake 🎉 is done."]


def test_who_said_a_thing_is_not_embedded(path: Path) -> None:
    letters = Letters()
    with eunoe.open(path, embedder=letters, form=False) as memory:
        memory.observe(ANNA, [{"speaker": "Ben", "text": "I play the flute."}])
        assert letters.seen == ["I play the flute."]


def test_what_stands_in_the_middle_of_a_long_text_is_found_by_its_meaning(path: Path) -> None:
    text = long_text("My sister Ada keeps two goats behind the house.")
    with eunoe.open(path, form=False) as memory:
        memory.observe(ANNA, [text, *(f"A zoo opened in town {number}. {FILLER * 12}" for number in range(6))])
        (best,) = memory.recall(ANNA, "Which farm animals does her sibling own?", recipe="dense", limit=1)
        assert best.text == text


def test_each_part_is_embedded_once_and_belongs_to_one_item(path: Path) -> None:
    letters = Letters()
    text = long_text("Ada keeps goats.")
    with eunoe.open(path, embedder=letters, form=False) as memory:
        memory.observe(ANNA, [text, "short", text])
        assert letters.seen == [*split_into_parts(text), "short"]
        assert memory.status().vectors == {"letters": 3}
        assert memory.status().unembedded == 0


def test_no_embedder_is_given_more_than_a_batch_at_a_time(path: Path) -> None:
    batches: list[int] = []

    def count_texts(texts: list[str]) -> list[list[float]]:
        batches.append(len(texts))
        return [[1.0, float(len(text))] for text in texts]

    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, [FILLER * 60] * 10 + [f"{number} {FILLER * 60}" for number in range(10)])
        memory.admin.reembed(count_texts)
    assert max(batches) <= BATCH_SIZE < sum(batches)


def scores(memory: eunoe.Memory) -> list[tuple[str, float]]:
    return [(hit.id, round(hit.score, 6)) for hit in memory.recall(ANNA, "jjjj hhhh", recipe="dense")]


def test_parts_are_the_same_from_the_file_and_from_another_model_and_back(path: Path) -> None:
    texts = [long_text("jjj jjj hh hhh jjj"), "short and jj", long_text("bbb")]
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        memory.observe(ANNA, texts)
        first = scores(memory)
        assert len(first) == 3
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        assert scores(memory) == first
        memory.admin.reembed(Letters("others", "klmnopqrst"))
        assert scores(memory) != first
        memory.admin.reembed(Letters())
        assert scores(memory) == first


def test_a_vector_of_the_callers_own_stands_for_the_whole_text(path: Path) -> None:
    vector = [1.0] + [0.0] * 9
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        memory.observe(ANNA, long_text("jjj"))
        receipt = memory.remember(ANNA, long_text("hhh"), vector=vector)
        (best,) = memory.recall(ANNA, "anything", vector=vector, recipe="dense", limit=1)
        assert (best.id, round(best.score, 3)) == (receipt.id, 1.0)


@pytest.mark.parametrize("damaged", [b"", b"abc", b"\0" * 22, b"\0" * 38])
def test_a_damaged_vector_is_missing_and_costs_no_other_row_its_own(path: Path, damaged: bytes) -> None:
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        memory.observe(ANNA, [long_text("jjj"), "aaa", "jjj hhh", "ccc"])
        whole = scores(memory)
    with closing(sqlite3.connect(path)) as connection, connection:
        second = "SELECT seq FROM vectors ORDER BY seq LIMIT 1 OFFSET 1"
        connection.execute(f"UPDATE vectors SET data = ? WHERE seq = ({second})", [damaged])
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        ids = [item.id for item in memory.list(ANNA).items]
        assert scores(memory) == [(id, score) for id, score in whole if id != ids[1]]


def test_forgetting_takes_all_parts(path: Path) -> None:
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        receipt = memory.observe(ANNA, long_text("jjj"))[0]
        memory.forget(ANNA, receipt.id)
        assert memory.status().vectors == {"letters": 0}
        assert memory.recall(ANNA, "jjjj hhhh", recipe="dense") == []
