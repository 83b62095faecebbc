"""Settings of discussions: files of the real application, and what of them is honoured."""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion import Discussion
from eunoe.apps.discussion.settings import (
    BOTH,
    DEFAULT_SETTINGS,
    KEYS,
    UNSUPPORTED,
    USE_VECTOR,
    DiscussionSettings,
    read_settings,
    read_user_settings,
)
from eunoe.errors import InputError

PAGE = Path(__file__).parents[3] / "docs" / "discussions" / "settings.md"


DEFAULTS = {
    "useVectorForQualityMemory": False,
    "vectorMemoryMaxResponseSizeInTokens": 1024,
    "vectorMemoryChunkEstimatedTokenSize": 1000,
    "vectorMemoryMaxMessagesBetweenChunks": 5,
    "useStateDocument": False,
    "stateDocumentMinRetentionRatio": 0.5,
    "chunkEstimatedTokenSize": 1000,
    "maxMessagesBetweenChunks": 5,
    "lookbackStartTurn": 3,
    "maxResponseSizeInTokens": 400,
    "condenseMemories": False,
    "memoryCondensationBuffer": 0,
    "condensationLockTimeoutSeconds": 600,
    "wilmerContextEstimationLevel": "conservative",
}


"""What the application's own defaults are."""


COMPLETE: dict[str, Any] = {
    **DEFAULTS,
    "useVectorForQualityMemory": True,
    "vectorMemoryWorkflowName": "vector-flow",
    "vectorMemoryEndpointName": "Vector-Endpoint",
    "vectorMemoryPreset": "Vector-Preset",
    "vectorMemoryIndexTopics": True,
    "embeddingEndpointName": "Embedding",
    "embeddingBackfillBatchSize": 20,
    "useStateDocument": True,
    "stateDocumentWorkflowName": "state-flow",
    "stateDocumentMinRetentionRatio": 0.7,
    "fileMemoryWorkflowName": "file-flow",
    "systemPrompt": "Sum up.",
    "prompt": "Sum this up: [TextChunk]",
    "lookbackStartTurn": 0,
    "endpointName": "Worker",
    "preset": "Calm",
    "condenseMemories": True,
    "memoriesBeforeCondensation": 4,
    "memoryCondensationBuffer": 2,
    "condenseMemoriesSystemPrompt": "Condense.",
    "condenseMemoriesPrompt": "Condense [MemoriesToCondense]",
    "condenseMemoriesEndpointName": "Condenser",
    "condenseMemoriesPreset": "Short",
    "condenseMemoriesMaxResponseSizeInTokens": 300,
    "condensationLockTimeoutSeconds": 90,
    "wilmerContextEstimationLevel": "xAggressive",
}


"""Every key of the application's settings file."""


def test_the_defaults_of_the_application_are_ours() -> None:
    assert read_settings(DEFAULTS) == DEFAULT_SETTINGS
    assert read_settings({}) == DEFAULT_SETTINGS


def test_every_key_goes_where_it_belongs(tmp_path: Path) -> None:
    path = tmp_path / "_DiscussionId-MemoryFile-Workflow-Settings.json"
    path.write_text(json.dumps(COMPLETE), "utf-8-sig")
    settings = read_settings(path)
    assert (settings.memory_kinds, settings.lookback, settings.token_factor) == (("keyword_memory",), 0, 1.85)
    chunk, keyword = settings.chunk_memory.author, settings.keyword_memory.author
    assert (chunk.workflow, chunk.system_prompt, chunk.prompt) == ("file-flow", "Sum up.", "Sum this up: [TextChunk]")
    assert (chunk.endpoint, chunk.preset, chunk.max_tokens) == ("Worker", "Calm", 400)
    assert (keyword.workflow, keyword.endpoint, keyword.preset) == ("vector-flow", "Vector-Endpoint", "Vector-Preset")
    state = settings.state_document
    assert (state.is_on, state.least_share, state.author.workflow) == (True, 0.7, "state-flow")
    assert [note.split()[0] for note in settings.notes] == [key for key in COMPLETE if key in UNSUPPORTED]


def accepted(key: str) -> list[DiscussionSettings]:
    """What comes of values of all types that a key takes."""
    found = []
    for value in (True, False, 7, 0.25, "x", "balanced"):
        with suppress(InputError):
            found.append(read_settings({key: value}))
    return found


@pytest.mark.parametrize("key", KEYS)
def test_no_key_is_passed_over_in_silence(key: str) -> None:
    assert any(settings != DEFAULT_SETTINGS for settings in accepted(key))


def test_an_unknown_key_is_named() -> None:
    assert read_settings({"lookbackStartTurns": 3}).notes == (
        "lookbackStartTurns is not supported: there is no setting of that name",
    )


def test_prompts_that_only_chunk_memories_have_are_named_where_there_are_none() -> None:
    prompts = {"systemPrompt": "You sum up.", "prompt": "Sum up."}
    for own, unused in (({}, ["systemPrompt", "prompt"]), ({"vectorMemoryPrompt": "JSON."}, ["systemPrompt"])):
        assert [note.split()[0] for note in read_settings({USE_VECTOR: True, **prompts, **own}).notes] == unused
    for other in ({}, {USE_VECTOR: True, BOTH: True}, {USE_VECTOR: True, "vectorMemoryWorkflowName": "flow"}):
        assert read_settings({**prompts, **other}).notes == ()


def test_both_kinds_are_a_setting_of_our_own() -> None:
    assert read_settings({BOTH: True, USE_VECTOR: False}).memory_kinds == ("chunk_memory", "keyword_memory")
    assert read_settings({BOTH: False, USE_VECTOR: True}).memory_kinds == ("keyword_memory",)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("useVectorForQualityMemory", "true"),
        ("useVectorForQualityMemory", 1),
        ("both", "no"),
        ("lookbackStartTurn", "3"),
        ("lookbackStartTurn", -1),
        ("lookbackStartTurn", True),
        ("lookbackStartTurn", 2.5),
        ("chunkEstimatedTokenSize", 0),
        ("chunkEstimatedTokenSize", [1000]),
        ("prompt", ["Sum up."]),
        ("endpointName", 7),
        ("stateDocumentMinRetentionRatio", "0.5"),
        ("stateDocumentMinRetentionRatio", 1.5),
        ("stateDocumentMinRetentionRatio", True),
        ("stateDocumentMinRetentionRatio", float("nan")),
        ("wilmerContextEstimationLevel", "huge"),
        ("wilmerContextEstimationLevel", 1.5),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_key(key: str, value: object) -> None:
    with pytest.raises(InputError, match=key):
        read_settings({key: value})


def test_null_stands_for_a_key_that_is_not_given() -> None:
    assert read_settings(dict.fromkeys([*KEYS, USE_VECTOR, BOTH, *UNSUPPORTED])) == DEFAULT_SETTINGS


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', "\ufffd", '{"prompt": "x"'])
def test_a_file_that_is_no_settings_file_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError, match="settings"):
        read_settings(path)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_settings(tmp_path / "none.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not JSON"):
        read_settings(tmp_path / "binary.json")


def test_the_file_of_a_user_names_workflows_and_folders(tmp_path: Path) -> None:
    path = tmp_path / "anna.json"
    given = {
        "port": 5002,
        "discussionDirectory": "D:\\Discussions",
        "discussionIdMemoryFileWorkflowSettings": "_DiscussionId-MemoryFile-Workflow-Settings",
        "recentMemoryToolWorkflow": "RecentMemory",
        "fileMemoryToolWorkflow": "FileMemory",
        "chatSummaryToolWorkflow": "ChatSummary",
    }
    path.write_text(json.dumps(given), "utf-8")
    user = read_user_settings(path)
    assert (user.discussion_directory, user.settings_name) == (
        "D:\\Discussions",
        "_DiscussionId-MemoryFile-Workflow-Settings",
    )
    assert (user.recent_memory_workflow, user.file_memory_workflow) == ("RecentMemory", "FileMemory")
    assert user.chat_summary_workflow == "ChatSummary"
    assert user.notes == ("port is not about discussions",)
    with pytest.raises(InputError, match="discussionDirectory"):
        read_user_settings({"discussionDirectory": 3})


def test_the_page_names_every_key() -> None:
    named = set(re.findall(r"^\| `(\w+)`", PAGE.read_text("utf-8"), re.MULTILINE))
    assert {*KEYS, *COMPLETE, USE_VECTOR, BOTH} <= named


def test_a_kind_that_nothing_makes_is_refused_before_anything_is_kept() -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        trip = Discussion(memory, "trip")
        with pytest.raises(InputError, match=r"no creator for .zzz.: choose from .*chunk_memory"):
            trip.update([{"role": "user", "content": "Hi!"}], DiscussionSettings(memory_kinds=("zzz",)))
        assert memory.scopes() == []
