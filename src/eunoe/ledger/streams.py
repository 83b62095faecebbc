"""Settings at rest: the presets, what was changed in them, and which streams a conversation feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eunoe.model.scope import Scope
from eunoe.model.settings import PRESETS, Settings
from eunoe.model.stream import Stream, Target
from eunoe.store.contract import Store


def presets(store: Store) -> dict[str, Settings]:
    """The built-in presets with their changes, and those that were added."""
    return dict(PRESETS)


def put_preset(store: Store, name: str, like: str, changes: Mapping[str, Any]) -> Settings:
    raise NotImplementedError


def configure(store: Store, scope: Scope, preset: str, changes: Mapping[str, Any]) -> Settings:
    raise NotImplementedError


def found(store: Store, scope: Scope) -> tuple[str, Settings] | None:
    """Preset and settings of the stream of this very scope; None if no preset has such streams."""
    raise NotImplementedError


def targets(store: Store, conversation: Scope, users: Sequence[str] = ()) -> list[Target]:
    """The active streams that a conversation feeds and its context shows."""
    raise NotImplementedError


def described(store: Store, scopes: Sequence[Scope]) -> list[Stream]:
    raise NotImplementedError
