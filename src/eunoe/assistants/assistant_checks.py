"""Look at the assistants: what stands in their settings, whether it runs, and how their hooks do."""

import json
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from eunoe.assistants.catalog import Assistant, load_assistants
from eunoe.assistants.config_file import ConfigText, read_file
from eunoe.assistants.entries import find_hooks, find_server
from eunoe.assistants.findings import Finding, ok, problem, warning
from eunoe.assistants.hook import hook_folder, spool_folder
from eunoe.assistants.intake import read_notes, waiting_events
from eunoe.errors import InputError

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
