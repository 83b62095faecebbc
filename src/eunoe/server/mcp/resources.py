"""Resources: the streams within reach, their summaries, and the graph of the profile `reference`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

import mcp_types as types

from eunoe.errors import NotFoundError
from eunoe.model.scope import Scope
from eunoe.model.stream import Stream
from eunoe.server.mcp.caller import Caller
from eunoe.server.mcp.cursors import parse_cursor
from eunoe.server.mcp.knowledge_graph import KnowledgeGraph
from eunoe.server.mcp.memory_list import NOTICE
from eunoe.server.mcp.reference_tools import GRAPH_URI
from eunoe.server.mcp.tool import as_json
from eunoe.text.markup import escape_xml, quote_xml

if TYPE_CHECKING:
    from eunoe.memory import Memory

_STREAMS: Final = "eunoe://streams/"
_SUMMARIES: Final = "eunoe://summaries/"
_JSON: Final = "application/json"
_TEXT: Final = "text/plain"
_PAGE: Final = 50
_TENANT: Final = "tenant"

GRAPH_RESOURCE: Final = types.Resource(
    uri=GRAPH_URI,
    name="knowledge-graph",
    title="Knowledge Graph",
    description="The full knowledge graph with all entities and relations",
    mime_type=_JSON,
)
TEMPLATES: Final = (
    types.ResourceTemplate(
        uri_template=_STREAMS + "{scope}",
        name="stream",
        title="Stream",
        description="How much is remembered in a scope, such as user%3Danna, and how it is formed.",
        mime_type=_JSON,
    ),
    types.ResourceTemplate(
        uri_template=_SUMMARIES + "{scope}",
        name="summary",
        title="Summary",
        description="The current summary of a scope.",
        mime_type=_TEXT,
    ),
)


def list_resources(memory: Memory, caller: Caller, cursor: str) -> tuple[list[types.Resource], str | None]:
    """A page of streams with their summaries, and where the next one begins."""
    (start,) = parse_cursor(cursor, parts=1)
    streams = sorted(_streams(memory, caller), key=lambda stream: stream.scope.text)
    end = start + _PAGE
    page = [resource for stream in streams[start:end] for resource in _resources(stream)]
    return page, str(end) if end < len(streams) else None


def read_resource(memory: Memory, caller: Caller, uri: str) -> types.TextResourceContents:
    if uri == GRAPH_URI:
        graph = KnowledgeGraph(memory, caller.scopes.parse("")).read()
        return types.TextResourceContents(uri=uri, mime_type=_JSON, text=as_json(graph))
    if uri.startswith(_STREAMS):
        stream = _find_stream(memory, caller, uri.removeprefix(_STREAMS))
        return types.TextResourceContents(uri=uri, mime_type=_JSON, text=as_json(_describe(stream)))
    if uri.startswith(_SUMMARIES):
        stream = _find_stream(memory, caller, uri.removeprefix(_SUMMARIES))
        return types.TextResourceContents(uri=uri, mime_type=_TEXT, text=_summary(stream))
    raise NotFoundError("there is no such resource")


def _streams(memory: Memory, caller: Caller) -> list[Stream]:
    within = caller.scopes.within
    return memory.streams.list(**(within.pairs if within else {}))


def _resources(stream: Stream) -> Iterator[types.Resource]:
    scope, path = stream.scope.text, quote(stream.scope.text, safe="")
    counts = f"{stream.facts} facts, {stream.observations} observations"
    yield types.Resource(uri=_STREAMS + path, name=scope, description=counts, mime_type=_JSON)
    if stream.revision:
        yield types.Resource(uri=_SUMMARIES + path, name=f"Summary of {scope}", mime_type=_TEXT)


def _find_stream(memory: Memory, caller: Caller, path: str) -> Stream:
    scope: Scope = caller.scopes.parse(unquote(path))
    found = (stream for stream in memory.streams.list(**scope.pairs) if _is_named(stream.scope, scope))
    if stream := next(found, None):
        return stream
    raise NotFoundError(f"{scope} holds nothing")


def _is_named(stream: Scope, scope: Scope) -> bool:
    """Whether this is the stream; the tenant of a key need not be named."""
    return {**stream.pairs, **scope.pairs} == stream.pairs and set(stream) - set(scope) <= {_TENANT}


def _describe(stream: Stream) -> dict[str, str | int]:
    return {
        "scope": stream.scope.text,
        "preset": stream.preset,
        "facts": stream.facts,
        "observations": stream.observations,
        "revision": stream.revision,
    }


def _summary(stream: Stream) -> str:
    if not stream.revision:
        raise NotFoundError(f"{stream.scope} has no summary yet")
    head = f"<summary scope={quote_xml(stream.scope.text)} revision={quote_xml(str(stream.revision))}>"
    return f"{head}\n{escape_xml(stream.summary)}\n</summary>\n{NOTICE}"
