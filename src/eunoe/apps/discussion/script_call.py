"""Calls of the script node: what is asked for, and the store, which stays open between calls."""

from __future__ import annotations

import atexit
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import eunoe
from eunoe.apps.discussion.discussion import Discussion
from eunoe.apps.discussion.plugin_update import CreatorSetup, UpdateRequest, run_update, tell_update
from eunoe.apps.discussion.retrievers.reader import DiscussionReader
from eunoe.apps.discussion.scope import DEFAULT_USER, check_discussion_id
from eunoe.apps.discussion.tools import HOST_SENTENCES, RETRIEVERS, SEARCHES
from eunoe.errors import ClosedError, EunoeError, InputError, MissingStoreError, ReplacedStoreError
from eunoe.memory import Memory
from eunoe.model.arguments import show

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
            self._drop(target)
            return work(self._open(target, create))

    def close(self) -> None:
        """Close those that this process has opened: a fork leaves those of its parent alone."""
        with self._lock:
            own = [key for key in self._opened if key[0] == os.getpid()]
            opened = [self._opened.pop(key) for key in own]
        for memory in opened:
            memory.close()

    def _open(self, target: str, create: bool) -> Memory:
        key = os.getpid(), target or os.environ.get("EUNOE_STORE", "")
        with self._lock:
            if key not in self._opened:
                self._opened[key] = eunoe.open(target or None, form=False, create=create)
            return self._opened[key]

    def _drop(self, target: str) -> None:
        with self._lock:
            memory = self._opened.pop((os.getpid(), target or os.environ.get("EUNOE_STORE", "")), None)
        if memory:
            memory.close()


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
    _check_options(action, len(rest), options)
    check_discussion_id(id)
    return _update(id, options) if action == _UPDATE else _read(action, id, rest[0] if rest else "", options)


def _check_options(action: str, rest: int, options: Mapping[str, str]) -> None:
    known = _UPDATE_OPTIONS if action == _UPDATE else _READ_OPTIONS
    if unknown := sorted(set(options) - set(known)):
        raise InputError(f"{action} has no option {unknown[0]!r}: there are {', '.join(known)}")
    if rest > (action in SEARCHES):
        raise InputError(f"{action} takes {'keywords' if action in SEARCHES else 'nothing'} after the id")


def _read(action: str, id: str, keywords: str, options: Mapping[str, str]) -> str:
    empty = HOST_SENTENCES.get(action, "") if _flag(options, "host_messages") else ""
    limit, is_across = _count(options, "limit"), _flag(options, "across_discussions")

    def retrieve(memory: Memory) -> str:
        reader = DiscussionReader.of(memory, id, options.get("user", DEFAULT_USER), across_discussions=is_across)
        return RETRIEVERS[action](reader, keywords, limit).text or empty

    try:
        return _stores.use(options.get("store", ""), retrieve, create=False)
    except MissingStoreError:
        return empty  # nothing was kept yet


def _update(id: str, options: Mapping[str, str]) -> str:
    request = UpdateRequest.of(_chosen(options, _REQUEST_OPTIONS), force=_flag(options, "force"))
    setup = CreatorSetup.read(_chosen(options, _SETUP_OPTIONS))

    def update(memory: Memory) -> str:
        return tell_update(run_update(Discussion(memory, id, options.get("user", DEFAULT_USER)), request, setup))

    return _stores.use(options.get("store", ""), update, create=True)


def _chosen(options: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: options[name] for name in names if name in options}


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "").strip().lower()
    if text not in _TRUTHS:
        raise InputError(f"{name} is {options[name]!r}: it is true or false")
    return _TRUTHS[text]


def _count(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name, "").strip()
    if text and not _NUMBER.fullmatch(text):
        raise InputError(f"{name} is {show(text)}: it is a whole number")
    return int(text) if text else None
