"""The memory of one scope: its settings and their presets, its summary, and every revision the summary has had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple

from eunoe.errors import InputError, ScopeError
from eunoe.model.arguments import ATOM_KINDS, REVIEW_MODES, AtomKind, check_text, shorten, show
from eunoe.model.scope import Scope, check_key

MAX_NUMBER = 100_000
"""Far beyond any sensible limit; larger numbers are typing errors."""
MAX_PROMPT_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one stream. A limit of 0 is none.

    >>> Settings(owner=("user",)).changed(consolidation_trigger=3).consolidation_trigger
    3
    """

    owner: tuple[str, ...]
    """The keys among agent, user, session, thread and shard (or of your own) that say whose memory it is. Other keys of
    a conversation, such as its tenant, always belong to it too. A conversation without the last key named here feeds
    the streams that were set up by hand, such as an agent's shards."""
    is_active: bool = True
    extraction_prompt: str = ""
    """What to look for, in plain words. Braces and other signs mean nothing."""
    extraction_fields: tuple[AtomKind, ...] = ("observation", "fact")
    observation_extraction_min: int = 0
    observation_extraction_max: int = 1
    observation_max_words: int = 50
    fact_extraction_min: int = 0
    fact_extraction_max: int = 5
    fact_max_words: int = 30
    consolidation_prompt: str = ""
    """What the summary is for. Without one, observations are never consolidated."""
    consolidation_trigger: int = 10
    """Observations that must wait before they are consolidated."""
    consolidated_max_words: int = 500
    fact_buffer_max: int = 100
    """Latest facts that stand in every context."""
    observation_buffer_max: int = 20
    """Latest observations, not yet consolidated, that stand in every context."""
    fact_rag_enabled: bool = True
    """Whether context recalls from this stream by what a message asks."""
    extraction_model: str = ""
    consolidation_model: str = ""
    review: str = "off"
    """Which new memories wait until somebody has looked at them: none (`off`), those that are doubtful (`uncertain`),
    or `all`."""
    formation_messages: int = 45
    """A conversation is due after so many messages,"""
    formation_tokens: int = 1000
    """or after so many tokens, weighted by who spoke,"""
    formation_idle_seconds: float = 600.0
    """or after so many seconds without a new message,"""
    formation_minimum: int = 4
    """but never before so many messages."""
    user_weight: float = 1.0
    tool_weight: float = 0.5
    agent_weight: float = 0.2
    other_weight: float = 0.5
    chunk_tokens: int = 6000
    """Longer talk is formed in pieces of at most this size."""
    keep_best: int = 0
    """Atoms to keep; beyond it the least valuable are archived."""
    max_age_days: float = 0.0
    """Atoms older than this are archived."""
    max_idle_days: float = 0.0
    """Atoms not recalled for so long are archived."""

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_setting(field.name, str(field.type), getattr(self, field.name))
        if not self.owner:
            raise InputError("owner is empty: name the scope keys that say whose memory it is, such as ['user']")
        for key in self.owner:
            try:
                check_key(key)
            except ScopeError as error:
                raise ScopeError(f"owner: {error}") from None
        if not set(self.extraction_fields) <= set(ATOM_KINDS):
            raise InputError(
                f"extraction_fields {list(self.extraction_fields)} must be some of {', '.join(ATOM_KINDS)}"
            )
        if self.review not in REVIEW_MODES:
            raise InputError(f"review cannot be {show(self.review)}: it is one of {', '.join(REVIEW_MODES)}")
        for kind in ATOM_KINDS:
            least, most = getattr(self, f"{kind}_extraction_min"), getattr(self, f"{kind}_extraction_max")
            if least > most:
                raise InputError(f"{kind}_extraction_min is {least}, more than {kind}_extraction_max, {most}")
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1")

    def changed(self, **changes: Any) -> Settings:
        """The same with these changes; an unknown name or a value that makes no sense is refused."""
        unknown = sorted(set(changes) - set(SETTING_NAMES))
        if unknown:
            names = ", ".join(SETTING_NAMES)
            raise InputError(f"there is no setting {shorten(', '.join(unknown))}: the settings are {names}")
        return replace(self, **{name: _read_setting(name, value) for name, value in changes.items()})


MODEL_SETTINGS = ("extraction_model", "consolidation_model")
"""Settings that name a language model."""
SETTING_NAMES = tuple(field.name for field in fields(Settings))
_AT_LEAST_ONE = (
    "observation_max_words",
    "fact_max_words",
    "consolidation_trigger",
    "consolidated_max_words",
    "formation_messages",
    "formation_tokens",
    "formation_minimum",
    "chunk_tokens",
)


def settings_of(preset: Settings | None, changes: Mapping[str, Any]) -> Settings:
    """Settings out of a preset and what was changed; without a preset the changes must name their owner."""
    if preset is not None:
        return preset.changed(**changes)
    if "owner" not in changes:
        raise InputError("a new preset needs an owner: the scope keys that say whose memory it is, such as ['team']")
    return Settings(owner=_read_setting("owner", changes["owner"])).changed(**changes)


def _read_setting(name: str, value: Any) -> Any:
    """Lists, as JSON gives them, become tuples."""
    return tuple(value) if isinstance(value, list) and name in ("owner", "extraction_fields") else value


_TYPES: Mapping[str, tuple[Any, str]] = {
    "bool": (bool, "it is true or false"),
    "str": (str, f"it is a text of at most {MAX_PROMPT_CHARACTERS:,} characters"),
    "int": (int, f"it is a whole number from 0 to {MAX_NUMBER:,}"),
    "float": (int | float, f"it is a number from 0 to {MAX_NUMBER:,}"),
}
"""By annotation: what a value must be, and how an error says so. All others are lists of texts."""


def _check_setting(name: str, kind: str, value: Any) -> None:
    types, expected = _TYPES.get(kind, (tuple, "it is a list of texts"))
    fits = isinstance(value, types) and isinstance(value, bool) == (kind == "bool")
    if fits and kind == "str":
        fits = len(check_text(value, name)) <= MAX_PROMPT_CHARACTERS
    elif fits and kind in ("int", "float"):
        fits = 0 <= value <= MAX_NUMBER
    elif fits and types is tuple:
        fits = all(isinstance(each, str) for each in value)
    if not fits:
        raise InputError(f"{name} cannot be {show(value)}: {expected}")


PRESETS: Mapping[str, Settings] = {
    "session": Settings(
        owner=("agent", "user", "session"),
        extraction_prompt=(
            "What happened in this conversation: what was asked, decided, made and left open. It helps to follow the "
            "thread while the conversation lasts."
        ),
        observation_extraction_max=1,
        fact_extraction_min=1,
        fact_extraction_max=2,
        fact_max_words=50,
        consolidation_prompt=(
            "A summary of the conversation so far: its purpose, what was settled, what is still open, in the order it "
            "happened."
        ),
        consolidation_trigger=4,
        consolidated_max_words=500,
        fact_buffer_max=8,
    ),
    "user": Settings(
        owner=("agent", "user"),
        extraction_prompt=(
            "What is worth knowing about this user in later conversations: preferences, standing instructions, who "
            "they are, the people and things in their life, plans and dates. Not what only matters right now."
        ),
        extraction_fields=("observation",),
        observation_extraction_max=24,
        observation_max_words=40,
        consolidation_prompt=(
            "A portrait of the user for an assistant who meets them again: who they are, how they want to be treated, "
            "what they like and dislike, what they plan."
        ),
        consolidation_trigger=5,
        consolidated_max_words=400,
    ),
    "agent": Settings(
        owner=("agent", "shard"),
        extraction_prompt="What everyone who works with this agent should know. Nothing that is private to one user.",
        observation_extraction_max=2,
        observation_max_words=35,
        fact_extraction_max=3,
        fact_max_words=30,
        consolidation_prompt=(
            "What the agent has learned on this subject across its conversations, kept in order and up to date."
        ),
        consolidation_trigger=16,
        consolidated_max_words=1000,
        fact_buffer_max=100,
    ),
}


class Target(NamedTuple):
    """A stream that a conversation feeds."""

    preset: str
    scope: Scope
    settings: Settings
    user: str = ""
    """The user whose memory it is; empty if it is not one user's."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The memory of one scope, as it stands."""

    scope: Scope
    preset: str
    settings: Settings
    version: int = 0
    """Raised by every write."""
    revision: int = 0
    """The number of the current summary; 0 if there is none."""
    summary: str = ""
    facts: int = 0
    observations: int = 0
    """Those that no summary has absorbed yet."""
    in_review: int = 0
    """Atoms that wait to be looked at; `facts` and `observations` leave them out."""
    unabsorbed: tuple[str, ...] = ()
    """Ids of the observations that no summary has absorbed, the 200 oldest: as many as one summary takes in."""
    updated: datetime | None = None
    """When its last memory was recorded or its summary was written, whichever is later; None before the first."""

    def __repr__(self) -> str:
        counts = f"facts={self.facts}, observations={self.observations}, revision={self.revision}"
        return f"Stream({self.scope.text!r}, preset={self.preset!r}, {counts})"


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a summary, and what it absorbed."""

    number: int
    text: str
    parent: int = 0
    """The revision it was written from; 0 if there was none."""
    absorbed: tuple[str, ...] = ()
    """Ids of the observations it absorbed beyond those of its parent."""
    author: str = ""
    """The LLM that wrote it, `extractive`, or whoever wrote it by hand."""
    recorded: datetime | None = None
    current: bool = False
