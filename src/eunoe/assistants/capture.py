"""From an event to messages: what is new in it, each with an id by which the engine knows it again."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from eunoe.assistants.transcripts import Place, Saying, clean, read_transcript
from eunoe.files import write_file
from eunoe.model.message import Message

_WITH_TRANSCRIPT: Final = ("claude-code",)
"""Whose transcripts are documented well enough to be read; of the others the events say everything."""

_MAX_CHARACTERS: Final = 500_000
"""Of a message; a server takes no more than twice as many. What is longer becomes several."""


@dataclass(slots=True)
class Session:
    """What is known of a session: how far its transcript was read, and how often each thing was said.

    The n-th time that a text is said has the same id whether an event or the transcript tells of it, and also when
    either is read again. No text is kept here.
    """

    path: Path
    taken: str = ""
    """The name of the event that was taken last."""
    place: Place = field(default_factory=Place)
    in_events: Counter[str] = field(default_factory=Counter)
    in_transcript: Counter[str] = field(default_factory=Counter)

    @classmethod
    def load(cls, path: Path) -> Self:
        """One that cannot be read starts anew: the ids keep anything from being stored twice."""
        try:
            row = json.loads(path.read_bytes())
            place = Place(*row["place"])
            return cls(path, row["taken"], place, Counter(row["in_events"]), Counter(row["in_transcript"]))
        except (OSError, ValueError, TypeError, KeyError):
            return cls(path)

    def save(self) -> None:
        row = {
            "taken": self.taken,
            "place": self.place,
            "in_events": self.in_events,
            "in_transcript": self.in_transcript,
        }
        write_file(self.path, json.dumps(row).encode())


def session_path(folder: Path, event: dict[str, Any]) -> Path:
    name = json.dumps([event["assistant"], event["scope"], event["session"]])
    return folder / "sessions" / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def capture(event: dict[str, Any], session: Session) -> list[Message]:
    """What an event and the transcript it names say that is new. The session moves on."""
    messages = []
    has_transcript = event["assistant"] in _WITH_TRANSCRIPT and Path(event["transcript"]).is_file()
    if has_transcript:
        sayings, session.place, is_anew = read_transcript(Path(event["transcript"]), session.place)
        if is_anew:
            session.in_transcript.clear()
        messages += _messages(sayings, session.in_transcript, event)
    said = [Saying("user", clean(event["prompt"]), _time(event))]
    if not has_transcript:
        said.append(Saying("assistant", clean(event["answer"]), _time(event)))
    known = {message.id for message in messages}
    return messages + [each for each in _messages(said, session.in_events, event) if each.id not in known]


def _messages(sayings: Iterable[Saying], counts: Counter[str], event: dict[str, Any]) -> list[Message]:
    messages = []
    for role, text, time in sayings:
        if not text:
            continue
        words = hashlib.sha256(f"{role}\n{text}".encode(errors="surrogatepass")).hexdigest()[:24]
        counts[words] += 1
        id = f"{event['assistant']}-{words}-{counts[words]}"
        text = text.encode(errors="replace").decode()  # a half of a character cannot be stored
        for part, start in enumerate(range(0, len(text), _MAX_CHARACTERS)):
            piece = text[start : start + _MAX_CHARACTERS]
            name = f"{id}.{part}" if part else id
            messages.append(Message(text=piece, role=role, time=time or _time(event), id=name))
    return messages


def _time(event: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(event["time"], UTC)
