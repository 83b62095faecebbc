"""Why a context is empty: it never is without a reason."""

from collections.abc import Iterator, Sequence

from eunoe.model.arguments import MEMORY_TYPES
from eunoe.recall.audience import Audience
from eunoe.recall.context_request import ContextRequest
from eunoe.recall.static_context import StaticContext
from eunoe.records.log import load_session
from eunoe.records.reading import near_scope_notes
from eunoe.store.contract import ItemQuery, Store
from eunoe.store.schema import StreamState


def empty_context_notes(
    store: Store, request: ContextRequest, audience: Audience, static: StaticContext, queries: Sequence[str]
) -> tuple[str, ...]:
    """What was not there, waits, or was left out; never nothing."""
    with store.reading():
        searched = [request.scope, *audience.searched_in(MEMORY_TYPES), *(target.scope for target in audience.targets)]
        shown = [scope for scope in dict.fromkeys(searched) if scope not in audience.private]
        streams = [stream for stream in map(store.stream, shown) if stream and _holds_items(store, stream)]
        notes = [
            *near_scope_notes(store, [request.scope], request.bounds, is_one=True),
            *_left_out(store, request, audience),
        ]
        if streams:
            notes += _unused(store, streams)
            notes += [f"tokens={request.tokens} leaves no room for a memory"] if static.rest else []
            if not queries:
                why = "recall is off" if request.lookup == "off" else "the message asks for nothing"
                notes.append(f"nothing was looked up: {why if request.message.strip() else 'there is no message'}")
            elif not static.rest:
                notes.append("nothing that may be shown here bears on the message, or it stands in the latest messages")
        elif not notes:
            notes.append(f"nothing is stored in {request.scope} yet")
    return tuple(notes)


def _left_out(store: Store, request: ContextRequest, audience: Audience) -> Iterator[str]:
    held = (store.stream(scope) for scope in audience.private if request.bounds.covers(scope))
    if any(stream and _holds_items(store, stream) for stream in held):
        yield "a user's own memory is left out: several users take part, or nobody says which of them asks"


def _unused(store: Store, streams: Sequence[StreamState]) -> Iterator[str]:
    waiting = sum(session.messages for session in (load_session(store, each) for each in streams) if session)
    if waiting:
        yield f"{waiting} message{'s wait' if waiting > 1 else ' waits'} for `form`"


def _holds_items(store: Store, stream: StreamState) -> bool:
    return bool(store.select(ItemQuery(stream.id, open=True, limit=1)))
