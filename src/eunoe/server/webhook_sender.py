"""Telling webhooks: one look now and then whether there is news, and a job for each webhook that has to be told."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, Final

from pydantic_core import to_json

from eunoe.errors import EunoeError
from eunoe.memory import Memory
from eunoe.model.atom import Item
from eunoe.server.events import Event, Feed
from eunoe.server.jobs import MAX_ATTEMPTS, Job
from eunoe.server.webhook_delivery import DeliveryError, check_url, find_address, send
from eunoe.server.webhooks import Webhook, Webhooks
from eunoe.server.worker import Progress

JOB_KIND: Final = "webhook"
_LOOK_SECONDS: Final = 2.0
_MAX_ITEMS: Final = 100
"""In one request."""
_log = logging.getLogger("eunoe.server")


class WebhookSender:
    """Finds webhooks with news and tells them. The cursor of a webhook follows what was delivered."""

    def __init__(self, webhooks: Webhooks, find_memory: Callable[[str], Memory | None]) -> None:
        self._webhooks = webhooks
        self._find_memory = find_memory
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, add_job: Callable[[Webhook], object]) -> None:
        """Look for news in a thread, and have a job deliver it."""
        self._thread = threading.Thread(
            target=self._look_until_end, args=(add_job,), name="eunoe-webhooks", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        if self._thread:
            self._thread.join()

    def _look_until_end(self, add_job: Callable[[Webhook], object]) -> None:
        while not self._end.wait(_LOOK_SECONDS):
            try:
                for webhook in self.find_due():
                    add_job(webhook)
            except Exception:
                _log.exception("the webhooks could not be looked at")

    def find_due(self) -> Iterator[Webhook]:
        """Webhooks that work and have news."""
        for webhook in self._webhooks.list():
            if webhook.problem:
                continue
            memory = self._find_memory(webhook.key)
            if memory is None:
                self._webhooks.stop(webhook.id, "the key that made it has ended")
            elif self._has_news(webhook, memory):
                yield webhook

    def _has_news(self, webhook: Webhook, memory: Memory) -> bool:
        feed = Feed.from_cursor(memory, self._webhooks.cursor(webhook.id))
        newest = memory.recent(since=feed.since, limit=1, retired=True).items
        return bool(newest) and not feed.has_seen(newest[0])

    def deliver(self, job: Job, progress: Progress) -> Mapping[str, Any] | None:
        """Tell one webhook everything that it does not know yet."""
        webhook = self._webhooks.get(job.options["webhook"])
        memory = self._find_memory(webhook.key)
        if webhook.problem or memory is None:
            return None
        feed, told = Feed.from_cursor(memory, self._webhooks.cursor(webhook.id)), 0
        for part in _in_parts(feed.read()):
            events = [event for event in part if _is_there(memory, event.item)]  # it may be forgotten meanwhile
            if not events:
                continue
            try:
                self._tell(webhook, events)
            except DeliveryError:
                if job.attempts >= MAX_ATTEMPTS:
                    self._webhooks.stop(
                        webhook.id, "it could not be told for too often: resume it when it answers again"
                    )
                raise
            told += len(events)
            progress(told)
        return {"items": told} if told else None

    def _tell(self, webhook: Webhook, events: Sequence[Event]) -> None:
        id = f"{webhook.id}-{events[-1].cursor.partition('|')[0]}"
        body = to_json({"type": "learned", "items": [event.json(webhook.with_text) for event in events]})
        began, status, error = monotonic(), 0, ""
        try:
            allow_private = webhook.tenant == ""
            address = find_address(check_url(webhook.url, allow_private), allow_private)
            status = send(address, body, id, self._webhooks.secret(webhook.id))
            if not 200 <= status < 300:
                raise DeliveryError(f"the webhook answered {status}")
        except EunoeError as problem:
            error = str(problem)
            raise
        finally:
            cursor = "" if error else events[-1].cursor
            self._webhooks.note_delivery(webhook.id, len(events), status, monotonic() - began, error, cursor)


def _is_there(memory: Memory, item: Item) -> bool:
    assert item.scope is not None
    return bool(memory.get_many(item.scope, [item.id]))


def _in_parts(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    for start in range(0, len(events), _MAX_ITEMS):
        yield events[start : start + _MAX_ITEMS]
