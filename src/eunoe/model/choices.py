"""The closed choices that verbs take, as types that an editor completes and a checker checks."""

from typing import Final, Literal, get_args

AtomKind = Literal["fact", "observation"]
Kind = Literal["message", "fact", "observation"]
Outcome = Literal["stored", "duplicate", "superseded", "forgotten", "conflict", "ignored"]
RecipeName = Literal["default", "thorough", "lexical", "dense", "rrf", "associative", "documents"]
ContextFormat = Literal["xml", "markdown", "json", "messages"]
LookupMode = Literal["auto", "off"]
ReviewMode = Literal["off", "uncertain", "all"]
MemoryType = Literal["session", "user", "collective"]
Right = Literal["read", "write", "forget", "admin"]
TurnKind = Literal["instruction", "preference", "fact", "plan", "decision", "change", "request", "nothing"]
Verdict = Literal["keep", "drop", "instruction", "preference", "fact", "plan", "decision", "change"]

ATOM_KINDS: Final[tuple[AtomKind, ...]] = ("fact", "observation")
KINDS: Final[tuple[Kind, ...]] = ("message", *ATOM_KINDS)
CONTEXT_FORMATS: Final[tuple[ContextFormat, ...]] = ("xml", "markdown", "json", "messages")
LOOKUP_MODES: Final[tuple[LookupMode, ...]] = ("auto", "off")
REVIEW_MODES: Final[tuple[ReviewMode, ...]] = ("off", "uncertain", "all")
MEMORY_TYPES: Final[tuple[MemoryType, ...]] = ("session", "user", "collective")
KEPT_KINDS: Final[tuple[TurnKind, ...]] = ("instruction", "preference", "fact", "plan", "decision", "change")
"""Kinds of things that a turn may hold and that are worth keeping. They are the labels of what is formed from it."""
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
"""What a correction may say of a sentence: that it is worth keeping, that it is not, or which kind of thing it is."""
TURN_KINDS: Final[tuple[TurnKind, ...]] = (*KEPT_KINDS, "request", "nothing")
INSTRUCTION: Final = KEPT_KINDS[0]
"""What is to be done from now on."""
RIGHTS: Final[tuple[Right, ...]] = ("read", "write", "forget", "admin")
