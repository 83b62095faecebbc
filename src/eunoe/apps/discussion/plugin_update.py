"""An update as the plug-ins run it, the script node and the tools over MCP. All that they are handed is text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from eunoe.apps.discussion.authors import AuthorSources
from eunoe.apps.discussion.discussion import Discussion
from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY
from eunoe.apps.discussion.report import UpdateReport
from eunoe.apps.discussion.settings import DEFAULT_SETTINGS, DiscussionSettings
from eunoe.apps.discussion.settings_file import read_settings
from eunoe.apps.discussion.workflow.environment import Environment
from eunoe.apps.discussion.workflow.models import ANY, ModelMap, Preset
from eunoe.apps.discussion.workflow.sources import author_sources
from eunoe.errors import InputError
from eunoe.llm.contract import Llm

PLUGIN_SETTINGS: Final = replace(DEFAULT_SETTINGS, memory_kinds=(CHUNK_MEMORY, KEYWORD_MEMORY))
"""Where no file says otherwise both kinds are made, since a workflow may search the one and read the other."""
_MOST_REASONS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """What an update is asked for."""

    turns: Sequence[Mapping[str, Any]] | None = None
    shows_chat: bool = False
    """Whether it shows the chat, or the end of it; else the last turn alone."""
    force: bool = False
    continue_at: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, str], *, force: bool = False) -> UpdateRequest:
        """Read a request: `messages`, a JSON list, or `user_message` and `assistant_message`; and `continue_at`.

        >>> UpdateRequest.of({"user_message": "Hello", "assistant_message": "Hi"}).turns
        [{'role': 'user', 'content': 'Hello'}, {'role': 'assistant', 'content': 'Hi'}]
        """
        messages = fields.get("messages", "")
        last = {role: fields.get(f"{role}_message", "") for role in ("user", "assistant")}
        if messages.strip() and any(last.values()):
            raise InputError("give messages, or user_message and assistant_message, not both")
        turn = [{"role": role, "content": text} for role, text in last.items() if text.strip()] or None
        return cls(
            turns=_parse_messages(messages) if messages.strip() else turn,
            shows_chat=bool(messages.strip()),
            force=force,
            continue_at=fields.get("continue_at", "").strip(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatorSetup:
    """How memories are made, as files say it that whoever runs the program has named."""

    settings: DiscussionSettings = PLUGIN_SETTINGS
    models: ModelMap | None = None
    """None: every endpoint and preset means the memory's own model."""
    workflows: Path | None = None
    files_dir: Path | None = None

    @classmethod
    def read(cls, paths: Mapping[str, str]) -> CreatorSetup:
        """Read the files `settings` and `models`; `workflows` and `files_dir` are folders. All may be left out."""
        named = {name: Path(text) for name, text in paths.items() if text.strip()}
        return cls(
            settings=read_settings(named["settings"]) if "settings" in named else PLUGIN_SETTINGS,
            models=ModelMap.read(named["models"]) if "models" in named else None,
            workflows=named.get("workflows"),
            files_dir=named.get("files_dir"),
        )

    def sources(self, discussion: Discussion) -> AuthorSources:
        """Who puts memories in words."""
        llm = discussion.memory.llm
        models = replace(self.models, default=llm) if self.models else _one_model(llm)
        environment = Environment(models=models, settings=self.settings, workflows=self.workflows)
        sources = author_sources(discussion.memory, discussion.scope, environment)
        return sources if self.models else sources._replace(find_model=lambda endpoint, preset: llm)


def run_update(discussion: Discussion, request: UpdateRequest, setup: CreatorSetup) -> UpdateReport:
    """Take in what is handed in, and make the memories that are due."""
    place = request.continue_at or _place_after_import(discussion, request)
    take_in = discussion.log.take_in if request.shows_chat else discussion.log.take_in_turn
    notes = take_in(request.turns).notes if request.turns is not None else ()
    report = discussion.update(
        None,
        setup.settings,
        force=request.force,
        files_dir=setup.files_dir,
        continue_at=place,
        **setup.sources(discussion)._asdict(),
    )
    return replace(report, notes=(*notes, *report.notes))


def tell_update(report: UpdateReport) -> str:
    """What an update did, in a line; then why chunks failed, and what a person should know."""
    counts = {"made": report.made, "made again": report.redone, "with nothing to remember": report.nothing}
    counts |= {"failed": len(report.failed)}
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    text = f"Chunks: {', '.join(parts)}." if parts else "No chunk was due."
    text = f"{text} Summary: revision {report.summary}." if report.summary else text
    reasons = list(dict.fromkeys(failure.error for failure in report.failed))[:_MOST_REASONS]
    return "\n".join([text, *(f"Failed: {reason}" for reason in reasons), *(f"Note: {note}" for note in report.notes)])


def _place_after_import(discussion: Discussion, request: UpdateRequest) -> str | None:
    """Where an imported chat goes on: a first message that is handed in alone is the first one after the import."""
    return None if request.shows_chat or discussion.log.sequence() else "start"


def _one_model(llm: Llm | None) -> ModelMap:
    return ModelMap(endpoints={ANY: llm} if llm else {}, presets={ANY: Preset()}, default=llm)


def _parse_messages(text: str) -> list[Mapping[str, Any]]:
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"messages must be a JSON list of messages with role and content: {error}") from None
    if not isinstance(messages, list):
        raise InputError("messages must be a JSON list of messages with role and content")
    return messages
