"""A discussion brought up to date: one entry, at any time, by anybody, after anything."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import (
    CHUNK_MEMORY,
    KEYWORD_MEMORY,
    all_atoms,
    chunk_memories,
    discussion_scope,
    keyword_memories,
)
from eunoe.apps.discussion.settings import ChunkSettings, DiscussionSettings
from eunoe.apps.discussion.update import UpdateReport, update_discussion
from eunoe.errors import LlmError
from eunoe.llm.contract import ScriptedLlm
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
    with eunoe.open(path, form=False, embedder="none") as memory:
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
    with eunoe.open(path, form=False, embedder="none") as memory:
        return [atom.text for atom in all_atoms(memory, SCOPE, "echo") if atom.valid_to is None]


def test_after_a_kill_nothing_is_made_twice_and_nothing_is_skipped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EUNOE_LEASE", "0.3")
    with eunoe.open(path, form=False, embedder="none") as memory:
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
    with eunoe.open(path, form=False, embedder="none") as memory:
        DiscussionLog(memory, SCOPE).take_in(chat(*map(str, range(40))))
    processes = [start(path) for _ in range(2)]
    lines = [json.loads(line) for each in processes for line in each.communicate()[0].splitlines()]
    chunks = [line["chunk"] for line in lines if "chunk" in line]
    assert len(chunks) == len(set(chunks)) == sum(line.get("made", 0) for line in lines) == 20
