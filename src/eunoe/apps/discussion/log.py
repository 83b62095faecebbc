"""The log of a discussion: every message word for word, and which of them are the chat as it stands now.

A message that was edited, deleted or regenerated is retracted: it stays in the log, and is no longer part of the chat.
System prompts are kept, but are no part of the chat either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final, NamedTuple

from eunoe.apps.discussion.alignment import Hole, Line, LogChanges, find_changes, find_turn_changes
from eunoe.apps.discussion.model import LogMessage, take_tag
from eunoe.errors import InputError
from eunoe.memory import Memory, iterate
from eunoe.model.arguments import parse_optional_time
from eunoe.model.message import Message, parse_message
from eunoe.model.scope import Scope, ScopeLike
from eunoe.model.turn import AFTER, FORMER, SILENT_ROLES, in_order
from eunoe.text.normalize import replace_surrogates

_FIELDS: Final = "fields"
"""The field of metadata that keeps what a message has beside its role, its words and its speaker."""
_IS_LAST: Final = "is_last"
"""The field of metadata that says that nothing stood behind it when it was added."""
_HOLES: Final = "holes"
"""The field of metadata with the ids of the messages before and behind what requests up to it left out."""
_WORDS: Final = ("role", "content", "text", "name", "speaker", "time", "timestamp", "created_at")
_COMPARED: Final = ("images", "tool_calls", "function_call", "tool_call_id")
_PAGE: Final = 10_000
_ID_CHARACTERS: Final = 32
_MAX_QUICK_MESSAGES: Final = 500
"""Longer requests are compared with the whole log at once."""
_SPARE_MESSAGES: Final = 8
"""System prompts may stand between the last messages of the log."""
_LEAST_REPETITION: Final = 3
"""So many messages in common say where a request belongs, without a look at the rest of the log."""


def read_request(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Read the messages of a request: what they have beside their words becomes metadata, and tags that name a
    discussion are taken out.

    >>> read_request([{"role": "user", "content": "[DiscussionId]trip[/DiscussionId]Hello"}])[0].text
    'Hello'
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise InputError(f"messages must be a list of messages, not {type(messages).__name__}")
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str) or not message["role"].strip():
            raise InputError(f"message {number} must be a mapping with 'role' and 'content'")
    read = []
    for number, message in enumerate(take_tag(messages)[1], 1):
        try:
            read.append(_read_message(message))
        except InputError as error:
            raise InputError(f"message {number}: {error}; nothing was stored") from None
    return read


def _read_message(message: Mapping[str, Any]) -> Message:
    content = message.get("content", message.get("text"))
    rest = {name: value for name, value in message.items() if name not in _WORDS and value is not None}
    if isinstance(content, list):
        rest["content"] = content
        content = "\n".join(text for text in map(_part_text, content) if isinstance(text, str))
    if content is not None and not isinstance(content, str):
        raise InputError("its content must be text or a list of parts")
    moments = (message.get(name) for name in ("time", "timestamp", "created_at"))
    time = parse_optional_time(next((moment for moment in moments if moment is not None), None))
    speaker = str(message.get("name") or message.get("speaker") or "")
    text = replace_surrogates(content or "")
    read = parse_message(Message(role=message["role"].strip(), text=text, speaker=speaker, time=time))
    try:
        fields = json.loads(replace_surrogates(json.dumps(rest, ensure_ascii=False, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"it cannot be written as JSON: {error}") from None
    return replace(read, metadata={_FIELDS: fields} if fields else {})


def _fields_of(message: Message) -> Mapping[str, Any]:
    fields = message.metadata.get(_FIELDS)
    return fields if isinstance(fields, Mapping) else {}


def message_key(message: Message) -> str:
    """What a message is recognised by: its role, its words without space at their ends, its images and tool calls.

    >>> message_key(Message(role="user", text="ok\\n")) == message_key(Message(role="user", text="ok"))
    True
    """
    words, fields = message.text.replace("\r\n", "\n").strip(), _fields_of(message)
    parts = [part for part in _parts(fields) if not isinstance(_part_text(part), str)]
    compared = {name: fields[name] for name in _COMPARED if fields.get(name)}
    others = f"\0{json.dumps([parts, compared], sort_keys=True)}" if parts or compared else ""
    return f"{message.role}\0{words}{others}"


def content_hash(text: str, fields: Mapping[str, Any]) -> str:
    """SHA-256 of a message's content; where it has no words, of its images, as URLs or encoded.

    >>> content_hash("Hello", {})[:8]
    '185f8db3'
    """
    images: list[str] = []
    if not text and fields:
        listed = fields.get("images")
        images = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
        for part in _parts(fields):
            image = part.get("image_url") if isinstance(part, Mapping) else None
            url = image.get("url") if isinstance(image, Mapping) else image
            images += [url] if isinstance(url, str) else []
    return sha256("".join([text, *sorted(images)]).encode()).hexdigest()


def _parts(fields: Mapping[str, Any]) -> list[Any]:
    content = fields.get("content")
    return content if isinstance(content, list) else []


def _part_text(part: Any) -> Any:
    return part.get("text") if isinstance(part, Mapping) else part


class LogContent(NamedTuple):
    """Messages of a log, all of them or the last ones."""

    messages: Sequence[LogMessage]
    """The chat with its retracted messages, in order."""
    lines: Sequence[Line]
    """The same as they are compared."""

    @classmethod
    def of(cls, messages: Sequence[Message]) -> LogContent:
        read, lines = [], []
        for each in messages:
            hash, key = content_hash(each.text, _fields_of(each)), message_key(each)
            holes = tuple(Hole(left, right) for left, right in each.metadata.get(_HOLES) or ())
            time, is_retracted = each.time or each.recorded, each.retired is not None
            read.append(LogMessage(each.id, each.role, each.text, each.speaker, time, hash, is_retracted))
            lines.append(Line(key, each.role, each.text, each.id, each.recorded, each.retired, holes))
        return cls(read, lines)


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

        def compare(lines: Sequence[Line]) -> tuple[LogContent, LogChanges]:
            # With the end of the log; with all of it if the request does more than go on from there.
            if not is_whole and len(lines) <= _MAX_QUICK_MESSAGES:
                end = self._end(len(lines) + _SPARE_MESSAGES)
                changes = find_changes(end.lines, lines)
                known = sum(place is not None for place in changes.places)
                is_long = known >= max(_LEAST_REPETITION, len(changes.before))
                is_appended = all(place == len(end.messages) for place in changes.before.values())
                if is_long and is_appended and not (changes.retracted or changes.restored or changes.note):
                    return end, changes
            content = self._content()
            return content, find_changes(content.lines, lines, is_whole=is_whole)

        return self._take_in(messages, compare)

    def take_in_turn(self, messages: Sequence[Mapping[str, Any]]) -> LogReport:
        """Add the latest turn, which is handed in without the chat before it.

        If it begins with the last question, that was asked again, and the answer before is taken back.
        """

        content = self._content()
        return self._take_in(messages, lambda lines: (content, find_turn_changes(content.lines, lines)))

    def _take_in(
        self,
        messages: Sequence[Mapping[str, Any]],
        compare: Callable[[Sequence[Line]], tuple[LogContent, LogChanges]],
    ) -> LogReport:
        request = read_request(messages)
        spoken = [message for message in request if message.role.lower() not in SILENT_ROLES]
        content, changes = compare([Line(message_key(message), message.role, message.text) for message in spoken])
        if not content.messages and request:
            prepare_discussion(self._memory, self._scope)
        self._keep_prompts([each for each in request if each.role.lower() in SILENT_ROLES and each.text])
        return self._apply(changes, spoken, content)

    def _apply(self, changes: LogChanges, spoken: Sequence[Message], content: LogContent) -> LogReport:
        """Make the changes. New messages come first: if it ends halfway, the next request retracts the rest."""
        ids, after = _place(changes, spoken, content)
        end, holes = len(content.messages), {}
        if changes.holes:
            pairs = [[ids[left], "" if right is None else ids[right]] for left, right in changes.holes.items()]
            holes = {_HOLES: pairs}
        items = [
            _item(id, spoken[number], {AFTER: after[number], _IS_LAST: changes.before[number] == end, **holes})
            for number, id in enumerate(ids)
            if number in after
        ]
        receipts = self._memory.observe(self._scope, items) if items else []
        retracted, restored = (
            tuple(content.messages[place].id for place in places) for places in (changes.retracted, changes.restored)
        )
        for changed, is_retracted in ((retracted, True), (restored, False)):
            if changed:
                self._memory.retract(self._scope, changed, is_retracted)
        forgotten = sum(receipt.outcome == "forgotten" for receipt in receipts)
        notes = [f"{forgotten} messages were forgotten on purpose and are left out"] if forgotten else []
        return LogReport(
            new=tuple(receipt.id for receipt in receipts if receipt.outcome == "stored"),
            retracted=retracted,
            restored=restored,
            unchanged=len(spoken) - len(items) - len(set(restored) & set(ids)),
            ids=tuple(ids),
            notes=(*notes, *filter(None, [changes.note])),
        )

    def _keep_prompts(self, prompts: Sequence[Message]) -> None:
        """Keep system prompts, each once, and out of the chat and of what is recalled."""
        if not prompts:
            return
        named = {_derive_id("prompt", message_key(prompt)): prompt for prompt in prompts}
        found = self._memory.get_many(self._scope, list(named), exact=True)
        known = {item.id: item.retired is not None for item in found}
        items = [_item(id, named[id], {}) for id in named if id not in known]
        receipts = self._memory.observe(self._scope, items) if items else []
        new = [receipt.id for receipt in receipts if receipt.outcome != "forgotten"]
        if shown := [*new, *(id for id, is_retracted in known.items() if not is_retracted)]:
            self._memory.retract(self._scope, shown, True)

    def _content(self) -> LogContent:
        return self._memory.view(self._scope, "discussion log", self._read)

    def _read(self) -> LogContent:
        items = iterate(self._memory, self._scope, limit=_PAGE, kinds=["message"], retired=True, exact=True)
        return LogContent.of(in_order(item for item in items if isinstance(item, Message)))

    def _end(self, count: int) -> LogContent:
        """The last messages of the chat, without the rest of the log: at most so many, or fewer if they were changed.

        Those that were added one after the other at the end stand there; if one is out of line, what comes before it
        is not known.
        """
        how: Any = {"limit": count, "newest": True, "retired": True, "exact": True}
        end: list[Message] = []
        for item in self._memory.list(self._scope, kinds=["message"], **how).items:
            if not isinstance(item, Message) or item.role.lower() in SILENT_ROLES:
                continue
            is_next = item.metadata.get(_IS_LAST) if not end else end[-1].metadata.get(AFTER) == item.id
            if not is_next or item.retired is not None:
                break
            end.append(item)
        return LogContent.of(end[::-1])


def prepare_discussion(memory: Memory, scope: Scope) -> None:
    """Make the stream of a discussion: creators write its summary, the engine does not."""
    memory.streams.configure(scope, consolidation_prompt="")


def _place(changes: LogChanges, spoken: Sequence[Message], content: LogContent) -> tuple[list[str], dict[int, str]]:
    """The ids of all messages of a request, and for each new one the id of the message before it.

    Ids are the same for everybody who takes in the same request. A message said again in the same place gets another
    one.
    """
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
        id = _derive_id(after[number], key := message_key(message))
        while id in taken:
            id = _derive_id(after[number], key, id)
        ids.append(id)
        taken.add(id)
    return ids, after


def _derive_id(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:_ID_CHARACTERS]


def _item(id: str, message: Message, place: Mapping[str, Any]) -> dict[str, Any]:
    """What `Memory.observe` takes."""
    return {
        "id": id,
        "role": message.role,
        "text": message.text,
        "speaker": message.speaker,
        "time": message.time,
        "metadata": {FORMER: "discussion", **place, **message.metadata},
    }
