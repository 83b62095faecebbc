"""The settings of a discussion: when memories are made, from how much, and who puts them in words.

They are read from files as WilmerAI has them, with keys of our own beside its keys. Every key is honoured or named in
`notes`. A value of the wrong type is refused by the name of its key.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY, MemoryKind
from eunoe.errors import InputError
from eunoe.model.arguments import check_count, check_flag, check_text, show

T = TypeVar("T")
USE_VECTOR: Final = "useVectorForQualityMemory"
BOTH: Final = "both"
TOKEN_FACTORS: Final = {"conservative": 1.0, "balanced": 1.25, "aggressive": 1.5, "xaggressive": 1.85}
_AUTHOR_FIELDS: Final = {
    "WorkflowName": "workflow",
    "SystemPrompt": "system_prompt",
    "Prompt": "prompt",
    "EndpointName": "endpoint",
    "Preset": "preset",
    "MaxResponseSizeInTokens": "max_tokens",
}
_PROMPTS: Final = {"systemPrompt": "vectorMemorySystemPrompt", "prompt": "vectorMemoryPrompt"}
"""Keys of prompts for chunk memories, and the same for keyword memories."""
UNSUPPORTED: Final = {
    "embeddingEndpointName": "vectors are made by the embedder of the memory",
    "embeddingBackfillBatchSize": "vectors are made when a memory is stored",
    "vectorMemoryIndexTopics": "topics are always searched",
    **dict.fromkeys(
        (
            "condenseMemories",
            "memoriesBeforeCondensation",
            "memoryCondensationBuffer",
            "condensationLockTimeoutSeconds",
            *(f"condenseMemories{ending}" for ending in _AUTHOR_FIELDS),
        ),
        "chunk memories are not condensed; the rolling summary folds them in",
    ),
}
"""Keys of the settings file that change nothing, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorSettings:
    """Who puts something in words: a workflow if one is named, else a language model, else the words of the chat."""

    workflow: str = ""
    system_prompt: str = ""
    """Empty: the default of what is made."""
    prompt: str = ""
    """Empty: the default of what is made. It may hold names in brackets, such as `[TextChunk]`."""
    endpoint: str = ""
    """The name of a language model in the map of models; empty: the memory's own."""
    preset: str = ""
    max_tokens: int = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSettings:
    """How large chunks are, and who makes memories from them."""

    tokens: int = 1000
    """A chunk is due at so many estimated tokens,"""
    messages: int = 5
    """or at so many messages."""
    author: AuthorSettings = AuthorSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySettings:
    """The rolling summary."""

    is_on: bool = True
    least_memories: int = 3
    """So many new chunk memories make it due."""
    most_memories: int = 3
    """So many are folded in at a time."""
    author: AuthorSettings = AuthorSettings(max_tokens=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDocumentSettings:
    """The document that holds the current truth."""

    is_on: bool = False
    least_share: float = 0.5
    """A new version that is shorter than this share of the old one is refused, once the old one is long enough."""
    author: AuthorSettings = AuthorSettings(max_tokens=2000)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionSettings:
    """All settings of a discussion. `read_settings` reads them from a file."""

    memory_kinds: tuple[MemoryKind, ...] = (CHUNK_MEMORY,)
    """What a chunk becomes."""
    lookback: int = 3
    """So many messages at the end are left out, since they may still change."""
    chunk_memory: ChunkSettings = ChunkSettings()
    keyword_memory: ChunkSettings = ChunkSettings(author=AuthorSettings(max_tokens=1024))
    summary: SummarySettings = SummarySettings()
    state_document: StateDocumentSettings = StateDocumentSettings()
    token_factor: float = 1.0
    """What estimated tokens are multiplied with."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What a settings file asked for that is not supported."""

    @property
    def authors(self) -> list[AuthorSettings]:
        """Those of all that is switched on."""
        chunks = {CHUNK_MEMORY: self.chunk_memory, KEYWORD_MEMORY: self.keyword_memory}
        documents = [each.author for each in (self.summary, self.state_document) if each.is_on]
        return [*(chunks[kind].author for kind in self.memory_kinds if kind in chunks), *documents]


DEFAULT_SETTINGS: Final = DiscussionSettings()


def _author_keys(prefix: str, place: str) -> dict[str, str]:
    """Keys that say who puts something in words, such as `chatSummaryPrompt`."""
    return {f"{prefix}{ending}": f"{place}author.{field}" for ending, field in _AUTHOR_FIELDS.items()}


KEYS: Final[Mapping[str, str]] = {
    "lookbackStartTurn": "lookback",
    "wilmerContextEstimationLevel": "token_factor",
    "fileMemoryWorkflowName": "chunk_memory.author.workflow",
    "systemPrompt": "chunk_memory.author.system_prompt",
    "prompt": "chunk_memory.author.prompt",
    "endpointName": "chunk_memory.author.endpoint",
    "preset": "chunk_memory.author.preset",
    "maxResponseSizeInTokens": "chunk_memory.author.max_tokens",
    "chunkEstimatedTokenSize": "chunk_memory.tokens",
    "maxMessagesBetweenChunks": "chunk_memory.messages",
    **_author_keys("vectorMemory", "keyword_memory."),
    "vectorMemoryChunkEstimatedTokenSize": "keyword_memory.tokens",
    "vectorMemoryMaxMessagesBetweenChunks": "keyword_memory.messages",
    "useChatSummary": "summary.is_on",
    "minMemoriesPerSummary": "summary.least_memories",
    "loopIfMemoriesExceed": "summary.most_memories",
    **_author_keys("chatSummary", "summary."),
    "useStateDocument": "state_document.is_on",
    "stateDocumentMinRetentionRatio": "state_document.least_share",
    **_author_keys("stateDocument", "state_document."),
}
"""The keys that are honoured, and where their values go; beside the two that choose what a chunk becomes."""


def read_settings(source: Path | Mapping[str, Any]) -> DiscussionSettings:
    """Read the settings of discussions from a JSON file, or from what such a file holds.

    >>> settings = read_settings({"useVectorForQualityMemory": True, "lookbackStartTurns": 4})
    >>> settings.memory_kinds, settings.notes
    (('keyword_memory',), ('lookbackStartTurns is not supported: there is no setting of that name',))
    """
    given = _read_object(source)
    settings = _with_values(DEFAULT_SETTINGS, given, KEYS)
    others = [key for key in given if key not in KEYS and key not in (USE_VECTOR, BOTH)]
    notes = [f"{key} is not supported: {UNSUPPORTED.get(key, 'there is no setting of that name')}" for key in others]
    use_vector, both = (check_flag(given.get(key, False), key) for key in (USE_VECTOR, BOTH))
    kinds: tuple[MemoryKind, ...] = (KEYWORD_MEMORY,) if use_vector else (CHUNK_MEMORY,)
    if both:
        kinds = (CHUNK_MEMORY, KEYWORD_MEMORY)
    if CHUNK_MEMORY not in kinds and not settings.keyword_memory.author.workflow:
        notes += [
            f"{key} is not used: it is for chunk memories, and {own} for keyword memories"
            for key, own in _PROMPTS.items()
            if given.get(key) and not given.get(own)
        ]
    return replace(settings, memory_kinds=kinds, notes=tuple(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSettings:
    """What a user's own file says of discussions: where they are, and which workflows work on them."""

    discussion_directory: str = ""
    """Where files of discussions lie: what `files_dir` takes."""
    settings_name: str = ""
    """The name of the settings file, without `.json`."""
    recent_memory_workflow: str = ""
    file_memory_workflow: str = ""
    chat_summary_workflow: str = ""
    notes: tuple[str, ...] = ()
    """The keys that mean nothing here."""


_USER_KEYS: Final[Mapping[str, str]] = {
    "discussionDirectory": "discussion_directory",
    "discussionIdMemoryFileWorkflowSettings": "settings_name",
    "recentMemoryToolWorkflow": "recent_memory_workflow",
    "fileMemoryToolWorkflow": "file_memory_workflow",
    "chatSummaryToolWorkflow": "chat_summary_workflow",
}


def read_user_settings(source: Path | Mapping[str, Any]) -> UserSettings:
    """Read the file of a user.

    >>> read_user_settings({"chatSummaryToolWorkflow": "Summary", "port": 5002}).notes
    ('port is not about discussions',)
    """
    given = _read_object(source)
    notes = tuple(f"{key} is not about discussions" for key in given if key not in _USER_KEYS)
    return replace(_with_values(UserSettings(), given, _USER_KEYS), notes=notes)


def _with_values(target: T, given: Mapping[str, Any], keys: Mapping[str, str]) -> T:
    """Settings with the values of those keys that are honoured, however deep these stand. Null is none."""
    for key, value in given.items():
        if key in keys and value is not None:
            target = _with_value(target, keys[key].split("."), value, key)
    return target


def _with_value(target: Any, place: list[str], value: Any, key: str) -> Any:
    name, *rest = place
    old = getattr(target, name)
    return replace(target, **{name: _with_value(old, rest, value, key) if rest else _read(value, key, name, old)})


def _read(value: Any, key: str, name: str, default: Any) -> Any:
    """A value that has the type of a default."""
    if name == "token_factor":
        factor = TOKEN_FACTORS.get(value.strip().lower()) if isinstance(value, str) else None
        if factor is None:
            raise InputError(f"{key} is {show(value)}: it must be one of {', '.join(TOKEN_FACTORS)}")
        return factor
    if isinstance(default, bool):
        return check_flag(value, key)
    if isinstance(default, int):
        return check_count(value, key, least=0 if name == "lookback" else 1)
    if isinstance(default, str):
        return check_text(value, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{key} is {show(value)}: it must be a number from 0 to 1")
    return float(value)


def _read_object(source: Path | Mapping[str, Any]) -> dict[str, Any]:
    """What a file says, without nulls, which stand for keys that are not given."""
    content: Any = source
    try:
        if isinstance(source, Path):
            content = json.loads(source.read_text("utf-8-sig"))
    except OSError as error:
        raise InputError(f"settings: {source} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"settings: {source} is not JSON: {error}") from error
    if not isinstance(content, Mapping):
        raise InputError(f"settings must be a JSON object, not {type(content).__name__}")
    return {key: value for key, value in content.items() if value is not None}
