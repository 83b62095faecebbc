"""A process that updates a discussion, and says what it makes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import eunoe
from eunoe.apps.discussion.creators import CreatorCall, creator
from eunoe.apps.discussion.model import discussion_scope
from eunoe.apps.discussion.settings import DEFAULT_SETTINGS, ChunkSettings
from eunoe.apps.discussion.update import update_discussion

SCOPE = discussion_scope("trip", "anna")
KIND = "echo"
SETTINGS = replace(DEFAULT_SETTINGS, memory_kinds=(KIND,), lookback=0, chunk_memory=ChunkSettings(messages=2))


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


@creator(KIND)
def echo(call: CreatorCall) -> Sequence[dict[str, Any]]:
    """Say which chunk it is, wait for a word if asked to, and repeat it."""
    say(chunk=call.chunk.first)
    if "--wait" in sys.argv:
        sys.stdin.readline()
    return [{"text": call.text}]


if __name__ == "__main__":
    with eunoe.open(sys.argv[1], form=False, embedder="none") as memory:
        say(made=update_discussion(memory, SCOPE, SETTINGS).made)
