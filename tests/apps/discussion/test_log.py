"""The log of a discussion: every message word for word, and which of them are the chat as it stands now."""

import threading
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eunoe
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import discussion_scope
from eunoe.errors import InputError

SCOPE = discussion_scope("trip", "anna")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[eunoe.Memory]:
    with eunoe.open(tmp_path / "store.db", embedder="none", llm="none") as opened:
        yield opened


@pytest.fixture
def log(memory: eunoe.Memory) -> DiscussionLog:
    return DiscussionLog(memory, SCOPE)


def chat(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]


def texts(log: DiscussionLog) -> list[str]:
    return [message.text for message in log.messages()]


def stored(memory: eunoe.Memory) -> int:
    return len(memory.list(SCOPE, kinds=["message"], limit=10_000, retired=True).items)


def test_new_messages_are_added_and_known_ones_are_not(log: DiscussionLog) -> None:
    first = log.take_in(chat("Hello", "Hi"))
    second = log.take_in(chat("Hello", "Hi", "Rome?"))
    assert (len(first.new), len(second.new), second.unchanged) == (2, 1, 2)
    assert second.ids == tuple(message.id for message in log.messages())
    assert texts(log) == ["Hello", "Hi", "Rome?"]


def test_a_missing_beginning_deletes_nothing(log: DiscussionLog) -> None:
    whole = chat(*(f"message {number}" for number in range(30)))
    log.take_in(whole[:28])
    report = log.take_in(whole[24:])
    assert (len(report.new), report.retracted) == (2, ())
    assert texts(log) == [message["content"] for message in whole]


def test_an_edited_message_is_retracted_and_stays_in_the_log(log: DiscussionLog, memory: eunoe.Memory) -> None:
    log.take_in(chat("one", "two", "three", "four"))
    report = log.take_in(chat("one", "zwei", "three", "four"))
    assert [memory.get(SCOPE, id).text for id in report.retracted] == ["two"]
    assert texts(log) == ["one", "zwei", "three", "four"]
    assert [(each.text, each.is_retracted) for each in log.sequence()][1:3] == [("two", True), ("zwei", False)]
    assert not [hit for hit in memory.recall(SCOPE, "two") if hit.text == "two"]


def test_a_message_that_comes_back_is_the_same_one(log: DiscussionLog, memory: eunoe.Memory) -> None:
    first = log.take_in(chat("one", "two", "three"))
    log.take_in(chat("one", "zwei"))
    back = log.take_in(chat("one", "two", "three"))
    assert back.ids == first.ids
    assert back.restored == first.ids[1:]
    assert stored(memory) == 4


def test_a_message_said_again_in_the_same_place_is_another_one(log: DiscussionLog) -> None:
    log.take_in(chat("a", "ok", "b", "c", "d"))
    log.take_in([*chat("a"), *chat("a", "b", "c", "d")[1:]])
    log.take_in([{"role": "user", "content": text} for text in ("a", "x", "ok")])
    log.take_in([{"role": "user", "content": text} for text in ("a", "ok", "x", "ok")])
    assert texts(log)[-3:] == ["ok", "x", "ok"]
    assert len({message.id for message in log.sequence()}) == len(log.sequence())


def test_system_prompts_are_kept_and_disturb_nothing(log: DiscussionLog, memory: eunoe.Memory) -> None:
    for day in range(3):
        prompt = {"role": "system", "content": f"You are kind. It is day {day}."}
        log.take_in([prompt, *chat("Hello", "Hi", "Rome?")])
        log.take_in([*chat("Hello"), {"role": "developer", "content": "Be brief."}, *chat("x", "Hi", "Rome?")[1:]])
    assert texts(log) == ["Hello", "Hi", "Rome?"]
    assert stored(memory) == 3 + 4
    assert not memory.recall(SCOPE, "kind day", kinds=["message"])


def test_images_and_tool_calls_without_text_are_kept_whole(log: DiscussionLog, memory: eunoe.Memory) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    request = [
        {"role": "user", "content": [{"type": "text", "text": "Look:"}, image]},
        {"role": "user", "content": [image]},
        {"role": "user", "content": "", "images": ["BBBB"]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "look"}}]},
        {"role": "tool", "content": "a cat", "tool_call_id": "1"},
    ]
    report = log.take_in(request)
    assert texts(log) == ["Look:", "", "", "", "a cat"]
    assert memory.get(SCOPE, report.ids[1]).metadata["fields"] == {"content": [image]}
    assert memory.get(SCOPE, report.ids[3]).metadata["fields"] == {"tool_calls": request[3]["tool_calls"]}
    assert log.messages()[2].hash == sha256(b"BBBB").hexdigest()
    assert not log.take_in(request).new
    other = [*request[:2], {"role": "user", "content": "", "images": ["CCCC"]}, *request[3:]]
    assert len(log.take_in(other).retracted) == 1


def test_tags_are_taken_out_before_anything_is_stored(log: DiscussionLog, memory: eunoe.Memory) -> None:
    tag = "[DiscussionId]trip[/DiscussionId]"
    parts = [{"type": "text", "text": f"{tag}Look"}]
    request = [{"role": "user", "content": f"{tag}Hello"}, {"role": "user", "content": parts}]
    log.take_in(request)
    assert texts(log) == ["Hello", "Look"]
    assert log.messages()[0].hash == sha256(b"Hello").hexdigest()
    assert not log.take_in([{"role": "user", "content": "Hello"}, {"role": "user", "content": "Look"}]).new
    log.take_in([*request, {"role": "assistant", "text": f"{tag}Nice"}])
    assert texts(log)[-1] == "Nice"
    assert "DiscussionId" not in str([item.metadata for item in memory.list(SCOPE).items])


def test_the_engine_forms_nothing_and_consolidates_nothing(log: DiscussionLog, memory: eunoe.Memory) -> None:
    log.take_in(chat("I am allergic to peanuts.", "I see.", "I live in Rome."))
    memory.form(SCOPE)
    assert not memory.list(SCOPE, kinds=["fact", "observation"]).items
    assert memory.streams.list(**SCOPE)[0].settings.consolidation_prompt == ""


def test_what_was_forgotten_does_not_come_back(log: DiscussionLog, memory: eunoe.Memory) -> None:
    request = chat("one", "my PIN is 4711", "three")
    ids = log.take_in(request).ids
    memory.forget(SCOPE, ids[1])
    report = log.take_in([*request, {"role": "assistant", "content": "four"}])
    assert texts(log) == ["one", "three", "four"]
    assert report.notes
    assert not report.retracted


def test_speakers_and_times_are_kept(log: DiscussionLog) -> None:
    log.take_in([{"role": "user", "name": "Anna", "content": "Hello", "timestamp": "2024-05-01T10:00:00Z"}])
    (message,) = log.messages()
    assert message.name == "Anna"
    assert message.time is not None
    assert message.time.year == 2024


@pytest.mark.parametrize(
    "request_",
    ["hello", {"role": "user", "content": "x"}, ["hello"], [{"content": "x"}], [{"role": "user", "content": 5}]],
)
def test_what_is_no_request_is_refused(log: DiscussionLog, memory: eunoe.Memory, request_: Any) -> None:
    with pytest.raises(InputError, match="message"):
        log.take_in(request_)
    assert not memory.scopes()


def _take_in_together(path: str, request: Sequence[dict[str, Any]], start: Any) -> None:
    with eunoe.open(path, embedder="none", llm="none") as memory:
        log = DiscussionLog(memory, SCOPE)
        log.messages()
        start.wait()
        log.take_in(request)


def test_two_that_take_in_the_same_request_at_once_store_it_once(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    requests = [chat("one", "two", "three"), chat("one", "zwei", "three", "four", "ok", "ok", "ok")]
    with eunoe.open(path, embedder="none", llm="none") as memory:
        for request in requests:
            start = threading.Barrier(3)
            workers = [threading.Thread(target=_take_in_together, args=(path, request, start)) for _ in range(2)]
            for worker in workers:
                worker.start()
            start.wait()
            for worker in workers:
                worker.join()
            assert texts(DiscussionLog(memory, SCOPE)) == [message["content"] for message in request]
        assert stored(memory) == 8


ACTIONS = st.sampled_from(["append", "append", "insert", "edit", "branch", "delete", "regenerate", "forget", "repeat"])


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 4), st.integers(0, 8)), max_size=12))
def test_the_log_stays_the_chat_of_the_front_end(steps: list[tuple[str, int, int]]) -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        log, words, forgotten = DiscussionLog(memory, SCOPE), ["first", "second", "third", "fourth"], set[str]()
        log.take_in([{"role": "user", "content": word} for word in words])
        for count, (action, back, size) in enumerate(steps):
            place = max(3, len(words) - 1 - back)
            if action in ("edit", "branch", "insert"):
                end = {"edit": place + 1, "branch": len(words), "insert": place}[action]
                words[place:end] = [f"{action} {count}"]
            elif action == "delete":
                del words[place : place + 1]
            elif action == "regenerate":
                words[-1] = f"other {count}"
            elif action == "append":
                words += [f"answer {count}", f"question {count}"]
            elif action == "forget":
                gone = log.sequence()[-1 - back :][0]
                memory.forget(SCOPE, gone.id)
                forgotten.add(gone.text)
                assert texts(log) == [word for word in words if word not in forgotten]
            log.take_in([{"role": "user", "content": word} for word in words[-(back + 5 + size) :]])
            assert texts(log) == [word for word in words if word not in forgotten]


def test_forgotten_neighbours_do_not_come_back_in_a_cut_request(log: DiscussionLog, memory: eunoe.Memory) -> None:
    request = chat("one", "my PIN is 4711", "my key is under the mat", "four", "five")
    ids = log.take_in(request).ids
    memory.forget(SCOPE, ids[1:3])
    for start in range(4):
        log.take_in(request[start:])
    log.take_in([{"role": "user", "content": "other"}, *request[1:]])
    assert texts(log) == ["other", "four", "five"]
    before = memory.status().tombstones
    log.take_in(request[2:])
    assert memory.status().tombstones == before


def test_forgetting_the_old_wording_leaves_the_new_one_in_its_place(log: DiscussionLog, memory: eunoe.Memory) -> None:
    words = [f"message {number}" for number in range(8)]
    old = log.take_in(chat(*words)).ids[2]
    words[2] = "something else"
    log.take_in(chat(*words))
    memory.forget(SCOPE, old)
    assert texts(log) == words
    assert not log.take_in(chat(*words, "the end")).retracted


def test_what_is_put_behind_a_forgotten_message_stands_there(log: DiscussionLog, memory: eunoe.Memory) -> None:
    ids = log.take_in(chat("one", "my PIN is 4711", "three", "four")).ids
    memory.forget(SCOPE, ids[1])
    log.take_in(
        [*chat("one", "my PIN is 4711"), *chat("new", "three", "four")[:1], *chat("x", "x", "three", "four")[2:]]
    )
    assert texts(log) == ["one", "new", "three", "four"]
