"""One conversation as another program has kept it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from eunoe.model.time import parse_time


@dataclass(frozen=True, slots=True)
class Conversation:
    """Its messages are dicts as `Memory.observe` takes them. Each has an id, so that reading twice stores once."""

    id: str
    messages: Sequence[Mapping[str, Any]]
    person: str = ""
    """Whose it is, as the file says; empty if it does not."""
    title: str = ""
    left_out: int = 0
    """Messages of versions that were edited away or made anew."""

    @property
    def started(self) -> datetime | None:
        """When its first message with a time was said."""
        times = [parse_time(message["time"]) for message in self.messages if message.get("time") is not None]
        return min(times, default=None)


def message(id: str, role: str, text: str, time: object = None, speaker: str = "", **metadata: Any) -> dict[str, Any]:
    """One message; what is not known is left out."""
    given = {"time": time, "speaker": speaker, "metadata": {key: value for key, value in metadata.items() if value}}
    return {"id": id, "role": role, "text": text, **{key: value for key, value in given.items() if value}}
