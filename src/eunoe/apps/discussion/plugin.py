"""What plug-ins call, the script node and the tools over MCP: updates, and all calls of the script node.

All that they are handed is text. The store of the script node stays open between calls.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import eunoe
from eunoe.apps.discussion.authors import AuthorSources
from eunoe.apps.discussion.model import CHUNK_MEMORY, DEFAULT_USER, KEYWORD_MEMORY, check_discussion_id
from eunoe.apps.discussion.retrievers import HOST_SENTENCES, RETRIEVERS, SEARCHES, DiscussionReader
from eunoe.apps.discussion.settings import DEFAULT_SETTINGS, DiscussionSettings, read_settings
from eunoe.apps.discussion.update import Discussion, UpdateReport
from eunoe.apps.discussion.workflow.document import ANY, Environment, ModelMap, Preset
from eunoe.apps.discussion.workflow.run import author_sources
from eunoe.errors import ClosedError, EunoeError, InputError, MissingStoreError, ReplacedStoreError
from eunoe.memory import Memory
from eunoe.model.arguments import show

PLUGIN_SETTINGS: Final = replace(DEFAULT_SETTINGS, memory_kinds=(CHUNK_MEMORY, KEYWORD_MEMORY))
"""Where no file says otherwise both kinds are made, since a workflow may search the one and read the other."""
_MOST_REASONS: Final = 3
_UPDATE: Final = "update"
_COMMON: Final = ("store", "user", "on_error")
_READ_OPTIONS: Final = (*_COMMON, "limit", "across_discussions", "host_messages")
_REQUEST_OPTIONS: Final = ("messages", "user_message", "assistant_message", "continue_at")
_SETUP_OPTIONS: Final = ("settings", "models", "workflows", "files_dir")
_UPDATE_OPTIONS: Final = (*_COMMON, *_REQUEST_OPTIONS, *_SETUP_OPTIONS, "force")
T = TypeVar("T")
_TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}
_ON_ERROR: Final = ("raise", "empty", "tell")
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")


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
        turns = [{"role": role, "content": text} for role, text in last.items() if text.strip()] or None
        if messages.strip():
            try:
                turns = json.loads(messages)
            except (ValueError, RecursionError) as error:
                raise InputError(f"messages must be a JSON list of messages with role and content: {error}") from None
            if not isinstance(turns, list):
                raise InputError("messages must be a JSON list of messages with role and content")
        place = fields.get("continue_at", "").strip()
        return cls(turns=turns, shows_chat=bool(messages.strip()), force=force, continue_at=place)


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
        one: dict[str, Any] = {"endpoints": {ANY: llm} if llm else {}, "presets": {ANY: Preset()}}
        models = replace(self.models, default=llm) if self.models else ModelMap(**one, default=llm)
        environment = Environment(models=models, settings=self.settings, workflows=self.workflows)
        sources = author_sources(discussion.memory, discussion.scope, environment)
        return sources if self.models else sources._replace(find_model=lambda endpoint, preset: llm)


def run_update(discussion: Discussion, request: UpdateRequest, setup: CreatorSetup) -> UpdateReport:
    """Take in what is handed in, and make the memories that are due."""
    # A first message that is handed in alone is the first one after an import.
    is_first = not request.shows_chat and not discussion.log.sequence()
    place = request.continue_at or ("start" if is_first else None)
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


class _Stores:
    """Stores that calls have opened. They stay open until the program ends."""

    def __init__(self) -> None:
        self._opened: dict[tuple[int, str], Memory] = {}
        self._lock = threading.Lock()
        atexit.register(self.close)

    def use(self, target: str, work: Callable[[Memory], T], *, create: bool) -> T:
        """Do something with a store; once more if it was closed or its file was replaced meanwhile."""
        try:
            return work(self._open(target, create))
        except (ClosedError, ReplacedStoreError):
            with self._lock:
                memory = self._opened.pop(_key(target), None)
            if memory:
                memory.close()
            return work(self._open(target, create))

    def close(self) -> None:
        """Close those that this process has opened: a fork leaves those of its parent alone."""
        with self._lock:
            own = [key for key in self._opened if key[0] == os.getpid()]
            opened = [self._opened.pop(key) for key in own]
        for memory in opened:
            memory.close()

    def _open(self, target: str, create: bool) -> Memory:
        key = _key(target)
        with self._lock:
            if key not in self._opened:
                self._opened[key] = eunoe.open(target or None, form=False, create=create)
            return self._opened[key]


def _key(target: str) -> tuple[int, str]:
    return os.getpid(), target or os.environ.get("EUNOE_STORE", "")


_stores: Final = _Stores()


def answer_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Answer a call: `ACTION, ID[, KEYWORDS]` and options. All of them are texts."""
    options = {name: str(value) for name, value in kwargs.items()}
    on_error = options.pop("on_error", "raise")
    if on_error not in _ON_ERROR:
        raise InputError(f"on_error is {on_error!r}: it is one of {', '.join(_ON_ERROR)}")
    try:
        return _answer([str(each) for each in args], options)
    except EunoeError as error:
        if on_error == "raise":
            raise
        return f"Error: {error}" if on_error == "tell" else ""


def _answer(args: Sequence[str], options: Mapping[str, str]) -> str:
    if len(args) < 2:
        raise InputError("name an action and the id of a discussion, such as 'summary', '{Discussion_Id}'")
    action, id, *rest = (each.strip() for each in args)
    if action != _UPDATE and action not in RETRIEVERS:
        raise InputError(f"there is no action {action!r}: there are {', '.join([*RETRIEVERS, _UPDATE])}")
    if not id:
        return ""  # without an id nothing is kept, and so there is nothing to give
    known = _UPDATE_OPTIONS if action == _UPDATE else _READ_OPTIONS
    if unknown := sorted(set(options) - set(known)):
        raise InputError(f"{action} has no option {unknown[0]!r}: there are {', '.join(known)}")
    if len(rest) > (action in SEARCHES):
        raise InputError(f"{action} takes {'keywords' if action in SEARCHES else 'nothing'} after the id")
    check_discussion_id(id)
    store, user = options.get("store", ""), options.get("user", DEFAULT_USER)
    if action == _UPDATE:
        request = UpdateRequest.of(_chosen(options, _REQUEST_OPTIONS), force=_flag(options, "force"))
        setup = CreatorSetup.read(_chosen(options, _SETUP_OPTIONS))
        return _stores.use(
            store, lambda memory: tell_update(run_update(Discussion(memory, id, user), request, setup)), create=True
        )
    empty = HOST_SENTENCES.get(action, "") if _flag(options, "host_messages") else ""
    limit, is_across = options.get("limit", "").strip(), _flag(options, "across_discussions")
    if limit and not _NUMBER.fullmatch(limit):
        raise InputError(f"limit is {show(limit)}: it is a whole number")

    def retrieve(memory: Memory) -> str:
        reader = DiscussionReader.of(memory, id, user, across_discussions=is_across)
        return RETRIEVERS[action](reader, rest[0] if rest else "", int(limit) if limit else None).text or empty

    try:
        return _stores.use(store, retrieve, create=False)
    except MissingStoreError:
        return empty  # nothing was kept yet


def _chosen(options: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: options[name] for name in names if name in options}


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "").strip().lower()
    if text not in _TRUTHS:
        raise InputError(f"{name} is {options[name]!r}: it is true or false")
    return _TRUTHS[text]
