"""A discussion brought up to date: one entry, at any time, by anybody, after anything; its status, and its rebuild."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion import Discussion, discussion_ids
from eunoe.apps.discussion.documents import StateDocument, current_summary
from eunoe.apps.discussion.files import Layout, import_discussion, import_folder
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import (
    CHUNK_MEMORY,
    KEYWORD_MEMORY,
    all_atoms,
    chunk_memories,
    discussion_scope,
    keyword_memories,
)
from eunoe.apps.discussion.settings import (
    AuthorSettings,
    ChunkSettings,
    DiscussionSettings,
    StateDocumentSettings,
    SummarySettings,
)
from eunoe.apps.discussion.update import UpdateReport, update_discussion
from eunoe.errors import InputError, LlmError, WorkflowError
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory

SCOPE = discussion_scope("trip", "anna")


SIZE = ChunkSettings(messages=2, tokens=10_000)


SETTINGS = DiscussionSettings(lookback=0, chunk_memory=SIZE, keyword_memory=SIZE)


CHILD = Path(__file__).parents[2] / "support" / "creator_child.py"


def chat(*texts: str) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": f"I moved {text} to Rome."} for number, text in enumerate(texts)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, form=False, embedder="none", llm="none") as memory:
        yield memory


def update(memory: Memory, messages: list[dict[str, Any]] | None = None, **options: Any) -> UpdateReport:
    return update_discussion(memory, SCOPE, options.pop("settings", SETTINGS), messages=messages, **options)


def covered(memory: Memory) -> list[list[str]]:
    """For each chunk memory the messages it rests on, each by the letter it was about."""
    log = DiscussionLog(memory, SCOPE).sequence()
    letters = {message.id: message.text.split()[2] for message in log if message.text}
    return [[letters[id] for id in each.source] for each in chunk_memories(memory, SCOPE)]


def test_a_chat_is_taken_in_and_made_into_memories_once(memory: Memory) -> None:
    report = update(memory, chat(*"abcde"))
    assert (report.made, report.waiting, report.failed) == (2, 1, ())
    assert update(memory, chat(*"abcde")).made == 0
    assert update(memory, chat(*"abcdef")).made == 1
    assert covered(memory) == [["a", "b"], ["c", "d"], ["e", "f"]]
    last = chunk_memories(memory, SCOPE)[-1]
    assert last.hash == DiscussionLog(memory, SCOPE).messages()[-1].hash


def test_an_edited_message_redoes_only_its_chunk(memory: Memory) -> None:
    update(memory, chat(*"abcdef"))
    report = update(memory, chat(*"abcXef"))
    assert (report.made, report.redone) == (0, 1)
    assert covered(memory) == [["a", "b"], ["c", "X"], ["e", "f"]]


def test_a_regenerated_last_answer_is_in_one_chunk_however_often(memory: Memory) -> None:
    for last in "dXYd":
        update(memory, chat(*"abc", last))
        assert covered(memory) == [["a", "b"], ["c", last]]
    update(memory, chat(*"abcZef"))
    assert covered(memory) == [["a", "b"], ["c", "Z"], ["e", "f"]]


def test_a_changed_lookback_or_size_skips_nothing_and_makes_nothing_twice(memory: Memory) -> None:
    update(memory, chat(*"abcdefgh"), settings=replace(SETTINGS, lookback=3))
    assert covered(memory) == [["a", "b"], ["c", "d"]]
    larger = replace(SETTINGS, lookback=1, chunk_memory=replace(SIZE, messages=3))
    update(memory, chat(*"abcdefgh"), settings=larger)
    assert covered(memory) == [["a", "b"], ["c", "d"], ["e", "f", "g"]]
    update(memory, chat(*"abcdefgh"), settings=replace(SETTINGS, lookback=6), force=True)
    update(memory, chat(*"abcdefgh"), force=True)
    assert covered(memory) == [["a", "b"], ["c", "d"], ["e", "f", "g"], ["h"]]


def test_a_cut_beginning_and_a_typed_delimiter_change_nothing(memory: Memory) -> None:
    update(memory, chat(*"abcd"))
    update(memory, chat(*"abcdef")[2:])
    assert covered(memory) == [["a", "b"], ["c", "d"], ["e", "f"]]
    typed = [{"role": "user", "content": "I moved --ChunkBreak-- to --ChunkBreak-- Rome."}]
    update(memory, [*chat(*"abcdef"), *typed], force=True)
    assert covered(memory)[:3] == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert len(covered(memory)) == 4


def test_images_and_system_prompts_are_skipped(memory: Memory) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    first, second, third = chat(*"abc")
    request = [{"role": "system", "content": "Be kind."}, first, {"role": "user", "content": [image]}, second, third]
    assert update(memory, request).made == 1
    assert covered(memory) == [["a", "b"]]


def test_a_flip_of_the_kind_leaves_what_was_made_and_begins_with_the_first_message(memory: Memory) -> None:
    update(memory, chat(*"abcdef"))
    report = update(memory, chat(*"abcdef"), settings=replace(SETTINGS, memory_kinds=(KEYWORD_MEMORY,)))
    assert (report.made, len(chunk_memories(memory, SCOPE))) == (3, 3)
    assert {each.chunk.first for each in keyword_memories(memory, SCOPE) if each.chunk} == {
        each.chunk.first for each in chunk_memories(memory, SCOPE) if each.chunk
    }
    both = replace(SETTINGS, memory_kinds=(CHUNK_MEMORY, KEYWORD_MEMORY))
    assert update(memory, chat(*"abcdef"), settings=both).made == 0


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_each_message_that_stands_is_in_one_chunk(memory: Memory, seed: int) -> None:
    choose = random.Random(seed)
    texts, number = list("abcd"), 0
    for _ in range(25):
        for _ in range(choose.randint(0, 4)):
            texts.append(f"t{(number := number + 1)}")
        place = choose.randrange(len(texts))
        match choose.choice(["edit", "delete", "regenerate", "cut back", "nothing"]):
            case "edit":
                texts[place] = f"t{(number := number + 1)}"
            case "delete":
                del texts[place]
            case "regenerate":
                texts[-1] = f"t{(number := number + 1)}"
            case "cut back":
                del texts[max(place, 3) :]
        texts += ["z"] * (3 - len(texts))
        sizes = replace(SIZE, messages=choose.randint(1, 4))
        settings = replace(SETTINGS, lookback=choose.randint(0, 4), chunk_memory=sizes)
        llm = ScriptedLlm(lambda prompt: LlmError("no answer") if choose.random() < 0.3 else "Something happened.")
        shown = choose.randint(0, len(texts) // 2) if choose.random() < 0.2 else 0
        request = [{"role": "user", "content": f"I moved {text} to Rome."} for text in texts]
        update(memory, request[shown:], settings=settings, find_model=lambda endpoint, preset, llm=llm: llm)
        made = [letter for chunk in covered(memory) for letter in chunk]
        assert len(made) == len(set(made))
    for _ in range(2):
        update(memory, request, force=True)
    standing = [message.text.split()[2] for message in DiscussionLog(memory, SCOPE).messages()]
    assert [letter for chunk in covered(memory) for letter in chunk] == standing


def start(path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", str(CHILD), str(path), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def echoes(path: Path) -> list[str]:
    with eunoe.open(path, form=False, embedder="none", llm="none") as memory:
        return [atom.text for atom in all_atoms(memory, SCOPE, "echo") if atom.valid_to is None]


def test_after_a_kill_nothing_is_made_twice_and_nothing_is_skipped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EUNOE_LEASE", "0.3")
    with eunoe.open(path, form=False, embedder="none", llm="none") as memory:
        DiscussionLog(memory, SCOPE).take_in(chat(*"abcdefgh"))
    killed = start(path, "--wait")
    assert killed.stdin
    assert killed.stdout
    for _ in range(2):
        assert "chunk" in json.loads(killed.stdout.readline())
        killed.stdin.write("\n")
        killed.stdin.flush()
    assert "chunk" in json.loads(killed.stdout.readline())
    killed.kill()
    killed.communicate()
    made = len(echoes(path))
    assert made == 2
    while len(echoes(path)) < 4:  # the lease of the killed process runs out
        said, _ = start(path).communicate()
        made += json.loads(said.splitlines()[-1])["made"]
    assert made == 4
    assert [text.count("moved") for text in echoes(path)] == [2, 2, 2, 2]


def test_two_processes_at_once_make_each_chunk_once(path: Path) -> None:
    with eunoe.open(path, form=False, embedder="none", llm="none") as memory:
        DiscussionLog(memory, SCOPE).take_in(chat(*map(str, range(40))))
    processes = [start(path) for _ in range(2)]
    lines = [json.loads(line) for each in processes for line in each.communicate()[0].splitlines()]
    chunks = [line["chunk"] for line in lines if "chunk" in line]
    assert len(chunks) == len(set(chunks)) == sum(line.get("made", 0) for line in lines) == 20


SMALL = DiscussionSettings(memory_kinds=("chunk_memory", "keyword_memory"), lookback=0)


def towns(count: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": f"Anna went to town number {number}."} for number in range(count)]


def test_the_status_of_a_discussion(memory: eunoe.Memory) -> None:
    trip = Discussion(memory, "trip", "anna")
    assert trip.status().is_empty
    trip.update(towns(20), SMALL)
    trip.update([*towns(19), {"role": "assistant", "content": "No, that was another town."}], SMALL)
    status = trip.status()
    assert (status.id, status.user, status.messages, status.retracted) == ("trip", "anna", 20, 1)
    assert (status.chunk_memories, status.waiting, status.summary > 0) == (4, 0, True)
    assert status.keyword_memories > 0
    assert not status.is_empty


def test_a_forgotten_memory_is_not_made_again_and_leaves_no_words(memory: eunoe.Memory) -> None:
    trip = Discussion(memory, "trip", "anna")
    trip.update(towns(20), SMALL)
    gone = [chunk_memories(memory, trip.scope)[1], *keyword_memories(memory, trip.scope)[3:6]]
    report = trip.forget(each.id for each in gone)
    assert len(report.atoms) == 4
    for _ in range(2):
        assert trip.update(towns(20), SMALL).made == 0
        left = (*chunk_memories(memory, trip.scope), *keyword_memories(memory, trip.scope))
        assert not {each.id for each in gone} & {each.id for each in left}
        assert "town number 7" not in current_summary(memory, trip.scope)
    marks = [item for item in memory.list(trip.scope, limit=100).items if item.text == "Nothing to remember."]
    assert "town" not in str([dict(item.metadata) for item in marks])
    assert trip.rebuild(SMALL).made == 8
    assert len(chunk_memories(memory, trip.scope)) == 4


def test_a_prompt_is_tried_on_one_chunk_and_nothing_is_kept(memory: eunoe.Memory) -> None:
    trip, llm = Discussion(memory, "trip", "anna"), ScriptedLlm(["Anna went to Peru.", "NOTHING"])
    trip.update(towns(20), SMALL)
    before = memory.list(trip.scope, limit=200).items
    settings = DiscussionSettings(chunk_memory=ChunkSettings(author=AuthorSettings(prompt="In one line: [TextChunk]")))
    for texts in (["Anna went to Peru."], []):
        [trial] = trip.try_chunk(2, settings, find_model=lambda *_: llm)
        assert [item["text"] for item in trial.made] == texts
        assert [atom.text for atom in trial.now] == [chunk_memories(memory, trip.scope)[1].text]
    assert llm.prompts[0].text.startswith("In one line: <TextChunk>")
    assert (memory.list(trip.scope, limit=200).items, memory.leases.list(trip.scope)) == (before, [])
    with pytest.raises(InputError, match="there is no chunk 0"):
        trip.try_chunk(0, settings)


def test_messages_of_imported_memories_do_not_wait(memory: eunoe.Memory, tmp_path: Path) -> None:
    folder = tmp_path / "trip"
    folder.mkdir()
    blocks = [{"text_block": "Anna went to ten towns.", "hash": sha256(towns(10)[-1]["content"].encode()).hexdigest()}]
    (folder / "memories.json").write_text(json.dumps(blocks))
    import_discussion(memory, folder)
    trip = Discussion(memory, "trip")
    trip.update(towns(17), replace(SMALL, memory_kinds=("chunk_memory",)))
    assert (trip.status().chunk_memories, trip.status().waiting) == (2, 2)


def test_reading_the_status_of_what_is_not_there_makes_nothing(memory: eunoe.Memory) -> None:
    Discussion(memory, "trip").status()
    assert memory.scopes() == []


def test_a_rebuild_cuts_anew_and_keeps_the_history(memory: eunoe.Memory) -> None:
    trip = Discussion(memory, "trip")
    trip.update(towns(30), SMALL)
    old = keyword_memories(memory, trip.scope)[0]
    sizes = ChunkSettings(tokens=100_000, messages=10)
    trip.rebuild(replace(SMALL, chunk_memory=sizes, keyword_memory=sizes))
    memories = chunk_memories(memory, trip.scope)
    assert [len(each.source) for each in memories] == [10, 10, 10]
    assert any(atom.text == old.summary for atom in memory.history(trip.scope, old.id))
    assert memory.summaries.revisions(trip.scope)[-1].current


def test_a_deleted_discussion_leaves_the_others_alone(memory: eunoe.Memory) -> None:
    for id, user in (("trip", "anna"), ("trip", "ben"), ("work", "anna")):
        Discussion(memory, id, user).update(towns(12), SMALL)
    report = Discussion(memory, "trip", "anna").delete()
    assert len(report.messages) == 12
    assert (discussion_ids(memory, "anna"), discussion_ids(memory, "ben")) == (["work"], ["trip"])
    assert Discussion(memory, "trip", "anna").status().is_empty


@pytest.mark.parametrize("id", ["Unsere Reise", "Köln & Zürich", "東京", "100%", "ä" * 100])
@pytest.mark.parametrize("layout", ["folders", "flat"])
def test_a_discussion_may_be_called_anything_that_a_file_can(
    memory: eunoe.Memory, tmp_path: Path, id: str, layout: Layout
) -> None:
    Discussion(memory, id).update(towns(20), SMALL, files_dir=tmp_path, layout=layout)
    assert (discussion_ids(memory), Discussion(memory, id).status().chunk_memories) == ([id], 4)
    with eunoe.open(":memory:", embedder="none", llm="none") as other:
        [done] = import_folder(other, tmp_path).discussions
        assert (done.id, len(chunk_memories(other, discussion_scope(id)))) == (id, 4)


class Stop(BaseException):
    """Ends a run as a kill does: nobody catches it."""


def sums_up(prompt: Prompt) -> str:
    """One sentence with all that a prompt tells of, so that a test sees what came from where."""
    return f"They spoke of {', '.join(sorted(set(re.findall(r'town number [0-9]+', prompt.text))))}."


BOTH = replace(SMALL, chunk_memory=ChunkSettings(messages=4), state_document=StateDocumentSettings(is_on=True))


def holding(trip: Discussion) -> tuple[list[str], list[str], str, str]:
    """All that is in force."""
    chunks, keywords = chunk_memories(trip.memory, trip.scope), keyword_memories(trip.memory, trip.scope)
    document = StateDocument(trip.memory, trip.scope).read()
    return (
        [each.id for each in chunks],
        [each.id for each in keywords],
        current_summary(trip.memory, trip.scope),
        document,
    )


def test_a_rebuild_that_cannot_begin_or_fails_ends_nothing(memory: eunoe.Memory) -> None:
    trip = Discussion(memory, "trip")
    trip.update(towns(30), BOTH)
    before = holding(trip)
    unknown = replace(BOTH, summary=SummarySettings(author=AuthorSettings(workflow="nope")))
    with pytest.raises(WorkflowError, match="nope"):
        trip.rebuild(unknown)
    broken = ScriptedLlm(lambda prompt: LlmError("out of order"))
    report = trip.rebuild(BOTH, find_model=lambda endpoint, preset: broken)
    assert (report.made, len(report.failed), holding(trip)) == (0, 6, before)
    assert "rebuild again to go on" in "".join(report.notes)
    assert (trip.update(None, BOTH).failed, holding(trip)) == ((), before)


def test_a_rebuild_that_is_killed_loses_nothing_and_goes_on(memory: eunoe.Memory) -> None:
    trip = Discussion(memory, "trip")
    kinds = replace(BOTH, memory_kinds=("chunk_memory",), state_document=StateDocumentSettings())
    trip.update(towns(30), kinds)
    larger, asked = replace(kinds, chunk_memory=ChunkSettings(messages=6)), []

    def killed(prompt: Prompt) -> str:
        asked.append(prompt)
        if len(asked) == 3:
            raise Stop
        return sums_up(prompt)

    with pytest.raises(Stop):
        trip.rebuild(larger, find_model=lambda endpoint, preset: ScriptedLlm(killed))
    used = {id for each in chunk_memories(memory, trip.scope) for id in each.source}
    assert used >= {message.id for message in trip.log.messages()[:28]}
    again = ScriptedLlm(sums_up)
    report = trip.rebuild(larger, find_model=lambda endpoint, preset: again)
    assert (report.made, report.notes) == (3, ())
    assert [len(each.source) for each in chunk_memories(memory, trip.scope)] == [6] * 5
    assert trip.update(None, larger).made == 0


def test_after_a_rebuild_that_stopped_an_update_leaves_each_message_in_one_memory(memory: eunoe.Memory) -> None:
    trip = Discussion(memory, "trip")
    sizes = replace(SMALL, memory_kinds=("chunk_memory",))
    trip.update(towns(30), sizes)
    answers = ScriptedLlm(["One.", *[LlmError("no answer")] * 20])
    trip.rebuild(replace(sizes, chunk_memory=ChunkSettings(messages=7)), find_model=lambda endpoint, preset: answers)
    trip.update(None, sizes)
    sources = [id for each in chunk_memories(memory, trip.scope) for id in each.source]
    assert sources == [message.id for message in trip.log.messages()]


def test_a_rebuild_with_other_settings_than_the_one_that_stopped_begins_anew(memory: eunoe.Memory) -> None:
    trip = Discussion(memory, "trip")
    sizes = replace(SMALL, memory_kinds=("chunk_memory",))
    trip.update(towns(30), sizes)
    answers = ScriptedLlm(["One.", *[LlmError("no answer")] * 20])
    trip.rebuild(replace(sizes, chunk_memory=ChunkSettings(messages=7)), find_model=lambda endpoint, preset: answers)
    assert trip.rebuild(replace(sizes, chunk_memory=ChunkSettings(messages=10))).made == 3
    assert "One." not in [each.text for each in chunk_memories(memory, trip.scope)]


def test_a_rebuild_writes_summary_and_state_document_anew_and_keeps_what_a_person_wrote(memory: eunoe.Memory) -> None:
    trip = Discussion(memory, "trip")
    first, second = (ScriptedLlm(lambda prompt, word=word: f"The {word} text of towns.") for word in ("blue", "green"))
    settings = replace(BOTH, memory_kinds=("chunk_memory",))
    trip.update(towns(16), settings, find_model=lambda endpoint, preset: first)
    trip.rebuild(settings, find_model=lambda endpoint, preset: second)
    assert holding(trip)[2:] == ("The green text of towns.", "The green text of towns.")
    assert not any("blue" in prompt.text for prompt in second.prompts)
    StateDocument(memory, trip.scope).write("Anna's own words.")
    trip.rebuild(settings, find_model=lambda endpoint, preset: first)
    assert "Anna's own words." in first.prompts[-1].text
