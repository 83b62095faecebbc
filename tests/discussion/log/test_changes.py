"""What a request changes in a log: only what it shows to be changed."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunoe.discussion.log.changes import Line, LogChanges, find_changes


class Chat:
    """A log in memory, whose messages are words; the first letter is the role."""

    def __init__(self, *requests: str) -> None:
        self.lines: list[Line] = []
        for request in requests:
            self.take_in(request.split())

    def take_in(self, words: Sequence[str], *, is_whole: bool = False) -> LogChanges:
        changes = find_changes(self.lines, [line(word) for word in words], is_whole=is_whole)
        for is_retracted, places in ((True, changes.retracted), (False, changes.restored)):
            for place in places:
                assert self.lines[place].is_retracted != is_retracted
                self.lines[place] = self.lines[place]._replace(is_retracted=is_retracted)
        inserted: dict[int, list[Line]] = {}
        for number, place in changes.before.items():
            inserted.setdefault(place, []).append(line(words[number]))
        old, self.lines = self.lines, []
        for place in range(len(old) + 1):
            self.lines += inserted.get(place, [])
            self.lines += old[place : place + 1]
        return changes

    def __str__(self) -> str:
        return " ".join(line.key for line in self.lines if not line.is_retracted)


def line(word: str) -> Line:
    return Line(word, word[0], word)


@pytest.mark.parametrize(
    ("requests", "chat"),
    [
        (("u1", "u1 a2 u3"), "u1 a2 u3"),
        (("u1 a2 u3 a4", "u3 a4 u5"), "u1 a2 u3 a4 u5"),
        (("u1 uok afine", "afine uok"), "u1 uok afine uok"),
        (("u1 uok afine", "uok"), "u1 uok afine uok"),
        (("u1 a2 u3", "u1 a2 u3"), "u1 a2 u3"),
        (("u3 a4", "u1 a2 u3 a4 u5"), "u1 a2 u3 a4 u5"),
    ],
)
def test_what_is_cut_or_said_again_takes_nothing_back(requests: Sequence[str], chat: str) -> None:
    assert str(Chat(*requests)) == chat


@pytest.mark.parametrize(
    ("requests", "chat"),
    [
        (("u1 a2 u3 a4", "u1 ax u3 a4"), "u1 ax u3 a4"),
        (("u1 a2 u3 a4", "ux a2 u3 a4"), "ux a2 u3 a4"),
        (("u1 a2 u3 a4", "u1 u3 a4 u5"), "u1 u3 a4 u5"),
        (("u1 a2 u3 a4", "u1 a2 a4 u5"), "u1 a2 a4 u5"),
        (("u1 a2 u3 a4 u5", "u1 a2"), "u1 a2"),
        (("u1 a2 u3 a4 u5", "u3 ax u7"), "u1 a2 u3 ax u7"),
        (("u1 a2", "u1"), "u1"),
        (("u1 a2 u3", "a2 ux"), "u1 a2 ux"),
        (("u1 a2 u3", "u1 ax", "u1 a2 u3 a4"), "u1 a2 u3 a4"),
        (("u1 a2 u3 a4 u5", "u1 a2 u3", "u1 a2 u3 a4 u5 a6"), "u1 a2 u3 a4 u5 a6"),
    ],
)
def test_what_was_edited_deleted_or_regenerated_is_taken_back(requests: Sequence[str], chat: str) -> None:
    assert str(Chat(*requests)) == chat


def test_a_message_that_is_shown_again_is_the_same_one() -> None:
    chat = Chat("u1 a2 u3", "u1 ax u3")
    chat.take_in(["u1", "a2", "u3"])
    assert str(chat) == "u1 a2 u3"
    assert len(chat.lines) == 4


@pytest.mark.parametrize("request_", ["u7", "u1", "u1 new", "u7 a8", "foreign", "u1 a4 foreign", "x u9"])
def test_a_short_request_takes_back_nothing_of_a_long_log(request_: str) -> None:
    chat = Chat(" ".join(f"{'ua'[number % 2]}{number}" for number in range(5000)))
    assert not chat.take_in(request_.split()).retracted


def test_a_front_end_that_keeps_the_first_message_and_the_last_ones() -> None:
    words = [f"{'ua'[number % 2]}{number}" for number in range(40)]
    chat = Chat()
    for end in range(1, 41, 2):
        chat.take_in(words[:end] if end < 9 else [words[0], *words[end - 8 : end]])
    assert str(chat) == " ".join(words[:39])


def test_the_whole_chat_takes_back_whatever_it_does_not_show() -> None:
    chat = Chat(" ".join(f"u{number}" for number in range(100)))
    chat.take_in(["u5", "u9", "new"], is_whole=True)
    assert str(chat) == "u5 u9 new"
    chat.take_in(["other"], is_whole=True)
    assert str(chat) == "other"


WORDS = st.lists(st.sampled_from(["uok", "afine", "uyes", "ano", "u1", "a1"]), min_size=1, max_size=8)


@given(st.lists(WORDS, min_size=1, max_size=6))
def test_every_request_is_in_the_chat_and_the_second_time_changes_nothing(requests: list[list[str]]) -> None:
    chat = Chat()
    for words in requests:
        chat.take_in(words)
        rest = iter(str(chat).split())
        assert all(word in rest for word in words)
        if str(chat).split()[-len(words) :] == words:
            again = chat.take_in(words)
            assert (again.before, again.retracted, again.restored) == ({}, [], [])


class FrontEnd:
    """A chat of messages that are all different, of which requests show the end."""

    def __init__(self) -> None:
        self.chat: list[str] = []
        self.count = 0

    def new(self, role: str) -> str:
        self.count += 1
        return f"{role}{self.count}-" + f"{self.count * 7919 % 9973:04d}" * 5

    def do(self, action: str, back: int, size: int) -> list[str]:
        """Do something to one of the last messages, and show the end of the chat; beyond what was changed."""
        place = max(1, len(self.chat) - 1 - back)
        if action == "edit" and place < len(self.chat):
            self.chat[place] = self.new(self.chat[place][0])
        elif action == "delete" and 1 < place < len(self.chat):
            del self.chat[place]
        elif action == "regenerate" and self.chat:
            self.chat[-1:] = [self.new(self.chat[-1][0])]
        elif action == "insert" and self.chat:
            self.chat.insert(place, self.new("u"))
        self.chat += [self.new("a"), self.new("u")] if action == "append" or not self.chat else []
        return self.chat[-(back + 5 + size) :]


ACTIONS = st.sampled_from(["append", "append", "edit", "delete", "regenerate", "insert", "repeat"])


@settings(max_examples=150)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 4), st.integers(0, 12)), max_size=25))
def test_the_log_stays_the_chat_of_the_front_end(steps: list[tuple[str, int, int]]) -> None:
    front_end, chat = FrontEnd(), Chat()
    lines = 0
    for step in steps:
        chat.take_in(front_end.do(*step))
        assert str(chat).split() == front_end.chat
        assert len(chat.lines) >= lines
        lines = len(chat.lines)
