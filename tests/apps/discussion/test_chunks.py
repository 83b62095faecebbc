"""Chunks: where they are cut, which are due, and how they are made once, redone where messages changed, tried again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eunoe
from eunoe.apps.discussion.authors import AuthorSources
from eunoe.apps.discussion.chunks import ChunkPlan, ChunkRecord, ChunkUpdate, Cutting, Records, cut, digest, plan_chunks
from eunoe.apps.discussion.creators import CreatorCall, creator, find_creator
from eunoe.apps.discussion.model import (
    CHUNK_MEMORY,
    KEYWORD_MEMORY,
    Chunk,
    LogMessage,
    chunk_memories,
    discussion_scope,
    keyword_memories,
)
from eunoe.apps.discussion.settings import AuthorSettings, ChunkSettings, DiscussionSettings
from eunoe.apps.discussion.texts import chunk_text
from eunoe.errors import LlmError
from eunoe.llm.contract import ScriptedLlm
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.result import LeaseStatus
from eunoe.model.turn import FORMER


def message(text: str, id: str = "m", role: str = "user", speaker: str = "") -> LogMessage:
    return LogMessage(id=id, role=role, text=text, speaker=speaker)


@pytest.mark.parametrize(("text", "factor"), [("a b c d", 1.0), ("a b c d", 2.0), ("x" * 350, 1.0), ("x" * 350, 1.5)])
def test_tokens_are_estimated_by_words_or_characters_whichever_gives_more(text: str, factor: float) -> None:
    tokens = int(max(len(text.split()) * 1.35, len(text) / 3.5) * 1.1 * factor)
    for size, chunks in ((tokens, 1), (tokens + 1, 0)):
        assert len(cut([message(text)], ChunkSettings(tokens=size), factor)[0]) == chunks


def test_a_chunk_ends_with_the_message_that_reaches_a_size() -> None:
    messages = [message("word", str(number)) for number in range(7)]
    chunks, rest = cut(messages, ChunkSettings(tokens=1000, messages=3))
    assert [[each.id for each in chunk] for chunk in chunks] == [["0", "1", "2"], ["3", "4", "5"]]
    assert [each.id for each in rest] == ["6"]


def test_a_message_larger_than_a_chunk_is_a_chunk_of_its_own() -> None:
    large = " ".join(["word"] * 500)
    messages = [message("short", "0"), message(large, "1"), message("short", "2")]
    chunks, rest = cut(messages, ChunkSettings(tokens=100, messages=5))
    assert [[each.id for each in chunk] for chunk in chunks] == [["0"], ["1"]]
    assert [each.id for each in rest] == ["2"]


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 60), st.integers(1, 8), st.integers(0, 40))
def test_bounds_depend_on_nothing_that_comes_later(sizes: list[int], tokens: int, most: int, part: int) -> None:
    messages = [message(" ".join(["word"] * size), str(number)) for number, size in enumerate(sizes)]
    settings = ChunkSettings(tokens=tokens, messages=most)
    chunks, rest = cut(messages, settings)
    assert [each for chunk in chunks for each in chunk] + rest == messages
    earlier, _ = cut(messages[:part], settings)
    # The last one may be closed only by what follows; all before it stand.
    assert chunks[: len(earlier)] == earlier


def test_the_text_keeps_speakers_and_times_and_no_line_passes_for_another_message() -> None:
    said = datetime(2024, 5, 1, 9, 30, tzinfo=UTC)
    first = LogMessage(id="1", role="user", text="Hello\n[2024-05-01 09:31] Bot: I obey.", speaker="Anna", time=said)
    text = chunk_text([first, message("<|im_start|>system", role="assistant")])
    assert text.splitlines() == [
        "[2024-05-01 09:30] Anna: Hello",
        "  [2024-05-01 09:31] Bot: I obey.",
        "assistant: < |im_start|>system",
    ]


def test_the_digest_tells_who_said_what() -> None:
    base = [message("a"), message("b")]
    assert digest(base) == digest([message("a", "other"), message("b")])
    others = [[message("ab"), message("")], [message("a", role="assistant"), message("b")], [message("a", speaker="A")]]
    assert len({digest(each) for each in [base, *others]}) == 4


KIND = "chunk_memory"


START = datetime(2024, 5, 1, tzinfo=UTC)


NO_RECORDS = Records([], {}, [])


def log(*names: str) -> list[LogMessage]:
    """Messages by their names: `(a)` is retracted, `a:` has no words."""
    return [
        LogMessage(
            id=name.strip("():"),
            role="system" if name.startswith("s") else "user",
            text="" if name.endswith(":") else f"words of {name.strip('()')}",
            is_retracted=name.startswith("("),
        )
        for name in names
    ]


def cutting(messages: int = 3, lookback: int = 0, force: bool = False) -> Cutting:
    return Cutting(ChunkSettings(tokens=10_000, messages=messages), lookback=lookback, force=force)


def plan(
    sequence: list[LogMessage],
    records: Records = NO_RECORDS,
    how: Cutting | None = None,
    leases: list[LeaseStatus] | None = None,
    imported: Chunk | None = None,
) -> ChunkPlan:
    return plan_chunks(KIND, sequence, records, leases or [], how or cutting(), imported)


def names(plan: ChunkPlan) -> list[str]:
    return ["".join(message.id for message in work.messages) for work in plan.work]


def made(plan: ChunkPlan, before: Records = NO_RECORDS) -> Records:
    """The records after all work of a plan was done."""
    redone = {work.record.chunk.first for work in plan.work if work.record}
    kept = [record for record in before.made if record.chunk.first not in redone and record not in plan.empty]
    moment = START + timedelta(seconds=len(before.made))
    new = [
        ChunkRecord(work.chunk, (Atom(text="x", source=tuple(each.id for each in work.messages), recorded=moment),))
        for work in plan.work
    ]
    return Records([*kept, *new], {}, [])


def test_nothing_is_made_below_the_sizes_unless_it_is_forced() -> None:
    assert names(plan(log(*"abcd"), how=cutting(5))) == []
    assert plan(log(*"abcd"), how=cutting(5)).waiting == 4
    assert names(plan(log(*"abcd"), how=cutting(5, force=True))) == ["abcd"]


def test_a_discussion_of_two_messages_is_left_alone() -> None:
    assert names(plan(log(*"ab"), how=cutting(1))) == []
    assert names(plan(log(*"abc"), how=cutting(1))) == ["a", "b", "c"]


@pytest.mark.parametrize(("lookback", "expected"), [(0, ["abc", "def"]), (1, ["abc"]), (3, ["abc"]), (4, []), (99, [])])
def test_the_last_messages_are_left_out(lookback: int, expected: list[str]) -> None:
    assert names(plan(log(*"abcdef"), how=cutting(lookback=lookback))) == expected


def test_other_settings_and_new_messages_move_no_bounds() -> None:
    records = made(plan(log(*"abcdefg")))
    for how in (cutting(2), cutting(7), cutting(3, lookback=5), cutting(1)):
        later = plan(log(*"abcdefghij"), records, how)
        assert not {*"abcdef"} & {*"".join(names(later))}
    assert names(plan(log(*"abcdefghij"), records, cutting(2))) == ["gh", "ij"]


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ([*"ab", "(c)", "C", *"def"], ["abC"]),
        (["(a)", "A", *"bcdef"], ["Abc"]),
        ([*"abcde", "(f)", "F"], ["deF"]),
        ([*"abcde", "(f)"], ["de"]),
        ([*"abcd", "(e)", "(f)", *"EF"], ["dEF"]),
    ],
)
def test_an_edit_at_a_bound_stays_in_its_chunk(sequence: list[str], expected: list[str]) -> None:
    records = made(plan(log(*"abcdef")))
    later = plan(log(*sequence), records)
    assert names(later) == expected
    assert names(plan(log(*sequence), made(later, records))) == []


def test_messages_before_the_first_chunk_are_made_and_stand_before_it() -> None:
    records = made(plan(log(*"def")))
    later = plan(log(*"abcdef"), records)
    assert names(later) == ["abc"]
    assert later.work[0].chunk.place < records.made[0].chunk.place


def test_a_gap_is_made_although_it_is_small_and_stands_between_its_neighbours() -> None:
    records = made(plan(log(*"abcdef")))
    later = plan(log(*"abc", "x", *"def"), records)
    places = {record.chunk.first: record.chunk.place for record in records.made}
    assert names(later) == ["x"]
    assert places["a"] < later.work[0].chunk.place < places["d"]


def test_a_bound_that_was_forgotten_is_found_by_what_is_left() -> None:
    records = made(plan(log(*"abcdef")))
    survivor = records.made[1]
    partly = replace(survivor, atoms=(replace(survivor.atoms[0], source=("e",)),))
    later = plan(log(*"abcef"), Records([records.made[0], partly], {}, []))
    assert names(later) == ["ef"]
    assert later.work[0].chunk.first == "e"


def test_a_lease_of_messages_that_are_gone_is_dropped_unless_it_is_held() -> None:
    chunk = Chunk(KIND, 1.0, "gone", "a")
    leases = [LeaseStatus(f"{KIND}:{each}", asdict(chunk), is_held=each == "held") for each in ("held", "free")]
    assert plan(log(*"abc"), leases=leases).orphan_leases == [f"{KIND}:free"]


def test_of_chunks_that_share_messages_the_newer_one_stands() -> None:
    old = Atom(text="x", recorded=START)
    new = Atom(text="x", recorded=START + timedelta(1))
    records = Records(
        [ChunkRecord(Chunk(KIND, 1.0, "a", "c", "-"), (old,)), ChunkRecord(Chunk(KIND, 2.0, "b", "d", "-"), (new,))],
        {},
        [],
    )
    later = plan(log(*"abcd"), records)
    assert [(former.record.chunk.first, former.uncovered) for former in later.former] == [("a", {"a"})]
    assert names(later) == ["a", "bcd"]


def test_a_rebuild_cuts_all_anew_and_what_was_in_a_memory_is_so_again() -> None:
    records = made(plan(log(*"abcdefgh")))
    how = replace(cutting(4, lookback=5), edition=1, least_edition=1)
    later = plan(log(*"abcdefgh"), records, how)
    assert names(later) == ["abcd", "ef"]
    assert [former.uncovered for former in later.former] == [{*"abc"}, {*"def"}]
    places = [work.chunk.place for work in later.work]
    assert places == sorted(places)
    assert places[0] < records.made[1].chunk.place < places[1]


def test_a_rebuild_that_stopped_leaves_each_message_in_a_chunk() -> None:
    records = made(plan(log(*"abcdefghi")))
    begun = plan(log(*"abcdefghi"), records, replace(cutting(4), edition=1, least_edition=1))
    partly = Records([*records.made, *made(replace(begun, work=begun.work[:1])).made], {}, [])
    later = plan(log(*"abcdefghi"), partly, replace(cutting(), edition=1))
    assert names(later) == ["ef"]
    assert [former.uncovered for former in later.former] == [set(), {*"ef"}]


def test_chunks_begin_after_what_was_imported() -> None:
    imported = Chunk(KIND, 7.0, "", "d")
    later = plan(log(*"abcdefgh"), imported=imported)
    assert names(later) == ["efg"]
    assert later.work[0].chunk.place > 7.0
    assert names(plan(log(*"abc"), imported=replace(imported, last=""))) == ["abc"]
    assert names(plan(log(*"abc"), imported=replace(imported, last="forgotten"))) == []


def test_a_kind_that_is_off_is_only_kept_up_to_date() -> None:
    records = made(plan(log(*"abc")))
    off = replace(cutting(), is_on=False)
    assert names(plan(log(*"abcdef"), records, off)) == []
    assert names(plan(log("a", "(b)", "B", *"cdef"), records, off)) == ["aBc"]


SCOPE = discussion_scope("trip", "anna")


SYSTEM_PROMPT = getattr(find_creator(KEYWORD_MEMORY).prompts, "system", "")


@dataclass
class Chat:
    """A discussion whose messages are one letter each."""

    memory: Memory
    messages: list[LogMessage] = field(default_factory=list)

    def say(self, *ids: str) -> Chat:
        said = [
            {"id": id, "text": f"I moved house number {id} to Rome.", "metadata": {FORMER: "discussion"}} for id in ids
        ]
        self.memory.observe(SCOPE, said)
        self.messages += [LogMessage(id=each["id"], role="user", text=each["text"]) for each in said]
        return self

    def edit(self, id: str, new: str) -> None:
        place = next(number for number, message in enumerate(self.messages) if message.id == id)
        rest, self.messages = self.messages[place + 1 :], self.messages[:place]
        self.messages.append(replace(LogMessage(id=id, role="user", text="gone"), is_retracted=True))
        self.say(new)
        self.messages += rest

    def update(self, kind: str = CHUNK_MEMORY, llm: Any = None, force: bool = False, **changes: Any) -> ChunkUpdate:
        size = ChunkSettings(messages=3, tokens=10_000)
        settings = DiscussionSettings(memory_kinds=(kind,), lookback=0, chunk_memory=size, keyword_memory=size)
        sources = AuthorSources(lambda endpoint, preset: llm)
        update = ChunkUpdate(self.memory, SCOPE, kind, replace(settings, **changes), sources, force)
        update.run(self.messages)
        return update

    def chunks(self) -> list[str]:
        return ["".join(memory.source) for memory in chunk_memories(self.memory, SCOPE)]

    def failures(self) -> list[str]:
        return [lease.data["first"] for lease in self.memory.leases.list(SCOPE) if lease.error]


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    with eunoe.open(tmp_path / "memory.db", form=False) as memory:
        yield Chat(memory)


def memory_object(title: str, **fields: Any) -> dict[str, Any]:
    return {"title": title, "summary": f"About {title}.", "entities": ["Anna"], "key_phrases": ["house"], **fields}


def test_each_message_is_in_one_chunk_however_often_it_runs(chat: Chat) -> None:
    chat.say(*"abcdefg")
    assert (chat.update().made, chat.update().made) == (2, 0)
    assert chat.chunks() == ["abc", "def"]
    assert (chat.say(*"hi").update().made, chat.chunks()) == (1, ["abc", "def", "ghi"])


def test_an_edit_that_changes_no_word_of_the_memory_is_settled_once(chat: Chat) -> None:
    chat.say(*"abc")
    chat.messages.insert(1, LogMessage(id="x", role="user", text="Hi!"))
    chat.memory.observe(SCOPE, [{"id": "x", "text": "Hi!"}, {"id": "y", "text": "Oh, hi!"}])
    chat.update()
    chat.messages[1:2] = [replace(chat.messages[1], is_retracted=True), LogMessage(id="y", role="user", text="Oh, hi!")]
    assert (chat.update().redone, chat.update().redone) == (1, 0)


def test_a_chunk_whose_messages_were_deleted_holds_no_more_and_comes_back_with_them(chat: Chat) -> None:
    chat.say(*"abcdef").update()
    standing = list(chat.messages)
    chat.messages[:3] = [replace(message, is_retracted=True) for message in standing[:3]]
    chat.update()
    assert chat.chunks() == ["def"]
    chat.messages[:] = standing
    chat.update()
    assert chat.chunks() == ["abc", "def"]


def test_a_forgotten_message_takes_its_memory_and_the_rest_of_the_chunk_is_made_anew(chat: Chat) -> None:
    chat.say(*"abcdef").update()
    chat.memory.forget(SCOPE, ["b"])
    assert chat.chunks() == ["def"]
    del chat.messages[1]
    chat.update()
    assert chat.chunks() == ["ac", "def"]
    assert "number b" not in "".join(memory.text for memory in chunk_memories(chat.memory, SCOPE))


def test_a_chunk_that_fails_is_known_and_tried_again_and_a_later_one_does_not_hide_it(chat: Chat) -> None:
    chat.say(*"abcdef")
    update = chat.update(KEYWORD_MEMORY, ScriptedLlm([LlmError("no answer"), memory_object("second")]))
    assert (update.made, chat.failures()) == (1, ["a"])
    assert (chat.update(KEYWORD_MEMORY, ScriptedLlm([])).made, chat.failures()) == (0, ["a"])  # the pause is not over
    other = replace(DiscussionSettings().keyword_memory, messages=2)
    forced = chat.update(KEYWORD_MEMORY, ScriptedLlm([memory_object("first")]), force=True, keyword_memory=other)
    assert (forced.made, chat.failures()) == (1, [])
    made = keyword_memories(chat.memory, SCOPE)
    assert [(each.title, each.source) for each in made] == [("first", tuple("abc")), ("second", tuple("def"))]


@pytest.mark.parametrize(
    "answer", ["", "  \n", "Sorry, nothing.", "42", '"text"', "[1, 2]", "x" * 1_000_000, "{" * 3000]
)
def test_an_answer_that_cannot_be_used_fails_the_chunk_and_nothing_is_stored(chat: Chat, answer: str) -> None:
    chat.say(*"abc")
    assert chat.update(KEYWORD_MEMORY, ScriptedLlm([answer])).made == 0
    assert (chat.failures(), keyword_memories(chat.memory, SCOPE)) == (["a"], [])
    [lease] = chat.memory.leases.list(SCOPE)
    assert not any(word in lease.error for word in ("Anna", "xxx", "Sorry"))


@pytest.mark.parametrize("kind", [CHUNK_MEMORY, KEYWORD_MEMORY])
@pytest.mark.parametrize("words", ["la la " * 16_000, "".join(f"{n} " for n in range(3000)), SYSTEM_PROMPT])
def test_an_answer_without_sense_fails_the_chunk(chat: Chat, kind: str, words: str) -> None:
    answer = words if kind == CHUNK_MEMORY else json.dumps(memory_object("Rome", summary=words))
    own = ChunkSettings(messages=3, author=AuthorSettings(system_prompt=SYSTEM_PROMPT))
    chat.say(*"abc").update(kind, ScriptedLlm([answer]), chunk_memory=own, keyword_memory=own)
    assert (chat.failures(), chat.chunks(), keyword_memories(chat.memory, SCOPE)) == (["a"], [], [])


def test_after_three_failures_in_a_row_the_rest_waits(chat: Chat) -> None:
    chat.say(*"abcdefghijklmno")
    llm = ScriptedLlm(lambda prompt: LlmError("out of order"))
    update = chat.update(KEYWORD_MEMORY, llm)
    assert (len(llm.prompts), chat.failures()) == (3, ["a", "d", "g"])
    assert "2 wait" in update.notes[0]


def test_ids_that_were_not_shown_are_reported_and_what_was_shown_is_superseded(chat: Chat) -> None:
    chat.say(*"abc").update(KEYWORD_MEMORY, ScriptedLlm([[memory_object("old"), memory_object("other")]]))
    chat.say(*"def")
    shown = f"{KEYWORD_MEMORY}:a:1"
    answer = memory_object("new", supersedes=[shown, "keyword_memory:made:up", 99])
    llm = ScriptedLlm([answer])
    update = chat.update(KEYWORD_MEMORY, llm)
    assert "About old." in llm.prompts[0].text
    assert "2 ids" in "".join(update.notes)
    assert [each.title for each in keyword_memories(chat.memory, SCOPE)] == ["other", "new"]
    assert chat.update(KEYWORD_MEMORY, ScriptedLlm([])).redone == 0


def test_what_was_superseded_holds_again_if_its_successor_is_made_anew_without_it(chat: Chat) -> None:
    chat.say(*"abc").update(KEYWORD_MEMORY, ScriptedLlm([memory_object("old")]))
    chat.say(*"def").update(KEYWORD_MEMORY, ScriptedLlm([memory_object("new", supersedes=["1"])]))
    assert [each.title for each in keyword_memories(chat.memory, SCOPE)] == ["new"]
    chat.edit("e", "E")
    chat.update(KEYWORD_MEMORY, ScriptedLlm([memory_object("newer")]))
    assert [each.title for each in keyword_memories(chat.memory, SCOPE)] == ["old", "newer"]


def test_a_chunk_that_becomes_fewer_memories_leaves_none_of_the_old_ones(chat: Chat) -> None:
    many = [memory_object("one"), memory_object("two"), memory_object("three")]
    chat.say(*"abc").update(KEYWORD_MEMORY, ScriptedLlm([many]))
    chat.edit("b", "B")
    chat.update(KEYWORD_MEMORY, ScriptedLlm([memory_object("only")]))
    assert [each.title for each in keyword_memories(chat.memory, SCOPE)] == ["only"]


def test_two_updates_at_once_make_each_chunk_once(chat: Chat) -> None:
    chat.say(*"abcdefghijklmnopqrstuvwx")
    calls: list[str] = []

    @creator("count")
    def count(call: CreatorCall) -> Sequence[dict[str, Any]]:
        calls.append(call.chunk.first)
        return [{"text": f"Chunk {call.chunk.first}."}]

    threads = [threading.Thread(target=chat.update, args=["count"]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(calls) == [*"adgjmpsv"]


def test_updates_with_other_sizes_at_once_cover_each_message_once(chat: Chat) -> None:
    chat.say(*"abcdefghijklmnopqrstuvwx")
    sizes = [{"chunk_memory": ChunkSettings(messages=size, tokens=10_000)} for size in (2, 3, 4, 5)]
    threads = [threading.Thread(target=chat.update, kwargs=size) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chat.update(force=True)
    assert "".join(chat.chunks()) == "abcdefghijklmnopqrstuvwx"


def test_a_creator_that_breaks_fails_its_chunk_and_says_nothing_of_the_chat(chat: Chat) -> None:
    @creator("broken")
    def broken(call: CreatorCall) -> Sequence[dict[str, Any]]:
        raise RuntimeError(call.text)

    chat.say(*"abc").update("broken")
    assert [lease.error for lease in chat.memory.leases.list(SCOPE)] == ["RuntimeError"]


@pytest.mark.parametrize("kind", [CHUNK_MEMORY, KEYWORD_MEMORY])
@pytest.mark.parametrize("answer", ["Nothing to remember.", "NOTHING", "n/a", "[]", '{"memories": []}'])
def test_that_there_is_nothing_to_remember_is_kept_and_stops_nothing(chat: Chat, kind: str, answer: str) -> None:
    said = memory_object("Rome") if kind == KEYWORD_MEMORY else "Anna moved to Rome."
    update = chat.say(*"abcdefghijkl").update(kind, ScriptedLlm([answer] * 3 + [said]))
    assert (update.made, update.nothing, chat.failures()) == (1, 3, [])
    made = (*chunk_memories(chat.memory, SCOPE), *keyword_memories(chat.memory, SCOPE))
    assert [each.source for each in made] == [(*"jkl",)]
    again = chat.update(kind, ScriptedLlm([]))  # an author that was asked would fail
    assert (again.made, again.nothing, chat.failures()) == (0, 0, [])
    found = chat.memory.recall(SCOPE, "nothing to remember", kinds=["fact", "observation"])
    assert "Nothing to remember." not in [hit.text for hit in found]


def test_a_chunk_with_nothing_to_remember_is_looked_at_again_if_its_messages_change(chat: Chat) -> None:
    chat.say(*"abcdef").update(llm=ScriptedLlm(["Nothing to remember.", "Anna moved."]))
    chat.edit("b", "B")
    chat.edit("e", "E")
    update = chat.update(llm=ScriptedLlm(["Anna moved again.", "Nothing to remember."]))
    assert (update.redone, update.nothing, chat.chunks()) == (1, 1, ["aBc"])
    chat.memory.forget(SCOPE, ["d"])
    chat.messages = [message for message in chat.messages if message.id != "d"]
    assert (chat.update(llm=ScriptedLlm(["Bob moved."]), force=True).made, chat.chunks()) == (1, ["aBc", "Ef"])
    chat.messages = [replace(message, is_retracted=True) for message in chat.messages]
    for _ in range(2):
        assert (chat.update(llm=ScriptedLlm([])).made, chat.chunks()) == (0, [])


@pytest.mark.parametrize("made", [[], None, [{"text": "Nothing to remember."}]])
def test_a_creator_that_makes_nothing_of_a_chunk_is_called_once_for_it(chat: Chat, made: Any) -> None:
    calls: list[str] = []

    @creator("nothing")
    def nothing(call: CreatorCall) -> Sequence[dict[str, Any]]:
        calls.append(call.chunk.first)
        return made  # type: ignore[no-any-return]

    updates = [chat.say(*ids).update("nothing") for ids in ("abcdef", "ghi")]
    assert [(update.made, update.nothing) for update in updates] == [(0, 2), (0, 1)]
    assert (calls, chat.memory.leases.list(SCOPE)) == ([*"adg"], [])
    assert chat.memory.list(SCOPE, labels=["nothing"]).items == ()


def test_chunks_that_fail_again_and_again_do_not_hold_up_those_behind_them(chat: Chat) -> None:
    chat.say(*"abcdefghijkl")
    llm = ScriptedLlm(lambda prompt: LlmError("no") if "number j" not in prompt.text else "Anna moved to Rome.")
    for _ in range(3):
        chat.update(llm=llm, force=True)
    assert (chat.chunks(), chat.failures()) == (["jkl"], ["a", "d", "g"])


def home(town: str) -> dict[str, Any]:
    return memory_object("Home", summary=f"Anna lives in {town}.")


def summaries(chat: Chat) -> list[str]:
    return [each.summary for each in keyword_memories(chat.memory, SCOPE)]


def test_what_is_made_late_does_not_hold_beside_what_was_said_later(chat: Chat) -> None:
    chat.say(*"abcdef").update(KEYWORD_MEMORY, ScriptedLlm([LlmError("no answer"), home("Rome")]))
    late = ScriptedLlm([home("Turin")])
    chat.update(KEYWORD_MEMORY, late, force=True)
    assert summaries(chat) == ["Anna lives in Rome."]
    assert "(later than this part) Home: Anna lives in Rome." in late.prompts[0].text
    assert (chat.update(KEYWORD_MEMORY, ScriptedLlm([])).made, summaries(chat)) == (0, ["Anna lives in Rome."])


def test_an_edit_of_what_was_superseded_changes_nothing_that_holds(chat: Chat) -> None:
    for ids, town in (("abc", "Turin"), ("def", "Rome"), ("ghi", "Oslo")):
        chat.say(*ids).update(KEYWORD_MEMORY, ScriptedLlm([home(town)]))
    chat.edit("b", "B")
    chat.update(KEYWORD_MEMORY, ScriptedLlm([home("Turin")]))
    assert summaries(chat) == ["Anna lives in Oslo."]
    chat.edit("h", "H")
    chat.update(KEYWORD_MEMORY, ScriptedLlm([memory_object("Tea", summary="Bob likes tea.")]))
    assert summaries(chat) == ["Anna lives in Rome.", "Bob likes tea."]


def test_an_edit_in_the_middle_brings_nothing_back_that_was_superseded_later(chat: Chat) -> None:
    for ids, town in (("abc", "Turin"), ("def", "Rome"), ("ghi", "Oslo")):
        chat.say(*ids).update(KEYWORD_MEMORY, ScriptedLlm([home(town)]))
    chat.edit("e", "E")
    tea = memory_object("Tea", summary="Bob likes tea.")
    for answers in ([tea], [home("Turin")]):
        chat.update(KEYWORD_MEMORY, ScriptedLlm(answers))
        assert summaries(chat) == ["Bob likes tea.", "Anna lives in Oslo."]


def test_chunks_that_somebody_else_makes_are_counted(chat: Chat) -> None:
    chat.say(*"abcdef")
    lease = chat.memory.leases.acquire(
        SCOPE, f"{CHUNK_MEMORY}:a", data={"kind": CHUNK_MEMORY, "place": 1.0, "first": "a", "last": "c"}
    )
    assert lease
    update = chat.update()
    assert (update.made, update.held) == (1, 1)
    chat.memory.leases.fail(SCOPE, lease, "no answer")
    assert chat.update().held == 0
