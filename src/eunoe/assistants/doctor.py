"""The doctor: it looks at a store, its models, a server and assistants without changing anything."""

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

import eunoe
from eunoe.assistants.hook import hook_folder, spool_folder
from eunoe.assistants.installation import Assistant, find_hooks, find_server, load_assistants
from eunoe.assistants.intake import read_notes, waiting_events
from eunoe.assistants.settings_file import ConfigText, read_file
from eunoe.errors import EunoeError, InputError, NotAStoreError
from eunoe.llm import LLM_VARIABLE, Prompt, load_llm
from eunoe.memory import Memory
from eunoe.net.local_server import LocalFiles, find_local_server

State = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """One line of the doctor."""

    state: State
    subject: str
    text: str
    advice: str = ""


def ok(subject: str, text: str) -> Finding:
    return Finding("ok", subject, text)


def warning(subject: str, text: str, advice: str) -> Finding:
    return Finding("warning", subject, text, advice)


def problem(subject: str, text: str, advice: str) -> Finding:
    return Finding("problem", subject, text, advice)


_PATIENCE_SECONDS: Final = 10.0
"""So long Codex waits for a handshake; others wait longer."""
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "eunoe doctor", "version": "1"},
    },
}


def check_assistants(store: Path) -> Iterator[Finding]:
    """Each assistant in whose settings Eunoe stands; one line if there is none."""
    findings = [finding for assistant in load_assistants().values() for finding in _check(assistant, store)]
    yield from findings
    if not findings:
        names = ", ".join(load_assistants())
        yield ok("assistants", f"Eunoe is installed in none; `eunoe mcp --install NAME` does it: {names}")
    yield from _check_spool(store)


def _check(assistant: Assistant, store: Path) -> Iterator[Finding]:
    texts = {}
    paths = {assistant.path, *([assistant.hooks.path] if assistant.hooks else [])}
    for path in sorted(paths):
        try:
            texts[path] = ConfigText.from_bytes(read_file(path) or b"", path).text
            if path == assistant.path and (entry := find_server(texts[path], assistant)):
                yield from _check_entry(assistant, entry, store)
            if assistant.hooks and path == assistant.hooks.path and (hooks := find_hooks(texts[path], assistant)):
                yield from _check_hooks(assistant, hooks, store)
        except (InputError, OSError) as error:
            advice = f"repair the file: {assistant.title} cannot read it either"
            yield problem(assistant.name, f"{path} cannot be read: {error}", advice)


def _check_entry(assistant: Assistant, entry: dict[str, Any], store: Path) -> Iterator[Finding]:
    again = f"eunoe mcp --install {assistant.name}"
    command, args = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not isinstance(args, list) or not all(isinstance(each, str) for each in args):
        yield problem(assistant.name, "its entry for Eunoe has no command", again)
        return
    if not Path(command).is_file():
        yield problem(assistant.name, f"{command} is not there any more", again)
        return
    if (named := _option(args, "--store")) and Path(named) != store:
        yield warning(
            assistant.name, f"it uses another store: {named}", f"{again} --store {store}, if that is not meant"
        )
    answer = _try_command((command, *args))
    if isinstance(answer, str):
        yield problem(assistant.name, f"its server does not answer: {answer}", again)
    else:
        yield ok(assistant.name, f"installed; its server answers in {answer:.1f} s")


def _check_hooks(assistant: Assistant, commands: dict[str, str], store: Path) -> Iterator[Finding]:
    assert assistant.hooks
    subject, again = f"{assistant.name} hooks", f"eunoe mcp --install {assistant.name} --hooks"
    words = {word for command in commands.values() for word in shlex.split(command, posix=sys.platform != "win32")[:3]}
    gone = sorted(word for word in words if Path(word).is_absolute() and not Path(word).is_file())
    missing = sorted(assistant.hooks.events.keys() - commands.keys())
    if gone:
        yield problem(subject, f"{gone[0]} is not there any more", again)
    elif missing:
        yield warning(subject, f"there is none for {', '.join(missing)}", again)
    note = read_notes(Path(hook_folder(str(store)))).get(assistant.name)
    if note is None:
        yield warning(subject, "installed, but none has run yet", f"{assistant.restart}, and say something")
    elif note.get("error"):
        yield problem(subject, f"the last one failed with {note['error']}", "what it had to say waits in the spool")
    elif not gone:
        last = datetime.fromtimestamp(float(note.get("time", 0)), UTC)
        yield ok(subject, f"last run {last:%Y-%m-%d %H:%M} UTC ({note.get('event', '')})")


def _check_spool(store: Path) -> Iterator[Finding]:
    if waiting := waiting_events(str(store)):
        yield warning("spool", f"{len(waiting)} events wait to be taken in", "the next hook or server does it")
    if refused := list(Path(spool_folder(str(store))).glob("*.refused")):
        yield warning("spool", f"{len(refused)} events could not be read", f"they lie in {refused[0].parent}")


def _option(args: Sequence[str], name: str) -> str:
    return next((value for option, value in pairwise(args) if option == name), "")


@cache
def _try_command(command: tuple[str, ...]) -> float | str:
    """Run a command on an empty store of its own, so that the real one is not touched."""
    with TemporaryDirectory(prefix="eunoe-") as folder:
        store = _option(command, "--store")
        words = [str(Path(folder) / "memory.db") if word == store else word for word in command]
        return _shake_hands(words)


def _shake_hands(command: list[str]) -> float | str:
    """Seconds until an MCP server answers, or why it does not. It is stopped at once."""
    start = time.monotonic()
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    except OSError as error:
        return str(error)
    timer = threading.Timer(_PATIENCE_SECONDS, process.kill)
    timer.start()
    with process:
        try:
            assert process.stdin
            assert process.stdout
            assert process.stderr
            process.stdin.write(json.dumps(_HELLO).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
            seconds = time.monotonic() - start
            if line and "result" in json.loads(line):
                return seconds
            last = process.stderr.read().decode(errors="replace").strip().splitlines()[-1:]
            return last[0] if last else f"no answer in {seconds:.0f} s"
        except (OSError, ValueError) as error:
            return str(error)
        finally:
            timer.cancel()
            process.kill()


_DEFAULT_PORT: Final = 8765
_CONNECT_SECONDS: Final = 1.0


def check_server(store: Path) -> Iterator[Finding]:
    files = LocalFiles.beside(store)
    address = files.address
    yield from _check_token(files.token)
    if not address.exists():
        yield _check_port()
        return
    try:
        told = json.loads(address.read_bytes())
        url, pid = str(told["url"]), int(told["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        yield problem("server", f"{address} cannot be read", "stop the server, delete the file, start it again")
        return
    if find_local_server(store):
        yield ok("server", f"runs at {url} (process {pid})")
    elif _answers(url):
        text = f"something else answers at {url}, where a server was"
        yield problem("server", text, f"stop it, or start `eunoe serve` on another --port; then delete {address}")
    else:
        yield warning("server", f"does not run any more, but {address} says so", f"delete {address}")


def check_mcp() -> Iterator[Finding]:
    try:
        yield ok("mcp", f"SDK {version('mcp')}")
    except PackageNotFoundError:
        yield problem("mcp", "the package mcp is not installed", "pip install 'eunoe[server]'")


def _check_token(token: Path) -> Iterator[Finding]:
    if os.name == "posix" and token.exists() and token.stat().st_mode & 0o077:
        yield problem("token", f"others on this computer can read {token}", f"chmod 600 {token}, and rotate the keys")


def _check_port() -> Finding:
    if _answers(f"http://127.0.0.1:{_DEFAULT_PORT}"):
        text = f"none runs on this store, and port {_DEFAULT_PORT} is taken"
        return warning("server", text, "start `eunoe serve` with another --port")
    return ok("server", "none runs; `eunoe serve` starts one, which also makes hooks quicker")


def _answers(url: str) -> bool:
    try:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname or "", parts.port or 80), _CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


_MAGIC: Final = b"SQLite format 3\0"
_VERSION_PLACE: Final = 60
"""Where a SQLite file has its `user_version`."""
_MARK: Final = b"EUN2"
_MARK_PLACE: Final = 68
"""Where a SQLite file has its `application_id`."""
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
    except NotAStoreError as error:
        yield problem("store", str(error), "name another with --store")
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
    if head[_MARK_PLACE : _MARK_PLACE + 4] != _MARK:
        return None  # an older Eunoe's or another program's, as opening it tells
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
