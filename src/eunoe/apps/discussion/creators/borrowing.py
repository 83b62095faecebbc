"""What an author took over from the memories and the summary that it was shown.

What it writes rests on that too, so that forgetting reaches it. A word is taken over if the chunk does not have it, and
what was shown does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from eunoe.apps.discussion.creators.registry import CreatorCall
from eunoe.apps.discussion.log.discussion_log import DiscussionLog
from eunoe.apps.discussion.model import ChunkMemory, KeywordMemory
from eunoe.form.evidence import content_words, names_and_numbers
from eunoe.text.analyzer import word_cache
from eunoe.text.languages import detect_language

_CACHED_MESSAGES: Final = 1 << 13
_MOST: Final = 8
"""So many messages or memories, the first ones, stand for a word that more have."""


def find_borrowed(
    call: CreatorCall, answer: str, shown: str, memories: Sequence[ChunkMemory | KeywordMemory]
) -> tuple[str, ...]:
    """Ids of what an answer rests on beside its own chunk, out of what was shown and the memories that this tells of.

    A word was taken over from the messages that have it. If none has it, a memory put it in other words: where it is a
    name or a number, it was taken over from the memories that have it, or from any of them.
    """
    language = detect_language(answer)
    words = _words(answer, language) & _words(shown, language) - _words(call.text, language)
    if not words:
        return ()
    said = _find_messages(call, words, language)
    names = names_and_numbers(answer) & words - said.keys()
    ids = [id for found in said.values() for id in found[:_MOST]]
    ids += (id for name in sorted(names) for id in _find_memories(name, memories, language))
    return tuple(dict.fromkeys(ids))


def _find_messages(call: CreatorCall, words: frozenset[str], language: int) -> dict[str, list[str]]:
    """By word: the ids of the messages of other chunks that have it."""
    own, found = {message.id for message in call.messages}, dict[str, list[str]]()
    for message in DiscussionLog(call.memory, call.scope).sequence():
        if message.id not in own:
            for word in words & _message_words(message.text, language):
                found.setdefault(word, []).append(message.id)
    return found


def _find_memories(name: str, memories: Sequence[ChunkMemory | KeywordMemory], language: int) -> Iterator[str]:
    """The ids of the memories that have a name, and of what they rest on."""
    found = [each for each in memories if name in _words(memory_text(each), language)]
    for each in found[:_MOST] or memories:
        yield from (each.id, *each.source, *each.borrowed)


def memory_text(memory: ChunkMemory | KeywordMemory) -> str:
    """All words of a memory."""
    if isinstance(memory, ChunkMemory):
        return memory.text
    return "\n".join((memory.title, memory.summary, *_joined(memory.entities, memory.key_phrases, memory.topics)))


def _joined(*lists: Iterable[str]) -> Iterator[str]:
    return (", ".join(texts) for texts in lists)


@word_cache(_CACHED_MESSAGES)
def _message_words(text: str, language: int) -> frozenset[str]:
    return _words(text, language)


def _words(text: str, language: int) -> frozenset[str]:
    """The words that say something; of scripts without spaces the pairs of characters."""
    return frozenset(word for word in content_words(text, language) if len(word) > 1)
