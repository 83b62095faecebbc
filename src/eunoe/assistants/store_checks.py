"""Look at a store and its models without changing anything."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import eunoe
from eunoe.assistants.findings import Finding, ok, problem, warning
from eunoe.errors import EunoeError
from eunoe.llm import LLM_VARIABLE, Prompt, load_llm
from eunoe.memory import Memory

_MAGIC: Final = b"SQLite format 3\0"
_VERSION_PLACE: Final = 60
"""Where a SQLite file has its `user_version`."""
_LITTLE_ROOM_BYTES: Final = 500_000_000


def check_store(path: Path) -> Iterator[Finding]:
    """Whether a store is there, can be opened, may be read by its owner alone, and has room to grow."""
    if not path.exists():
        yield warning("store", f"there is none at {path} yet", "it is made when the first thing is remembered")
        return
    yield from _check_permissions(path)
    yield from _check_room(path)
    if finding := _check_schema(path):
        yield finding
        return
    try:
        # A store of the current schema is only read.
        with eunoe.open(path, create=False, form=False, llm="none") as memory:
            yield from _check_contents(memory)
    except (EunoeError, OSError) as error:
        yield problem("store", f"{path} cannot be opened: {error}", "run `eunoe check`, or `eunoe restore` a backup")


def check_llm() -> Iterator[Finding]:
    """Whether the language model answers, if one is configured."""
    spec = os.environ.get(LLM_VARIABLE, "").strip()
    if not spec or spec == "none":
        yield ok("llm", f"none ({LLM_VARIABLE} is not set): memories are formed by rules")
        return
    start = time.monotonic()
    try:
        llm = load_llm(spec)
        if llm:
            llm.ask(Prompt("Answer with the word: ready", "Are you ready?"))
    except (EunoeError, OSError) as error:
        yield problem("llm", f"does not answer: {error}", f"check {LLM_VARIABLE}, its key and its address")
        return
    yield ok("llm", f"{llm.name if llm else spec} answers in {time.monotonic() - start:.1f} s")


def _check_permissions(path: Path) -> Iterator[Finding]:
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK):
        yield problem("store", f"{path} or its folder cannot be written", f"chown it to you, or chmod u+rw {path}")
    if os.name == "posix" and path.stat().st_mode & 0o077:
        yield warning("store", f"others on this computer can read {path}", f"chmod 600 {path}")


def _check_room(path: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(path.parent).free
    if free < max(path.stat().st_size, _LITTLE_ROOM_BYTES):
        yield warning(
            "disk", f"only {free / 1e6:,.0f} MB are free beside the store", "make room: a backup needs as much"
        )
    else:
        yield ok("disk", f"{free / 1e9:,.1f} GB free")


def _check_schema(path: Path) -> Finding | None:
    with path.open("rb") as file:
        head = file.read(100)
    if not head.startswith(_MAGIC):
        return problem("store", f"{path} is no store", "name another with --store, or restore a backup")
    version = int.from_bytes(head[_VERSION_PLACE : _VERSION_PLACE + 4])
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
        current = memory.status().schema
    if version > current:
        return problem("store", f"it has schema {version}, which is newer than this Eunoe ({current})", "upgrade Eunoe")
    if version < current:
        advice = "it is upgraded when it is next used; make a backup first"
        return warning("store", f"it has schema {version}, this Eunoe has {current}", advice)
    return None


def _check_contents(memory: Memory) -> Iterator[Finding]:
    status = memory.status()
    held = f"{status.messages:,} messages, {status.facts + status.observations:,} memories"
    yield ok("store", f"{status.target}: {held}, {status.bytes / 1e6:,.1f} MB, schema {status.schema}")
    if status.failing:
        yield warning(
            "forming", f"{status.failing} attempts failed: {status.error}", "run `eunoe form SCOPE` to see why"
        )
    yield _check_embedder(memory, status.embedder, status.embedder_error)


def _check_embedder(memory: Memory, name: str, error: str) -> Finding:
    start = time.monotonic()
    try:
        if memory.embedder is not None:
            memory.embedder.embed_query("ready")
    except Exception as failure:  # of a model's library: whatever it raises is the finding
        error = error or f"{type(failure).__name__}: {failure}"
    if error:
        return problem("embedder", f"{name} fails: {error}", "reinstall eunoe, or change it with `eunoe reembed`")
    if memory.embedder is None:
        return warning("embedder", "none: recall goes by words alone", "`eunoe reembed eunoe` adds one")
    return ok("embedder", f"{name} is ready in {time.monotonic() - start:.1f} s")
