"""What one server process holds: the memory, its own records, and who may call."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

import eunoe
from eunoe.errors import ConflictError
from eunoe.files import create_once
from eunoe.memory import AsyncMemory, Change, Memory
from eunoe.model.scope import Scope
from eunoe.net.local_server import LocalFiles
from eunoe.server.access import Access, Logins, RateLimit, Sessions, load_owner_token
from eunoe.server.audit import Audit
from eunoe.server.config import Addresses, ServerConfig, has_files
from eunoe.server.idempotency import Idempotency
from eunoe.server.jobs import JobKind, JobQueue, Worker, job_kinds
from eunoe.server.keys import Keys
from eunoe.server.oauth import OAuth
from eunoe.server.observation import Metrics, Tracing
from eunoe.server.state import ServerState
from eunoe.server.webhooks import JOB_KIND as WEBHOOK_JOB
from eunoe.server.webhooks import Webhooks, WebhookSender

_REGISTRATIONS_PER_MINUTE: Final = 10


class Services:
    """The parts of one server. Routes find them at `request.app.state.services`."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.addresses = Addresses(config)
        self.memory: AsyncMemory = eunoe.open_async(
            config.target, embedder=config.embedder, llm=config.llm, fast_llm=config.fast_llm, form=self._form
        )
        self._folder = None if has_files(self.memory.target) else tempfile.TemporaryDirectory(prefix="eunoe-server-")
        store = str(Path(self._folder.name) / "memory.db") if self._folder else self.memory.target
        self.files = LocalFiles.beside(store)
        self.owner_token = load_owner_token(self.files.token)
        self.state = ServerState(self.files.state)
        self.keys = Keys(self.state)
        self.sessions = Sessions(self.state, self.owner_token)
        self.audit = Audit(self.state, config.audit_days)
        self.oauth = (
            OAuth(self.state, self.keys, self.owner_token, self.addresses.public_url) if config.public_url else None
        )
        self.registrations = RateLimit(_REGISTRATIONS_PER_MINUTE, burst=_REGISTRATIONS_PER_MINUTE)
        self.idempotency = Idempotency(self.state)
        self.exports = self.files.state.with_suffix(".exports")
        self.jobs = JobQueue(self.state, pause_seconds=config.retry_seconds)
        self.access = Access(
            self.memory, self.keys, self.sessions, self.audit, self.owner_token, self.oauth, self._drop_copies
        )
        self.logins = Logins(self.access, config.failures_per_minute)
        self.stopping = asyncio.Event()
        """Set when the server stops: streams of events end then."""
        self.webhooks = Webhooks(self.state)
        self._webhook_sender = WebhookSender(self.webhooks, self._find_memory)
        self.metrics = Metrics(self.memory.blocking.status, self.jobs.counts)
        self.tracing = Tracing() if config.tracing else None
        self.worker = self._start_worker()

    def write_address(self, url: str) -> None:
        """Tell local clients where this server listens."""
        self.files.address.unlink(missing_ok=True)
        create_once(self.files.address, json.dumps({"url": url, "pid": os.getpid()}).encode())

    def _start_worker(self) -> Worker:
        if not self.config.worker:  # another process does the jobs
            return Worker(self.jobs, {}, threads=0)
        kinds = job_kinds(self.memory.blocking, self.exports)
        kinds[WEBHOOK_JOB] = JobKind(self._webhook_sender.deliver, max_seconds=600.0)
        worker = Worker(self.jobs, kinds)
        self._webhook_sender.start(
            lambda webhook: worker.add(WEBHOOK_JOB, tenant=webhook.tenant, options={"webhook": webhook.id})
        )
        return worker

    def _find_memory(self, key_id: str) -> Memory | None:
        """The memory that a key may use, while it is valid."""
        key = self.keys.find(key_id)
        return self.access.memory(key).blocking if key else None

    def _drop_copies(self, change: Change) -> None:
        """Replies to requests that are done once, and files of exports, may repeat what was forgotten."""
        if change.verb != "forget" or change.error:
            return
        self.idempotency.forget(change.forgotten)
        for job in self.jobs.of_kind("export"):
            exported = [Scope.stored(text) for text in job.options["scopes"]]
            if any(_may_share(scope, each) for scope in change.scopes for each in exported):
                (self.exports / f"{job.id}.jsonl").unlink(missing_ok=True)
                if job.state == "running":  # it may have read what is gone
                    with suppress(ConflictError):
                        self.jobs.cancel(job.id)

    def _form(self, scope: Scope) -> None:
        """Have a conversation formed that is due."""
        self.worker.add("form", tenant=scope.pairs.get("tenant", ""), scope=scope.text)

    async def close(self) -> None:
        """Stop in order. What was acknowledged is stored; what the worker holds is finished or handed back."""
        with suppress(OSError, ValueError):  # unless another server has written its own meanwhile
            if json.loads(self.files.address.read_text())["pid"] == os.getpid():
                self.files.address.unlink()
        await asyncio.to_thread(self._webhook_sender.close)
        await asyncio.to_thread(self.worker.close)
        await self.memory.close()
        if self.tracing:
            self.tracing.close()
        self.state.close()
        if self._folder:
            self._folder.cleanup()


def _may_share(scope: Scope, other: Scope) -> bool:
    """Whether one stream can be meant by both."""
    pairs = other.pairs.items()
    is_tenant = scope.pairs.get("tenant") == other.pairs.get("tenant")
    return is_tenant and all(scope.pairs.get(key, value) == value for key, value in pairs)
