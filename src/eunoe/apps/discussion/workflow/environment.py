"""What the runs of a program have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from eunoe.apps.discussion.files import FileKey, Layout
from eunoe.apps.discussion.settings import DEFAULT_SETTINGS, DiscussionSettings
from eunoe.apps.discussion.settings_file import UserSettings
from eunoe.apps.discussion.workflow.models import ModelMap
from eunoe.apps.discussion.workflow.trace import NodeTrace


def _local_now() -> datetime:
    return datetime.now().astimezone()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Models, settings, and what workflows may touch. Folders may be given as texts."""

    models: ModelMap = field(default_factory=ModelMap)
    settings: DiscussionSettings = DEFAULT_SETTINGS
    workflows: Path | None = None
    """The folder in which names of workflows are found; None: that of the workflow which is run."""
    files: Path | None = None
    """The folder whose files workflows may read and write; None: none."""
    allow_python: bool = False
    """Whether workflows may run Python modules."""
    host_messages: bool = False
    """Whether nodes that find nothing say so in WilmerAI's own sentences."""
    update_first: bool = False
    """Whether `RecentMemory` and `FullChatSummary` make memories before they read, as in WilmerAI."""
    user_settings: UserSettings = field(default_factory=UserSettings)
    """Names the workflows that some memory nodes run."""
    files_dir: Path | None = None
    """Where creators keep files of discussions current; None: nowhere."""
    layout: Layout = "folders"
    """How these files are laid out."""
    key: FileKey | None = None
    """Opens and encrypts these files."""
    now: Callable[[], datetime] = _local_now
    progress: Callable[[NodeTrace], None] | None = None
    """Is told of each node when it has ended."""

    def __post_init__(self) -> None:
        for name in ("workflows", "files", "files_dir"):
            folder = getattr(self, name)
            object.__setattr__(self, name, Path(folder) if folder is not None else None)
