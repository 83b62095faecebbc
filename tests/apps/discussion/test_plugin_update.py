"""What plug-ins hand to an update: texts, and files that say how memories are made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eunoe
from eunoe.apps.discussion import Discussion
from eunoe.apps.discussion.plugin import CreatorSetup, UpdateRequest, run_update, tell_update
from eunoe.apps.discussion.retrievers import DiscussionReader
from eunoe.apps.discussion.update import ChunkFailure, UpdateReport

CHAT = [{"role": ("user", "assistant")[each % 2], "content": f"Otter {each} swims."} for each in range(12)]


@pytest.fixture
def setup(tmp_path: Path) -> CreatorSetup:
    """Settings that name a workflow, which names an endpoint and a preset."""
    node = {"type": "Standard", "endpointName": "Thinker", "preset": "Factual", "prompt": "Sum up: [TextChunk]"}
    (tmp_path / "mine.json").write_text(json.dumps([node]))
    (tmp_path / "settings.json").write_text(json.dumps({"fileMemoryWorkflowName": "mine"}))
    return CreatorSetup.read({"settings": str(tmp_path / "settings.json"), "workflows": str(tmp_path), "models": ""})


def test_without_a_map_workflows_ask_the_own_model(setup: CreatorSetup) -> None:
    with eunoe.open(":memory:", embedder="none", llm=lambda text: "Written by the own model.") as memory:
        report = run_update(Discussion(memory, "trip"), UpdateRequest.of({"messages": json.dumps(CHAT)}), setup)
        assert report.failed == ()
        assert DiscussionReader.of(memory, "trip").recent(1).text == "Written by the own model."


def test_without_any_model_a_workflow_that_needs_one_fails_by_name(setup: CreatorSetup) -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        report = run_update(Discussion(memory, "trip"), UpdateRequest.of({"messages": json.dumps(CHAT)}), setup)
    assert "mine.json" in report.failed[0].error


def test_each_reason_is_told_once() -> None:
    failed = tuple(ChunkFailure("chunk_memory", str(each), "", 1, f"no answer {each % 2}") for each in range(6))
    told = tell_update(UpdateReport(failed=failed, notes=("put off",)))
    assert told.splitlines() == ["Chunks: 6 failed.", "Failed: no answer 0", "Failed: no answer 1", "Note: put off"]
