"""What a log holds, read in the order of the chat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from eunoe.apps.discussion.log.changes import Hole, Line
from eunoe.apps.discussion.log.request import content_hash, fields_of, message_key
from eunoe.apps.discussion.model import LogMessage
from eunoe.memory import Memory
from eunoe.model.message import Message
from eunoe.model.scope import Scope
from eunoe.model.turn import AFTER, SILENT_ROLES, in_order

IS_LAST: Final = "is_last"
"""The field of metadata that says that nothing stood behind it when it was added."""
HOLES: Final = "holes"
"""The field of metadata with the ids of the messages before and behind what requests up to it left out."""
_PAGE: Final = 10_000


class LogContent(NamedTuple):
    """Messages of a log, all of them or the last ones."""

    messages: Sequence[LogMessage]
    """The chat with its retracted messages, in order."""
    lines: Sequence[Line]
    """The same as they are compared."""


def read_content(memory: Memory, scope: Scope) -> LogContent:
    """Read a log."""
    return _content(in_order(_all_messages(memory, scope)))


def read_end(memory: Memory, scope: Scope, count: int) -> LogContent:
    """Read the last messages of the chat, without the rest of the log: at most so many, or fewer if they were changed.

    Those that were added one after the other at the end stand there; if one is out of line, what comes before it is
    not known.
    """
    page = memory.list(scope, kinds=["message"], limit=count, newest=True, retired=True, exact=True)
    end: list[Message] = []
    for item in page.items:
        if not isinstance(item, Message) or _is_prompt(item):
            continue
        is_next = item.metadata.get(IS_LAST) if not end else end[-1].metadata.get(AFTER) == item.id
        if not is_next or item.retired is not None:
            break
        end.append(item)
    return _content(end[::-1])


def _all_messages(memory: Memory, scope: Scope) -> Iterator[Message]:
    after = ""
    while True:
        page = memory.list(scope, kinds=["message"], limit=_PAGE, after=after, retired=True, exact=True)
        yield from (item for item in page.items if isinstance(item, Message))
        if not (after := page.next):
            return


def _is_prompt(message: Message) -> bool:
    return message.role.lower() in SILENT_ROLES


def _content(messages: Sequence[Message]) -> LogContent:
    return LogContent([_log_message(each) for each in messages], [_line(each) for each in messages])


def _log_message(message: Message) -> LogMessage:
    return LogMessage(
        message.id,
        message.role,
        message.text,
        message.speaker,
        message.time or message.recorded,
        content_hash(message.text, fields_of(message)),
        message.retired is not None,
    )


def _line(message: Message) -> Line:
    key = message_key(message.role, message.text, fields_of(message))
    return Line(key, message.role, message.text, message.id, message.recorded, message.retired, _holes(message))


def _holes(message: Message) -> tuple[Hole, ...]:
    holes = message.metadata.get(HOLES)
    return tuple(Hole(left, right) for left, right in holes) if holes else ()
