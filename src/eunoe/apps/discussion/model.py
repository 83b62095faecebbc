"""The nouns of a discussion, and how its memories are kept as atoms.

A chunk memory is an observation: it waits until the rolling summary, which is the summary of the stream, absorbs it. A
keyword memory is a fact, and its text is its summary. What is no longer in force has expired (`valid_to`), or was
replaced under its id; the history keeps both. A chunk with nothing to remember has an atom too, which says so and never
holds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TypeVar

from eunoe.errors import InputError
from eunoe.memory import Memory, iterate_atoms
from eunoe.model.arguments import ATOM_KINDS, show, utc_now
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope

MemoryKind = str
"""What a chunk can become: the label of its atoms. Other packages may add kinds of their own."""
CHUNK_MEMORY: Final = "chunk_memory"
KEYWORD_MEMORY: Final = "keyword_memory"
STATE_DOCUMENT: Final = "state_document"
"""The label of the state document's atom, and the beginning of its id."""
NOTHING: Final = "nothing_to_remember"
"""The label of an atom that stands for a chunk of which there is no memory."""
NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When an atom ends to hold that is kept and that no recall may bring back."""
SETTINGS: Final = "settings"
"""The field of metadata with the digest of the settings by which a memory was made."""
_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class LogMessage:
    """One message of a discussion as it stands now."""

    id: str
    role: str
    text: str
    """Its words; empty for an image or a tool call without text."""
    speaker: str = ""
    time: datetime | None = None
    """When it was said, else when it was recorded."""
    hash: str = ""
    """SHA-256 of its content as other programs compute it: of the words, or of words and images if it has no words."""
    is_retracted: bool = False
    """Whether it was edited, deleted or regenerated, so that it is no longer part of the chat."""

    @property
    def name(self) -> str:
        """Who spoke."""
        return self.speaker or self.role


@dataclass(frozen=True, slots=True)
class Chunk:
    """Neighbouring messages that become memories together. Its bounds never move."""

    kind: MemoryKind
    place: float
    """Where it stands among the chunks of its kind; they are sorted by it."""
    first: str
    """The id of its first message."""
    last: str
    """The id of its last message."""
    digest: str = ""
    """A fingerprint of who said what in it. If it is another one than that of a memory, the memory is stale."""
    edition: int = 0
    """How many rebuilds of the discussion came before it."""

    @property
    def name(self) -> str:
        """What its lease is called, and how the ids of its memories begin: each rebuild has its own."""
        return f"{self.kind}:{self.first}" + (f"~{self.edition}" if self.edition else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkMemory:
    """A text block that sums up a chunk."""

    text: str
    hash: str = ""
    """SHA-256 of the content of the message that it ends on."""
    id: str = ""
    chunk: Chunk | None = None
    """None if it was imported: then the messages it was made from are not known."""
    source: tuple[str, ...] = ()
    """Ids of the messages it was made from."""
    borrowed: tuple[str, ...] = ()
    """Ids of other messages and memories whose words its author took over: it rests on them too."""
    place: float = 0.0
    recorded: datetime | None = None
    author: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordMemory:
    """A memory with the words by which it is found."""

    title: str
    summary: str
    entities: tuple[str, ...] = ()
    key_phrases: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    sentiment: str = ""
    id: str = ""
    chunk: Chunk | None = None
    source: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()
    """Ids of other messages and memories whose words its author took over."""
    supersedes: tuple[str, ...] = ()
    """Ids of keyword memories of earlier chunks that it contradicts."""
    superseded_by: tuple[str, ...] = ()
    """Ids of keyword memories of later chunks that contradict it, and were there when it was made."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other fields that came with it, kept for exports."""
    time: datetime | None = None
    """When what it tells of was said; for an imported one, when it was added there."""
    place: float = 0.0
    recorded: datetime | None = None
    author: str = ""

    @property
    def moment(self) -> datetime | None:
        """When what it tells of was said, else when it was recorded."""
        return self.time or self.recorded

    @property
    def words(self) -> str:
        """All its words."""
        lists = (self.entities, self.key_phrases, self.topics)
        return "\n".join((self.title, self.summary, *map(", ".join, lists)))


M = TypeVar("M", ChunkMemory, KeywordMemory)
LABELS: Final[Mapping[type, MemoryKind]] = {ChunkMemory: CHUNK_MEMORY, KeywordMemory: KEYWORD_MEMORY}
_OF_ATOM: Final = {"text", "summary", "id", "source", "time", "recorded"}
"""Fields of a memory that its atom has; all others are metadata."""


def memory_item(memory: ChunkMemory | KeywordMemory) -> dict[str, Any]:
    """What `Memory.remember_many` takes."""
    values = asdict(memory)
    metadata = {name: list(each) if isinstance(each, tuple) else each for name, each in values.items()}
    return {
        "text": values.get("text", values.get("summary")),
        "id": memory.id,
        "kind": "observation" if isinstance(memory, ChunkMemory) else "fact",
        "label": LABELS[type(memory)],
        "source": [*memory.source, *memory.borrowed],
        "time": values.get("time"),
        "metadata": {
            name: each for name, each in metadata.items() if name not in _OF_ATOM and each not in ("", None, [], {})
        },
    }


def read_memory(kind: type[M], atom: Atom) -> M:
    """The memory that an atom holds."""
    known = {each.name for each in fields(kind)}
    values: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in atom.metadata.items()
    }
    values |= {"text": atom.text, "summary": atom.text, "id": atom.id, "source": own_source(atom)}
    values |= {"chunk": chunk_of(atom), "time": atom.time, "recorded": atom.recorded, "title": values.get("title", "")}
    return kind(**{name: each for name, each in values.items() if name in known})


def chunk_of(atom: Atom) -> Chunk | None:
    """The chunk that an atom was made from, if that is known."""
    return Chunk(**atom.metadata["chunk"]) if atom.metadata.get("chunk") else None


def own_source(atom: Atom) -> tuple[str, ...]:
    """Ids of what a memory was made from, without what its author took over from others."""
    borrowed = set(atom.metadata.get("borrowed", ()))
    return tuple(id for id in atom.source if id not in borrowed)


def nothing_item() -> dict[str, Any]:
    """What `Memory.remember_many` takes for a chunk with nothing to remember."""
    return {"text": "Nothing to remember.", "label": NOTHING, "valid_to": NEVER}


def chunk_memories(memory: Memory, scope: Scope) -> list[ChunkMemory]:
    """Those in force, in the order of the discussion."""
    return _in_order(ChunkMemory, memory, scope)


def keyword_memories(memory: Memory, scope: Scope) -> list[KeywordMemory]:
    """Those in force, in the order of the discussion."""
    return _in_order(KeywordMemory, memory, scope)


def _in_order(kind: type[M], memory: Memory, scope: Scope) -> list[M]:
    now = utc_now()
    found = [read_memory(kind, atom) for atom in all_atoms(memory, scope, LABELS[kind]) if is_in_force(atom, now)]
    return sorted(found, key=lambda each: each.place)


def all_atoms(memory: Memory, scope: Scope, *labels: str, retired: bool = False) -> Iterator[Atom]:
    """Atoms with these labels in the order they were recorded, also what has expired; with `retired` also those that
    were replaced."""
    return iterate_atoms(memory, scope, kinds=ATOM_KINDS, labels=labels, retired=retired, exact=True)


def is_in_force(atom: Atom, now: datetime) -> bool:
    """Whether an atom holds at that moment."""
    return atom.valid_to is None or atom.valid_to > now


def is_made(atom: Atom, now: datetime) -> bool:
    """Whether an atom says that its chunk was made, if only with nothing to remember; not if it was ended since."""
    return is_in_force(atom, now) or (atom.label == NOTHING and atom.valid_to == NEVER)


DEFAULT_USER: Final = "default"
"""Whose discussions they are where a program has one user and does not name them."""
MAX_ID_BYTES: Final = 200
"""Of an id in UTF-8: it is part of the names of files."""
_NO_ID_SIGNS: Final = re.compile(r"[/\\:]")
_WORDS: Final = ("content", "text")
_TAG: Final = re.compile(r"\[DiscussionId\](.*?)\[/DiscussionId\]", re.DOTALL)


def check_discussion_id(id: str) -> str:
    """Return an id of a discussion, or raise InputError.

    >>> check_discussion_id("Trip to Köln")
    'Trip to Köln'
    """
    if not is_discussion_id(id):
        raise InputError(
            f"discussion: {show(id)} is no id of a discussion: one has at most {MAX_ID_BYTES} bytes, no '/', '\\', ':' "
            "or unprintable characters, no blank at its ends, and is neither '.' nor '..'"
        )
    return id


def is_discussion_id(id: object) -> bool:
    """Whether something is an id of a discussion."""
    if not isinstance(id, str) or not id.isprintable() or _NO_ID_SIGNS.search(id) or id in (".", ".."):
        return False
    return id == id.strip() and 0 < len(id.encode()) <= MAX_ID_BYTES


@lru_cache(maxsize=1024)
def discussion_scope(id: str, user: str = DEFAULT_USER) -> Scope:
    """The scope of a discussion: its user and its id.

    >>> discussion_scope("trip", "anna")
    Scope(discussion='trip', user='anna')
    """
    return Scope(user=user, discussion=check_discussion_id(id))


def discussion_ids(memory: Memory, user: str = DEFAULT_USER) -> list[str]:
    """The ids of a user's discussions that hold something."""
    return [id for _, id in discussion_keys(memory, user)]


def discussion_keys(memory: Memory, user: str | None = None) -> list[tuple[str, str]]:
    """The users and ids of the discussions that hold something, of one user or of all."""
    scopes = (scope.pairs for scope in memory.scopes(**{} if user is None else {"user": user}))
    # A restricted memory names its tenant in what it lists, and adds it to what it is asked for.
    named = (pairs for pairs in scopes if pairs.keys() - {"tenant"} == {"user", "discussion"})
    keys = {(pairs["user"], pairs["discussion"]) for pairs in named if is_discussion_id(pairs["discussion"])}
    how: Any = {"limit": 1, "retired": True, "exact": True}
    return sorted(key for key in keys if memory.list(discussion_scope(*key[::-1]), **how).items)


def take_tag(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The id that a `[DiscussionId]` tag names, the last one if there are several, and the messages without tags.

    The id is not checked.

    >>> take_tag([{"role": "user", "content": "[DiscussionId]trip[/DiscussionId]Hello"}])
    ('trip', [{'role': 'user', 'content': 'Hello'}])
    """
    names: list[str] = []
    cleaned = [
        {name: _without_tags(value, names) if name in _WORDS else value for name, value in message.items()}
        for message in messages
    ]
    return names[-1].strip() if names else "", cleaned


def _without_tags(content: Any, names: list[str]) -> Any:
    """The content of a message, a text or a list of parts, without tags; what they name is added to the names."""
    if isinstance(content, str):
        names += _TAG.findall(content)
        return _TAG.sub("", content)
    if isinstance(content, list):
        return [_without_tags(part, names) for part in content]
    if isinstance(content, Mapping) and "text" in content:
        return {**content, "text": _without_tags(content["text"], names)}
    return content
