"""The node that sums up any text, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from eunoe.apps.discussion.authors import Author, NothingError
from eunoe.apps.discussion.chunks.content import estimate_tokens
from eunoe.apps.discussion.creators.prompts import CHUNK_MEMORY
from eunoe.apps.discussion.documents.extracts import fold_in
from eunoe.apps.discussion.host_messages import NO_MEMORIES
from eunoe.apps.discussion.retrievers.escaping import CHUNK_BREAK, escape_memory, join_memories
from eunoe.apps.discussion.retrievers.reader import DiscussionReader
from eunoe.apps.discussion.workflow.creator_run import make_memories
from eunoe.apps.discussion.workflow.node import MODEL_KEYS, node
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.nodes.memory_author import find_author
from eunoe.apps.discussion.workflow.nodes.memory_keys import ACROSS, HOST_MESSAGES, check_keys, read_choice
from eunoe.apps.discussion.workflow.nodes.memory_reading import find_reader, give
from eunoe.apps.discussion.workflow.values import COUNT_KEYS

_RECENT_MEMORY: Final = "RecentMemory"
_INPUTS: Final = ("TextChunk", "Memory_file", "Full_Memory_file", "Chat_Summary")
_EXTRACT_WORDS: Final = 160
"""Of a chunk that no language model sums up."""


@node(
    "SlowButQualityRAG",
    required=["ragTarget"],
    keys=["ragType", ACROSS, HOST_MESSAGES, *MODEL_KEYS, *COUNT_KEYS],
    takes_in=True,
    check=check_keys,
)
def slow_but_quality_rag(call: NodeCall) -> str:
    """Sum up a text, chunk by chunk; with `"ragType": "RecentMemory"`, make the memories that are due and give the
    latest of them."""
    target, reader = call.render("ragTarget"), find_reader(call)
    if read_choice(call, "ragType") == _RECENT_MEMORY and reader:
        make_memories(call)
        return give(call, reader.recent(), NO_MEMORIES)
    author, context = find_author(call, CHUNK_MEMORY), _context(reader)
    chunks = _split(target, call.run.environment.settings.chunk_memory.tokens)
    texts = (_sum_up(chunk, author, context) for chunk in chunks)
    return join_memories(escape_memory(text) for text in texts if text)


def _context(reader: DiscussionReader | None) -> Mapping[str, str]:
    if reader is None:
        return dict.fromkeys(_INPUTS[1:], "")
    texts = (reader.recent().text, reader.all().text, reader.summary().text)
    return dict(zip(_INPUTS[1:], texts, strict=True))


def _sum_up(chunk: str, author: Author | None, context: Mapping[str, str]) -> str:
    if author is None:
        return fold_in("", chunk.split("\n"), _EXTRACT_WORDS)
    with suppress(NothingError):
        return author.write({"TextChunk": chunk, **context})
    return ""


def _split(text: str, tokens: int) -> Iterator[str]:
    """Cut a text at its chunk breaks, and between lines where a chunk would be too large."""
    for part in text.split(CHUNK_BREAK):
        chunk = ""
        for line in part.strip().split("\n"):
            longer = f"{chunk}\n{line}" if chunk else line
            if chunk.strip() and estimate_tokens(longer) > tokens:
                yield chunk
                longer = line
            chunk = longer
        if chunk.strip():
            yield chunk
