"""What a store keeps beside the memories: settings, work that is due, summaries and their revisions, use and cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eunoe.store.contract import Row, StreamRow


class SettingsRow(NamedTuple):
    """What was changed in one stream's settings, as a JSON object, and the preset they start from."""

    stream: int
    preset: str
    changes: str


class SessionRow(NamedTuple):
    """How far the log of one conversation has been turned into memories."""

    stream: int
    cursor: int = 0
    """Messages with row numbers up to this one are formed, or stand in a piece of work."""
    messages: int = 0
    """Messages after the cursor."""
    weight: float = 0.0
    """Their tokens, weighted by who spoke."""
    active: int = 0
    """When the last message came, in microseconds since 1970."""
    users: str = ""
    """The users who take part, as a JSON list."""


class WorkRow(NamedTuple):
    """One chunk of a conversation that is to be formed: messages numbered above `start` and up to `stop`."""

    stream: int
    start: int
    stop: int
    owner: str = ""
    """Who works on it; empty if nobody does."""
    until: int = 0
    """When the owner's lease ends."""
    attempts: int = 0
    retry: int = 0
    """Not to be tried again before this moment."""
    error: str = ""


class RevisionRow(NamedTuple):
    """One version of a stream's summary. Numbers are never used twice in a stream."""

    stream: int
    number: int
    parent: int
    """The revision it was written from; 0 if there was none."""
    text: str
    absorbed: str
    """Ids of the observations it took in beyond its parent's, as a JSON list."""
    author: str
    recorded: int


class SummaryRow(NamedTuple):
    """Which revision of a stream counts, and how the work on the next one stands."""

    stream: int
    revision: int = 0
    """0 if there is none."""
    last: int = 0
    """The highest number ever given to a revision."""
    rebuild: int = 0
    """1 if a part was forgotten and the summary waits to be written anew from what is left."""
    owner: str = ""
    until: int = 0
    attempts: int = 0
    retry: int = 0
    error: str = ""


class ReadingRow(NamedTuple):
    """What a language model read out of one row: names and triples, as JSON."""

    seq: int
    content: bytes
    """A fingerprint of the words that were read: the same words need not be read again."""
    model: str
    data: str


class Use(NamedTuple):
    """How often a row was recalled, and when last."""

    times: int
    last: int


class UsageRow(NamedTuple):
    """What calls of one model for one operation have taken together."""

    operation: str
    model: str
    calls: int = 0
    failures: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    micros: int = 0
    """Time spent waiting for it."""
    cost: float = 0.0
    """In the currency of the prices that were given."""


class Health(NamedTuple):
    """What is due and what fails."""

    due_messages: int
    """Messages that were not yet turned into memories."""
    work: int
    """Chunks that wait or are under way."""
    failing: int
    """Chunks and summaries whose last attempt failed."""
    revisions: int
    error: str
    """The last error of one that fails."""


class Books(ABC):
    """Every method runs inside `reading` or `writing` of the store it belongs to."""

    @abstractmethod
    def settings(self, stream: int) -> SettingsRow | None: ...

    @abstractmethod
    def put_settings(self, row: SettingsRow) -> None: ...

    @abstractmethod
    def drop_settings(self, stream: int) -> None: ...

    @abstractmethod
    def configured(self) -> list[tuple[StreamRow, SettingsRow]]:
        """All streams with settings of their own, in the order of their scopes."""

    @abstractmethod
    def session(self, stream: int) -> SessionRow | None: ...

    @abstractmethod
    def put_session(self, row: SessionRow) -> None: ...

    @abstractmethod
    def drop_session(self, stream: int) -> None:
        """Removes a session with its work."""

    @abstractmethod
    def idle(self, before: int, least: int, limit: int) -> list[tuple[StreamRow, SessionRow]]:
        """Sessions without activity since `before` that have at least `least` messages waiting, or work that nobody
        holds and that may be tried again by then; longest idle first."""

    @abstractmethod
    def work(self, stream: int) -> list[WorkRow]:
        """In the order of the log."""

    @abstractmethod
    def put_work(self, rows: Sequence[WorkRow]) -> None:
        """Writes pieces of work anew, each known by its stream and start."""

    @abstractmethod
    def drop_work(self, stream: int, start: int) -> None: ...

    @abstractmethod
    def summary(self, stream: int) -> SummaryRow | None: ...

    @abstractmethod
    def put_summary(self, row: SummaryRow) -> None: ...

    @abstractmethod
    def revisions(self, stream: int) -> list[RevisionRow]:
        """Oldest first."""

    @abstractmethod
    def revision(self, stream: int, number: int) -> RevisionRow | None: ...

    @abstractmethod
    def put_revision(self, row: RevisionRow) -> None: ...

    @abstractmethod
    def drop_revisions(self, stream: int, numbers: Sequence[int]) -> None: ...

    @abstractmethod
    def absorb(self, stream: int, ids: Sequence[str], revision: int) -> None:
        """Notes that the summary holds these observations since this revision."""

    @abstractmethod
    def release(self, stream: int, ids: Sequence[str]) -> None:
        """Notes that the summary does not hold these any more."""

    @abstractmethod
    def absorbed(self, stream: int) -> dict[str, int]:
        """Ids of the observations the summary holds, and the revision that took each in."""

    @abstractmethod
    def unabsorbed(self, stream: int) -> list[Row]:
        """Living observations that no summary holds, oldest first."""

    @abstractmethod
    def unabsorbed_count(self, stream: int) -> int: ...

    @abstractmethod
    def latest(self, stream: int, kind: str, limit: int) -> list[Row]:
        """The last living atoms of a kind, latest first."""

    @abstractmethod
    def living(self, stream: int, kind: str) -> int:
        """How many living atoms of a kind there are."""

    @abstractmethod
    def rebuilds(self, limit: int) -> list[StreamRow]:
        """Streams whose summary waits to be written anew."""

    @abstractmethod
    def link(self, source: int, stream: int) -> None:
        """Notes that atoms of `stream` rest on messages or atoms of `source`, or may: it is a talk of that user."""

    @abstractmethod
    def resting_on(self, source: int) -> list[StreamRow]:
        """Streams with atoms that rest on what this one holds."""

    @abstractmethod
    def rests_on(self, stream: int) -> list[StreamRow]:
        """Streams that this one's atoms rest on."""

    @abstractmethod
    def put_readings(self, rows: Sequence[ReadingRow]) -> None:
        """Writes readings anew; each goes with its row."""

    @abstractmethod
    def readings(self, seqs: Sequence[int]) -> dict[int, str]:
        """The data of these rows' readings."""

    @abstractmethod
    def known_readings(self, stream: int, contents: Sequence[bytes]) -> dict[bytes, ReadingRow]:
        """A reading of each of these contents in this stream, as far as there is one."""

    @abstractmethod
    def unread(self, stream: int, kinds: Sequence[str], after: int, limit: int) -> list[Row]:
        """Living rows of these kinds with numbers above `after` that have no reading, in order."""

    @abstractmethod
    def unread_count(self, stream: int, kinds: Sequence[str]) -> int: ...

    @abstractmethod
    def touch(self, uses: Mapping[int, Use]) -> None:
        """Adds counts and last times to rows; rows that are gone are left out."""

    @abstractmethod
    def uses(self, seqs: Sequence[int]) -> dict[int, Use]: ...

    @abstractmethod
    def spend(self, rows: Sequence[UsageRow]) -> None:
        """Adds to what was spent before."""

    @abstractmethod
    def spent(self) -> list[UsageRow]: ...

    @abstractmethod
    def hide(self, key: bytes) -> None:
        """Notes that the scope with this fingerprint is not to be remembered."""

    @abstractmethod
    def show(self, key: bytes) -> None: ...

    @abstractmethod
    def hidden(self, key: bytes) -> bool: ...

    @abstractmethod
    def health(self) -> Health: ...
