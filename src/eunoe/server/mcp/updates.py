"""Tells clients that a resource changed: those of the newest protocol that listen, and those before that subscribed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated


class Updates:
    """Who wants to know of changes that this process makes."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._sessions: dict[str, ServerSession] = {}

    async def subscribe(self, ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._sessions[str(params.uri)] = ctx.session
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._sessions.pop(str(params.uri), None)
        return types.EmptyResult()

    async def publish(self, uri: str) -> None:
        await self._bus.publish(ResourceUpdated(uri))
        if session := self._sessions.get(uri):
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await session.send_resource_updated(uri)
