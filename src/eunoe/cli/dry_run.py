"""`eunoe form --dry-run`: what would be learned from a text, a file or a conversation, and what not."""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from eunoe.cli import inputs
from eunoe.cli.command import IN_MEMORY, Call, MisuseError, Reply
from eunoe.cli.display import output
from eunoe.cli.display.output import quantity
from eunoe.cli.display.views import Entries, Entry, View, how_sure
from eunoe.cli.write import parse_line
from eunoe.errors import InputError, ScopeError
from eunoe.model.arguments import shorten
from eunoe.model.atom import WORTH, Atom
from eunoe.model.message import Message
from eunoe.model.result import Preview
from eunoe.model.scope import Scope

_SESSION: Final = "dry-run"
_FILE_NAME: Final = re.compile(r"\S+\.(?:txt|md|log|csv|json|jsonl)", re.IGNORECASE)


def dry_run_reply(call: Call, scope: str, text: str, speakers: bool) -> Reply:
    """Show what would be learned. A single argument is a scope, a file or what is said."""
    if not scope and not text:
        raise MisuseError("say what to read: a SCOPE, a text, a file, or - for standard input")
    owner = _parse_scope(scope, is_sure=bool(text))
    said = text or ("" if owner else scope)
    messages = _read_messages(said, speakers) if said else None
    memory = call.open(needs_llm=True) if owner else call.open_to_look(needs_llm=True, store=IN_MEMORY)
    with output.progress("reading"):
        found = memory.preview(owner or Scope(session=_SESSION, user=getpass.getuser()), messages)
    document = {
        "memories": found.items,
        "doubtful": found.doubtful,
        "passed_over": found.passed_over,
        "corrected": found.corrected,
        "notes": found.notes,
    }
    empty = "nothing waits to be formed" if messages is None else "nothing would be learned"
    return Reply(document, *_views(found), notes=found.notes, empty=empty)


def _parse_scope(text: str, is_sure: bool) -> Scope | None:
    """The scope that an argument names; None if it is a file or what somebody says."""
    if is_sure:
        return Scope.parse(text)
    with suppress(ScopeError):
        return None if _is_file(text) else Scope.parse(text)
    return None


def _read_messages(said: str, speakers: bool) -> list[Message]:
    if _is_file(said):
        return _read_file(said, speakers)
    return [parse_line(speakers, {}, line) for line in said.splitlines() if line.strip()]


def _is_file(text: str) -> bool:
    """Whether a text is standard input, names a file or folder, or looks as if it should."""
    with suppress(OSError, ValueError):  # too long for a name, or not one at all
        return text == "-" or bool(_FILE_NAME.fullmatch(text)) or Path(text).exists()
    return False


def _read_file(name: str, speakers: bool) -> list[Message]:
    with inputs.open_text(name) as file:
        messages = list(inputs.read_values(name, file, "auto", partial(parse_line, speakers, {})))
    if not messages:
        raise InputError(f"{name} holds no message")
    return messages


def _views(found: Preview) -> Iterator[View]:
    if not found.items and not found.passed_over:
        return
    learned = dict.fromkeys(atom.text for atom in found.items)
    yield (
        f"{quantity(len(learned), 'memory')} would be learned, {quantity(len(found.passed_over), 'message')} "
        "passed over; nothing was kept"
    )
    yield Entries(("kind", "how sure"), [_learned_entry(found, text) for text in learned], is_full=True)
    if found.passed_over:
        yield "\npassed over"
        yield Entries(("who",), [Entry((each.speaker,), each.text, each.reason) for each in found.passed_over])


def _learned_entry(found: Preview, text: str) -> Entry:
    """A memory, once for all the streams that would learn it."""
    atoms = [atom for atom in found.items if atom.text == text]
    is_doubtful = all(atom.id in found.doubtful for atom in atoms)
    streams = dict.fromkeys(f"{atom.kind} in {atom.scope}" for atom in atoms)
    sure = f"{'doubtful' if is_doubtful else 'sure'} {how_sure(max(atoms, key=_worth))}".rstrip()
    corrected = next((found.corrected[atom.id] for atom in atoms if atom.id in found.corrected), "")
    reasons = [f"by your correction of {shorten(corrected)!r}"] if corrected else []
    return Entry((_kind(atoms[0]), sure), text, ", ".join(streams), reasons)


def _worth(atom: Atom) -> float:
    return float(atom.metadata.get(WORTH, 0.0))


def _kind(atom: Atom) -> str:
    return atom.label or atom.kind
