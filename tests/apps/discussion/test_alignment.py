"""What a request changes in a log: what it adds, takes back and brings back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eunoe
from eunoe.apps.discussion import Discussion
from eunoe.apps.discussion.alignment import Hole, Line, LogChanges, find_changes


class Chat:
    """A log in memory, whose messages are words; the first letter is the role."""

    def __init__(self, *requests: str) -> None:
        self.lines: list[Line] = []
        self.moment = datetime(2024, 1, 1, tzinfo=UTC)
        for request in requests:
            self.take_in(request.split())

    def take_in(self, words: Sequence[str], *, is_whole: bool = False) -> LogChanges:
        changes = find_changes(self.lines, [line(word) for word in words], is_whole=is_whole)
        ids = [self.new_id() if place is None else self.lines[place].id for place in changes.places]
        holes = [Hole(ids[left], "" if right is None else ids[right]) for left, right in changes.holes.items()]
        inserted: dict[int, list[Line]] = {}
        for number, place in changes.before.items():
            new = line(words[number])._replace(id=ids[number], recorded=self.moment, holes=holes)
            inserted.setdefault(place, []).append(new)
        self.tick()
        for retired, places in ((self.moment, changes.retracted), (None, changes.restored)):
            for place in places:
                assert self.lines[place].is_retracted != bool(retired)
                self.lines[place] = self.lines[place]._replace(retired=retired)
        old, self.lines = self.lines, []
        for place in range(len(old) + 1):
            self.lines += inserted.get(place, [])
            self.lines += old[place : place + 1]
        return changes

    def tick(self) -> None:
        self.moment += timedelta(seconds=1)

    def new_id(self) -> str:
        self.tick()
        return self.moment.isoformat()

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


def words(count: int, name: str = "") -> list[str]:
    return [f"{'ua'[number % 2]}{name}{number}" for number in range(count)]


@pytest.mark.parametrize("place", [2, 3, 4, 9, 30])
def test_what_follows_an_edited_message_is_gone_however_much_it_is(place: int) -> None:
    chat, opening = Chat(" ".join(words(40))), words(place)
    assert not chat.take_in([*opening, words(place + 1, "other")[-1]]).note
    assert str(chat).split() == [*opening, words(place + 1, "other")[-1]]


def test_a_branch_that_shows_too_little_is_kept_with_a_note_until_the_chat_goes_on() -> None:
    chat, branch = Chat(" ".join(words(40))), ["u0", *words(8, "other")[1:]]
    assert chat.take_in(branch[:3]).note
    assert len(str(chat).split()) == 42
    chat.take_in(branch[:5])
    assert str(chat).split() == branch[:5]


def test_what_is_missing_from_the_middle_is_gone_once_enough_is_shown_behind_it() -> None:
    chat, rest = Chat(" ".join(words(40))), [*words(4), *words(40)[20:]]
    notes = []
    for end in range(0, 8, 2):
        notes.append(chat.take_in([*rest, *words(end, "new")]).note)
    assert notes[0]
    assert not notes[-1]
    assert str(chat).split() == [*rest, *words(6, "new")]


@pytest.mark.parametrize("new", [0, 2])
def test_neighbours_deleted_right_behind_the_first_message_are_gone(new: int) -> None:
    chat = Chat(" ".join(words(8)))
    chat.take_in(["u0", *words(8 + new)[3:]])
    assert str(chat).split() == ["u0", *words(8 + new)[3:]]


@pytest.mark.parametrize("kept", [1, 2, 3, 8])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_front_end_that_keeps_some_first_messages_and_the_last_ones(kept: int, step: int) -> None:
    chat, whole = Chat(), words(80)
    for end in range(1, 81, step):
        chat.take_in(whole[:end] if end <= kept + 10 else [*whole[:kept], *whole[end - 10 : end]])
    assert str(chat).split() == whole[:end]


def test_a_cut_request_that_begins_as_the_log_begins() -> None:
    chat = Chat("uhi ahello u1 a2 uhi ahello u3 a4 u5 a6")
    chat.take_in(["uhi", "ahello", "u3", "a4", "u5", "ax"])
    assert str(chat) == "uhi ahello u1 a2 uhi ahello u3 a4 u5 ax"


SHORT = {"u": ["uok", "uyes", "uthanks"], "a": ["afine", "asure"]}


class ShortFrontEnd:
    """A chat where much is said again, of which requests show the end."""

    def __init__(self, random: Random) -> None:
        self.random, self.count = random, 0
        self.chat: list[str] = []
        self.chat = [self.new("u"), self.new("a"), self.new("u")]

    def new(self, role: str) -> str:
        """Something new, or what was said before; not what was just said, which would be a retry."""
        self.count += 1
        words = [word for word in SHORT[role] if word not in self.chat[-4:]]
        return self.random.choice(words) if words and self.random.random() < 0.4 else f"{role}{self.count}"

    def do(self, action: str, back: int, size: int) -> list[str]:
        place = max(2, len(self.chat) - 1 - back)
        if action in ("append", "greet"):  # a greeting that is said again has the same answer
            answer = self.chat[1] if self.chat[-1] == self.chat[0] else self.new("a")
            is_greeting = action == "greet" and self.chat[0] not in self.chat[-4:]
            self.chat += [answer, self.chat[0] if is_greeting else self.new("u")]
        elif action == "regenerate":
            self.count += 1
            self.chat[-1] = f"{self.chat[-1][0]}{self.count}"
        elif action == "branch":
            self.count += 1
            self.chat[place:] = [f"{self.chat[place][0]}{self.count}"]
        return self.chat[-(5 + back + size) :]


SHORT_ACTIONS = ("append", "append", "greet", "regenerate", "branch", "repeat")


@pytest.mark.parametrize("start", range(0, 1000, 500))
def test_nothing_is_lost_where_much_is_said_again(start: int) -> None:
    for seed in range(start, start + 500):
        random = Random(seed)
        front_end, chat = ShortFrontEnd(random), Chat()
        chat.take_in(front_end.chat)
        for _ in range(random.randrange(20)):
            chat.take_in(front_end.do(random.choice(SHORT_ACTIONS), random.randrange(4), random.randrange(13)))
            rest = iter(str(chat).split())
            assert all(word in rest for word in front_end.chat), f"seed {seed}"


def say(role: str, *texts: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for text in texts]


def turn(question: str, answer: str) -> list[dict[str, str]]:
    return [*say("user", question), *say("assistant", answer)]


@pytest.mark.parametrize(
    ("turns", "chat"),
    [
        ([turn("One.", "ok"), turn("Two.", "ok"), turn("Three.", "ok")], ["One.", "ok", "Two.", "ok", "Three.", "ok"]),
        (
            [turn("ok", "One."), turn("More?", "Two."), turn("ok", "Three.")],
            ["ok", "One.", "More?", "Two.", "ok", "Three."],
        ),
        ([turn("Why?", "So."), turn("Why?", "Because.")], ["Why?", "Because."]),
        ([turn("Why?", "So."), turn("Why?", "So.")], ["Why?", "So."]),
        ([turn("Why?", "So."), turn("Why?", "Because."), turn("Why?", "So.")], ["Why?", "So."]),
        ([say("user", "Why?"), say("assistant", "So.")], ["Why?", "So."]),
        ([say("user", "Why?"), turn("Why?", "So.")], ["Why?", "So."]),
        ([turn("Why?", "So."), say("user", "Why?")], ["Why?", "So."]),
        ([turn("Yes?", "ok"), say("user", "No?"), say("assistant", "ok")], ["Yes?", "ok", "No?", "ok"]),
        ([turn("One.", "ok"), []], ["One.", "ok"]),
    ],
)
def test_turns(turns: list[list[dict[str, str]]], chat: list[str]) -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        log = Discussion(memory, "trip").log
        for each in turns:
            log.take_in_turn(each)
        assert [message.text for message in log.messages()] == chat
