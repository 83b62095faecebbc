"""The log: every message once, word for word, however often the host sends it."""

from __future__ import annotations

import re

import pytest
from tests.support.records import make_record

import eunoe
from eunoe.errors import InputError, NotFoundError, RemoteError, ScopeError
from eunoe.model.message import parse_message
from eunoe.records import log
from eunoe.records.identity import message_content, words_identity

pytestmark = pytest.mark.remote

ANNA = "user=anna"
T = 1_700_000_000


def outcomes(receipts):
    return [receipt.outcome for receipt in receipts]


def texts(memory, scope=ANNA, **filters):
    return [item.text for item in memory.list(scope, limit=1000, **filters).items]


def observe(memory, *messages, scope=ANNA):
    return "".join(outcome[0] for outcome in outcomes(memory.observe(scope, list(messages))))


def said(text, /, **fields):
    return {"content": text, **fields}


def test_words_come_back_exactly(memory):
    (receipt,) = memory.observe(
        ANNA,
        {
            "role": "assistant",
            "content": "  Tea, please.\n",
            "name": "Cook",
            "timestamp": "2024-05-07T18:30:00.123456+02:00",
            "session": "s1",
            "caption": "a cup",
            "metadata": {"a": [1, 2.5, None, {"ü": "🌊"}]},
            "tool_call_id": "t1",
        },
    )
    assert (receipt.outcome, receipt.embedded, bool(receipt)) == ("stored", True, True)
    message = memory.get(ANNA, receipt.id)
    assert message.text == "  Tea, please.\n"
    assert (message.role, message.speaker, message.session, message.caption) == ("assistant", "Cook", "s1", "a cup")
    assert message.time.isoformat() == "2024-05-07T16:30:00.123456+00:00"
    assert message.metadata == {"a": [1, 2.5, None, {"ü": "🌊"}], "tool_call_id": "t1"}
    assert message.scope == eunoe.Scope(user="anna")
    assert message.position == 0
    assert message.recorded is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "\0",
        "a\0b",
        "\r\n\t\u2028\u2029\x85",
        "👩‍👩‍👧‍👦 🌊",
        "\u202e\u05e9\u05dc\u05d5\u05dd\u202c",
        "日本語のテキスト",
        "x" * 10_000_000,
        "\U0010ffff",
        "e\u0301 is not \u00e9",
        "'; DROP TABLE items; --",
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_any_text_is_stored_and_returned_exactly(path, text):
    with eunoe.open(path, embedder="none") as memory:
        (receipt,) = memory.observe(ANNA, [text])
        assert receipt.outcome == "stored"
    with eunoe.open(path, embedder="none") as memory:
        assert memory.get(ANNA, receipt.id).text == text
        assert outcomes(memory.observe(ANNA, [text])) == ["duplicate"]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("a lone \udc80 surrogate", "lone surrogate at character 7"),
        (said("a", name="\ud800"), "lone surrogate"),
        (said("a", metadata={"k": "\ud800"}), "lone surrogate"),
        (said("a", metadata={"k": float("nan")}), "JSON"),
        (said("a", metadata={"k": object()}), "JSON"),
        (said("a", metadata={1: "one"}), "come back"),
        (said("a", metadata={"k": (1, 2)}), "come back"),
        (said("a", metadata=["k"]), "mapping"),
        (said("a", metadata={"tool": 1}, tool=2), "twice"),
        (said("a", text="b"), "twice"),
        (said(7), "must be text"),
        (said("a", time="yesterday"), "cannot read time"),
        (said("a", time=True), "cannot read time"),
        (said("a", time=1e300), "cannot read time"),
        (said("a", id="x" * 2000), "longer than"),
        ({"role": "user"}, "no 'content'"),
        (7, "not int"),
        (None, "not NoneType"),
        ("x" * (32 * 1024 * 1024 + 1), "at most"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_cannot_be_kept_is_refused_with_a_reason(memory, message, reason):
    is_remote = memory.target.startswith("http")  # it is told by the server, in its own words
    with pytest.raises((InputError, RemoteError) if is_remote else InputError) as caught:
        memory.observe(ANNA, ["good", message])
    assert is_remote or (re.search(reason, str(caught.value)) and "message 1" in str(caught.value))
    assert memory.scopes() == []


def test_content_in_parts_is_joined_and_kept_whole(memory):
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "url": "u"}, "done", 5]
    (receipt,) = memory.observe(ANNA, said(parts))
    message = memory.get(ANNA, receipt.id)
    assert message.text == "Look:\ndone"
    assert message.metadata == {"content": parts}


def test_a_bare_tool_call_has_no_words(memory):
    (receipt,) = memory.observe(ANNA, {"role": "assistant", "content": None, "tool_calls": [{"id": "t"}]})
    message = memory.get(ANNA, receipt.id)
    assert (message.text, message.metadata) == ("", {"tool_calls": [{"id": "t"}]})


def test_one_message_or_many_or_none(memory):
    assert outcomes(memory.observe(ANNA, "text")) == ["stored"]
    assert outcomes(memory.observe(ANNA, said("dict"))) == ["stored"]
    assert outcomes(memory.observe(ANNA, eunoe.Message(text="noun"))) == ["stored"]
    assert outcomes(memory.observe(ANNA, (text for text in ("a", "b")))) == ["stored", "stored"]
    assert memory.observe("user=ben", []) == []
    assert memory.scopes() == [eunoe.Scope(user="anna")]


def test_known_by_id(memory):
    assert observe(memory, said("a", id="1"), said("b", id="2")) == "ss"
    assert observe(memory, said("b", id="2"), said("c", id="3"), said("a", id="1")) == "dsd"
    assert texts(memory) == ["a", "b", "c"]
    assert [receipt.id for receipt in memory.observe(ANNA, [said("a", id="1")])] == ["1"]


def test_an_id_taken_by_other_words_is_a_conflict(memory):
    memory.observe(ANNA, said("a", id="1"))
    (receipt,) = memory.observe(ANNA, said("other", id="1"))
    assert (receipt.outcome, receipt.id, bool(receipt)) == ("conflict", "1", False)
    assert observe(memory, said("x", id="2"), said("x", id="2"), said("y", id="2")) == "sdc"
    assert texts(memory) == ["a", "x"]


def test_an_id_taken_by_a_fact_is_a_conflict(memory):
    kept = memory.remember(ANNA, "a fact")
    memory.remember(ANNA, "a named fact", id="f")
    assert observe(memory, said("a fact", id=kept.id), said("a named fact", id="f")) == "cc"
    memory.observe(ANNA, said("a message", id="m"))
    assert memory.remember(ANNA, "a message", id="m").outcome == "conflict"


def test_what_was_read_from_the_log_is_known_when_written_back(memory):
    memory.observe(ANNA, ["bare", said("timed", time=T), said("named", id="n")])
    again = memory.observe(ANNA, memory.list(ANNA).items)
    assert outcomes(again) == ["duplicate"] * 3
    assert len(texts(memory)) == 3


def test_known_by_words_and_time(memory):
    assert observe(memory, said("a", time=T), said("a", time=T + 1)) == "ss"
    assert observe(memory, said("a", time=T + 1), said("b", time=T), said("a", time=T)) == "dsd"
    assert observe(memory, said("a", time="2023-11-14T22:13:20Z")) == "d"
    assert observe(memory, said("a", time=T, role="assistant"), said("a", time=T, name="Ben")) == "ss"
    assert texts(memory) == ["a", "a", "b", "a", "a"]


def test_two_equal_messages_at_one_moment_are_two(memory):
    batch = [said("ok", time=T), said("ok", time=T)]
    assert observe(memory, *batch) == "ss"
    assert observe(memory, *batch) == "dd"
    assert observe(memory, *batch, said("ok", time=T)) == "dds"


def test_two_equal_messages_in_one_batch_are_two(memory):
    assert observe(memory, "ok", "ok") == "ss"
    assert observe(memory, "ok", "ok") == "dd"
    assert observe(memory, "ok", "ok", "ok") == "dds"


def test_a_retry_is_known(memory):
    assert observe(memory, "a", "b") == "ss"
    assert observe(memory, "a", "b") == "dd"
    assert observe(memory, "b") == "d"
    assert observe(memory, "a") == "s"


def test_the_whole_history_every_turn(memory):
    history = []
    for turn in range(6):
        history += [said(f"question {turn % 2}"), said("I do not know.", role="assistant")]
        assert observe(memory, *history) == "d" * (len(history) - 2) + "ss"
    assert texts(memory) == [message["content"] for message in history]


def test_a_sliding_window(memory):
    history = [f"message {number % 3} of {number // 4}" for number in range(20)]
    for end in range(1, 21):
        assert observe(memory, *history[max(0, end - 5) : end])[-1] == "s"
    assert texts(memory) == history


def test_a_history_where_only_some_messages_have_an_identity(memory):
    """Chat libraries give ids to what the model says but not to what the user says."""
    history = []
    for turn in range(5):
        history += [said("yes"), said(f"answer {turn}", role="assistant", id=f"a{turn}")]
        assert observe(memory, *history) == "d" * (len(history) - 2) + "ss"
        history += [said("hm", time=T + turn)]
        assert observe(memory, *history) == "d" * (len(history) - 1) + "s"
    assert texts(memory) == [message["content"] for message in history]


def test_messages_sent_one_by_one_are_not_taken_for_known(memory):
    for turn in range(3):
        assert observe(memory, "yes") == "s"
        assert observe(memory, said("More?", role="assistant", id=str(turn))) == "s"
    assert observe(memory, said("More?", role="assistant", id="4"), "yes") == "ss"


def test_words_beside_the_message_that_has_them_are_new(memory):
    """The batch names the message in the log itself, so that its other message in the same words is another one."""
    assert observe(memory, said("yes", id="a")) == "s"
    assert observe(memory, "yes", said("yes", id="a")) == "sd"
    assert observe(memory, said("yes", id="a"), "yes") == "dd"


def test_a_replay_lines_up_around_a_message_that_came_between(memory):
    assert [observe(memory, each) for each in ("a", said("b", id="b"), "c")] == ["s"] * 3
    assert observe(memory, said("b", id="b"), "a", "c") == "ddd"


def test_a_replay_lines_up_around_a_message_that_came_before(memory):
    assert [observe(memory, each) for each in (said("x", id="x"), "a", "b")] == ["s"] * 3
    assert observe(memory, "a", said("x", id="x"), "b") == "ddd"
    assert texts(memory) == ["x", "a", "b"]


def test_the_same_words_of_two_users_are_two_messages(memory):
    assert observe(memory, said("I love pizza.", user="anna"), scope="session=g") == "s"
    assert observe(memory, said("I love pizza.", user="ben"), scope="session=g") == "s"
    assert observe(memory, said("I love pizza.", user="ben"), scope="session=g") == "d"
    assert observe(memory, said("I love pizza.", user="ben", time=T), said("I love pizza.", user="cy", time=T)) == "ss"


def test_a_message_that_names_no_user_keeps_its_fingerprint():
    bare = parse_message({"content": "Tea, please.", "name": "Anna", "metadata": {"mood": "good"}})
    record = make_record(kind="message", text=bare.text, role=bare.role, speaker=bare.speaker, metadata=bare.metadata)
    known = "0fff703ceca7821b1921828331fa85d4"
    assert (message_content(bare).hex(), message_content(record).hex()) == (known, known)


def test_sessions_are_compared_each_by_itself(memory):
    one = [said(f"one {n % 2}", session="1") for n in range(4)]
    two = [said(f"two {n % 2}", session="2") for n in range(4)]
    mixed = [message for pair in zip(one, two, strict=True) for message in pair]
    assert observe(memory, *mixed[:4]) == "ssss"
    assert observe(memory, *one[:3]) == "dds"
    assert observe(memory, *two) == "ddss"
    assert observe(memory, *one, *two) == "dddsdddd"
    assert observe(memory, said("one 0", session="3")) == "s"


def test_a_session_in_the_scope_is_the_sessions_of_its_messages(memory):
    scope = {"user": "anna", "session": "7"}
    memory.observe(scope, ["a", said("b", session="8")])
    assert [item.session for item in memory.list(scope).items] == ["7", "8"]


def test_a_batch_in_the_middle_of_the_log_is_new(memory):
    observe(memory, "hi", "hello", "bye")
    assert observe(memory, "hi", "hello") == "ss"


def test_scopes_do_not_know_each_other(memory):
    assert observe(memory, said("a", id="1"), "b") == "ss"
    assert observe(memory, said("a", id="1"), "b", scope="user=ben") == "ss"
    assert observe(memory, said("a", id="1"), "b", scope="user=anna/agent=x") == "ss"


def ids(memory, *wanted):
    return [item.id for item in memory.list(ANNA, limit=1000).items if item.text in wanted]


def test_a_replay_lines_up_around_what_was_forgotten(memory):
    history = [f"message {n}" for n in range(6)]
    observe(memory, *history)
    memory.forget(ANNA, ids(memory, "message 2", "message 5"))
    assert observe(memory, *history) == "ddfddf"
    assert observe(memory, *history, "message 6") == "ddfddfs"
    assert observe(memory, *history[3:], "message 6", "message 7") == "ddfds"
    assert texts(memory) == ["message 0", "message 1", "message 3", "message 4", "message 6", "message 7"]


def test_forgotten_words_said_again_leave_a_gap_that_replays_find(memory):
    history = ["a", "secret", "b"]
    observe(memory, *history)
    memory.forget(ANNA, ids(memory, "secret"))
    for new in ("secret", "c", "secret", "d", "e"):
        history.append(new)
        assert observe(memory, *history) == "".join("f" if text == "secret" else "d" for text in history[:-1]) + (
            "f" if new == "secret" else "s"
        )
    assert texts(memory) == ["a", "b", "c", "d", "e"]


def test_a_forgotten_id_or_moment_stays_away(memory):
    observe(memory, said("a", id="1"), said("b", time=T), "c")
    memory.forget(ANNA, ids(memory, "a", "b"))
    assert observe(memory, said("a", id="1"), said("b", time=T), "c") == "ffd"
    assert observe(memory, said("b", time=T + 1), said("b", id="9")) == "ss"
    assert observe(memory, "x", "b") == "sf"


def test_after_a_whole_scope_went_small_talk_is_free_again(memory):
    history = ["hello", "how are you?", "fine"]
    observe(memory, *history)
    memory.forget(ANNA, everything=True)
    assert observe(memory, *history) == "fff"
    assert observe(memory, "hello") == "s"


def test_messages_cannot_be_changed(memory):
    (receipt,) = memory.observe(ANNA, "words")
    with pytest.raises(InputError, match="verbatim"):
        memory.update(ANNA, receipt.id, "other words")
    assert texts(memory) == ["words"]


def test_messages_can_be_pinned(memory):
    (receipt,) = memory.observe(ANNA, "words")
    assert memory.pin(ANNA, receipt.id).outcome == "stored"
    assert memory.pin(ANNA, receipt.id).outcome == "duplicate"
    assert memory.pin(ANNA, receipt.id, False).outcome == "stored"


def test_pages_hold_everything_once(memory):
    observe(memory, *(f"message {n}" for n in range(7)))
    memory.remember_many(ANNA, [{"text": f"fact {n}", "label": "odd" if n % 2 else "even"} for n in range(6)])
    for filters, count in (
        ({}, 13),
        ({"kinds": "message"}, 7),
        ({"labels": "odd"}, 3),
        ({"labels": ["odd", "even"]}, 6),
    ):
        for limit in (1, 2, 3, 50):
            read, after = [], ""
            while True:
                page = memory.list(ANNA, limit=limit, after=after, **filters)
                assert len(page.items) <= limit
                read += [item.id for item in page.items]
                after = page.next
                if not after:
                    break
            assert len(read) == len(set(read)) == count


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"after": "x"}, {"kinds": []}, {"kinds": ["note"]}])
def test_a_page_that_cannot_be_is_refused(memory, wrong):
    with pytest.raises(InputError):
        memory.list(ANNA, **wrong)


def test_an_unknown_scope_is_empty(memory):
    assert memory.list(ANNA).items == ()
    with pytest.raises(NotFoundError):
        memory.get(ANNA, "x")
    assert memory.scopes() == []


def test_scopes_are_listed_by_their_keys(memory):
    for scope in ("user=anna", "user=anna/agent=cook", "user=ben/agent=cook"):
        memory.observe(scope, "hi")
    assert [str(scope) for scope in memory.scopes()] == ["agent=cook/user=anna", "agent=cook/user=ben", "user=anna"]
    assert [str(scope) for scope in memory.scopes(agent="cook")] == ["agent=cook/user=anna", "agent=cook/user=ben"]
    assert [str(scope) for scope in memory.scopes(user="anna", agent="cook")] == ["agent=cook/user=anna"]
    assert memory.scopes(user="zoe") == []


WRONG_SCOPES = [
    None,
    "",
    " ",
    "anna",
    "user=",
    "user= ",
    "=anna",
    "user=anna/",
    "user=anna//agent=x",
    "user=a/user=b",
    "User=anna",
    "user=a\nb",
    {},
    {"user": ""},
    {"user": None},
    {"user": True},
    {"user": 1.5},
    {"user": " anna"},
    {"user": "a\0b"},
    {"user": "\ud800"},
    {"user": "x" * 513},
    {"": "anna"},
    {"us er": "anna"},
    {7: "anna"},
    {"user": ["anna"]},
    b"user=anna",
    7,
    pytest.param(object(), id="object"),
]


@pytest.mark.parametrize("scope", WRONG_SCOPES, ids=lambda scope: ascii(scope)[:30])
def test_a_wrong_scope_neither_reads_nor_writes(memory, path, scope, tmp_path):
    memory.observe(ANNA, said("words", id="1"))
    before = path.read_bytes(), path.with_name("memory.db-wal").read_bytes()
    calls = [
        lambda: memory.observe(scope, "words"),
        lambda: memory.remember(scope, "words"),
        lambda: memory.remember_many(scope, ["words"]),
        lambda: memory.recall(scope, "words"),
        lambda: memory.by_files(scope, ["a.py"]),
        lambda: memory.get(scope, "1"),
        lambda: memory.list(scope),
        lambda: memory.history(scope, "1"),
        lambda: memory.update(scope, "1", "other"),
        lambda: memory.pin(scope, "1"),
        lambda: memory.forget(scope, everything=True),
        lambda: memory.admin.export(scope, tmp_path / "out.jsonl"),
        lambda: memory.admin.reindex(scope),
        lambda: memory.recall([ANNA, scope], "words"),
        lambda: memory.forget([ANNA, scope], everything=True),
        lambda: memory.admin.export([ANNA, scope], tmp_path / "out.jsonl"),
    ]
    for call in calls:
        with pytest.raises(ScopeError):
            call()
    assert (path.read_bytes(), path.with_name("memory.db-wal").read_bytes()) == before
    assert not (tmp_path / "out.jsonl").exists()


def test_an_empty_list_of_scopes_is_no_scope(memory):
    memory.observe(ANNA, "words")
    for call in (memory.recall, memory.forget, memory.admin.export):
        with pytest.raises(ScopeError, match="at least one"):
            call([], "words") if call != memory.forget else call([], everything=True)
    assert texts(memory) == ["words"]


def test_what_is_new_is_decided_without_a_store() -> None:
    words = [parse_message(text) for text in ("one", "two", "three")]
    first, second = map(message_content, words[:2])
    tail = [log._Spot(b"1", first, "a"), log._Spot(b"2", second, None)]
    found = log.Found({}, {}, frozenset([words_identity(message_content(words[2]))]), {"": tail})
    comparison = log.compare_with_log(found, words)
    assert (comparison.known, comparison.forgotten, comparison.gaps) == ({0: "a"}, {1, 2}, {2})
    assert log.compare_with_log(found._replace(tails={"": ()}), words).new_places() == [0, 1]
