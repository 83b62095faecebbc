"""The log of a discussion: every message word for word, and which of them are the chat as it stands now.

A message that was edited, deleted or regenerated is retracted: it stays in the log, and is no longer part of the chat.
System prompts are kept, but are no part of the chat either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from eunoe.apps.discussion.log.changes import Line, LogChanges, find_changes
from eunoe.apps.discussion.log.content import HOLES, IS_LAST, LogContent, read_content, read_end
from eunoe.apps.discussion.log.request import FIELDS, RequestMessage, read_request
from eunoe.apps.discussion.log.turn_changes import find_turn_changes
from eunoe.apps.discussion.model import LogMessage
from eunoe.memory import Memory
from eunoe.model.scope import Scope, ScopeLike
from eunoe.model.turn import AFTER, FORMER

_ID_CHARACTERS: Final = 32
_MAX_QUICK_MESSAGES: Final = 500
"""Longer requests are compared with the whole log at once."""
_SPARE_MESSAGES: Final = 8
"""System prompts may stand between the last messages of the log."""
_LEAST_REPETITION: Final = 3
"""So many messages in common say where a request belongs, without a look at the rest of the log."""


@dataclass(frozen=True, slots=True)
class LogReport:
    """What became of the messages of a request."""

    new: tuple[str, ...] = ()
    """Ids of messages that were added."""
    retracted: tuple[str, ...] = ()
    """Ids of messages that were edited, deleted or regenerated."""
    restored: tuple[str, ...] = ()
    """Ids of retracted messages that are part of the chat again."""
    unchanged: int = 0
    ids: tuple[str, ...] = ()
    """The ids of the request's messages in the log, without system prompts."""
    notes: tuple[str, ...] = ()
    """What a person should know."""


class DiscussionLog:
    """The messages of one discussion."""

    def __init__(self, memory: Memory, scope: ScopeLike) -> None:
        self._memory = memory
        self._scope = Scope.of(scope)

    def messages(self) -> list[LogMessage]:
        """The chat as it stands now, without system prompts."""
        return [message for message in self._content().messages if not message.is_retracted]

    def sequence(self) -> list[LogMessage]:
        """The chat with its retracted messages, in order; what replaces a message stands behind it."""
        return list(self._content().messages)

    def take_in(self, messages: Sequence[Mapping[str, Any]], *, is_whole: bool = False) -> LogReport:
        """Add what is new in a request, and take back what was edited, deleted or regenerated.

        A request may show a part of the chat. With `is_whole` it is all of it: what it does not show was deleted.
        """
        return self._take_in(messages, lambda spoken: self._compare(spoken, is_whole))

    def take_in_turn(self, messages: Sequence[Mapping[str, Any]]) -> LogReport:
        """Add the latest turn, which is handed in without the chat before it.

        If it begins with the last question, that was asked again, and the answer before is taken back.
        """

        def compare(spoken: Sequence[RequestMessage]) -> tuple[LogContent, LogChanges]:
            content = self._content()
            return content, find_turn_changes(content.lines, _lines(spoken))

        return self._take_in(messages, compare)

    def _take_in(
        self,
        messages: Sequence[Mapping[str, Any]],
        compare: Callable[[Sequence[RequestMessage]], tuple[LogContent, LogChanges]],
    ) -> LogReport:
        request = read_request(messages)
        spoken = [message for message in request if not message.is_silent]
        content, changes = compare(spoken)
        if not content.messages and request:
            prepare_discussion(self._memory, self._scope)
        self._keep_prompts([message for message in request if message.is_silent and message.text])
        return self._apply(changes, spoken, content)

    def _compare(self, spoken: Sequence[RequestMessage], is_whole: bool) -> tuple[LogContent, LogChanges]:
        """Compare a request with the end of the log; with all of it if it does more than go on from there."""
        lines = _lines(spoken)
        if not is_whole and len(spoken) <= _MAX_QUICK_MESSAGES:
            end = read_end(self._memory, self._scope, len(spoken) + _SPARE_MESSAGES)
            changes = find_changes(end.lines, lines)
            if _goes_on(changes, end):
                return end, changes
        content = self._content()
        return content, find_changes(content.lines, lines, is_whole=is_whole)

    def _apply(self, changes: LogChanges, spoken: Sequence[RequestMessage], content: LogContent) -> LogReport:
        """Make the changes. New messages come first: if it ends halfway, the next request retracts the rest."""
        ids, after = _place(changes, spoken, content)
        end, holes = len(content.messages), _hole_ids(changes, ids)
        items = [
            _item(ids[number], spoken[number], {AFTER: after[number], IS_LAST: changes.before[number] == end, **holes})
            for number in after
        ]
        receipts = self._memory.observe(self._scope, items) if items else []
        retracted, restored = (
            tuple(content.messages[place].id for place in places) for places in (changes.retracted, changes.restored)
        )
        self._retract(retracted, True)
        self._retract(restored, False)
        forgotten = [receipt.id for receipt in receipts if receipt.outcome == "forgotten"]
        notes = [f"{len(forgotten)} messages were forgotten on purpose and are left out"] if forgotten else []
        return LogReport(
            new=tuple(receipt.id for receipt in receipts if receipt.outcome == "stored"),
            retracted=retracted,
            restored=restored,
            unchanged=len(spoken) - len(items) - len(set(restored) & set(ids)),
            ids=tuple(ids),
            notes=(*notes, *filter(None, [changes.note])),
        )

    def _keep_prompts(self, prompts: Sequence[RequestMessage]) -> None:
        """Keep system prompts, each once, and out of the chat and of what is recalled."""
        if not prompts:
            return
        named = {_derive_id("prompt", prompt.key): prompt for prompt in prompts}
        found = self._memory.get_many(self._scope, list(named), exact=True)
        known = {item.id: item.retired is not None for item in found}
        items = [_item(id, named[id]) for id in named if id not in known]
        receipts = self._memory.observe(self._scope, items) if items else []
        new = [receipt.id for receipt in receipts if receipt.outcome != "forgotten"]
        self._retract([*new, *(id for id, is_retracted in known.items() if not is_retracted)], True)

    def _retract(self, ids: Sequence[str], retracted: bool) -> None:
        if ids:
            self._memory.retract(self._scope, ids, retracted)

    def _content(self) -> LogContent:
        return self._memory.view(self._scope, "discussion log", lambda: read_content(self._memory, self._scope))


def prepare_discussion(memory: Memory, scope: Scope) -> None:
    """Make the stream of a discussion: creators write its summary, the engine does not."""
    memory.streams.configure(scope, consolidation_prompt="")


def _lines(spoken: Sequence[RequestMessage]) -> list[Line]:
    return [Line(message.key, message.role, message.text) for message in spoken]


def _place(
    changes: LogChanges, spoken: Sequence[RequestMessage], content: LogContent
) -> tuple[list[str], dict[int, str]]:
    """The ids of all messages of a request, and for each new one the id of the message before it."""
    taken = {message.id for message in content.messages}
    ids: list[str] = []
    after: dict[int, str] = {}
    for number, (message, place) in enumerate(zip(spoken, changes.places, strict=True)):
        if place is not None:
            ids.append(content.messages[place].id)
            continue
        right = changes.before[number]
        is_next = number - 1 in after and changes.before[number - 1] == right
        after[number] = ids[-1] if is_next else content.messages[right - 1].id if right else ""
        ids.append(_new_id(after[number], message.key, taken))
        taken.add(ids[-1])
    return ids, after


def _hole_ids(changes: LogChanges, ids: Sequence[str]) -> dict[str, list[list[str]]]:
    """What requests left out, as new messages remember it."""
    holes = [[ids[left], "" if right is None else ids[right]] for left, right in changes.holes.items()]
    return {HOLES: holes} if holes else {}


def _new_id(after: str, key: str, taken: set[str]) -> str:
    """The same for everybody who takes in the same request. A message said again in the same place gets another one."""
    id = _derive_id(after, key)
    while id in taken:
        id = _derive_id(after, key, id)
    return id


def _derive_id(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:_ID_CHARACTERS]


def _goes_on(changes: LogChanges, end: LogContent) -> bool:
    """Whether a request repeats the end of the chat and adds to it, so that nothing else can have been changed."""
    known = [place for place in changes.places if place is not None]
    is_appended = all(place == len(end.messages) for place in changes.before.values())
    is_long = len(known) >= max(_LEAST_REPETITION, len(changes.before))
    return is_long and is_appended and not (changes.retracted or changes.restored or changes.note)


def _item(id: str, message: RequestMessage, place: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What `Memory.observe` takes."""
    fields = {FIELDS: message.fields} if message.fields else {}
    return {
        "id": id,
        "role": message.role,
        "text": message.text,
        "speaker": message.speaker,
        "time": message.time,
        "metadata": {FORMER: "discussion", **(place or {}), **fields},
    }
