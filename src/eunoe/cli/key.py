"""`eunoe key`: who may call a server of this store. It works whether one runs or not, and counts at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from eunoe.cli.command import Call, Reply, command
from eunoe.cli.display import Entries, Entry, Grid, when
from eunoe.cli.inputs import argument, repeatable_option
from eunoe.errors import InputError
from eunoe.model.arguments import RIGHTS

if TYPE_CHECKING:
    from eunoe.server.keys import Key, Keys
    from eunoe.server.state import ServerState

KeyArgument = Annotated[str, argument("ID", "The id of a key; `eunoe key list` has them.")]
_SHOWN_ONCE = "this is its only showing: keep it where passwords are kept"


@command('eunoe key create "Anna\'s laptop" --tenant acme --scope user=anna --rights read,write --expires 30d')
def create(
    call: Call,
    name: Annotated[str, argument("NAME", "What it is for.")],
    tenant: Annotated[str, typer.Option("--tenant", help="Whose memories; without one, all of the store.")] = "",
    scope: Annotated[list[str] | None, repeatable_option("--scope", "SCOPE", "Only this part of the tenant.")] = None,
    rights: Annotated[str, typer.Option("--rights", help="Some of read, write, forget, admin.")] = ",".join(RIGHTS),
    expires: Annotated[str, typer.Option("--expires", metavar="WHEN", help="30d, 12h, 45m, 30s, or a time.")] = "",
) -> Reply:
    """Make a key. It is shown this once."""
    from eunoe.server.keys import parse_end

    chosen = [right.strip() for right in rights.split(",")]
    with _open_keys(call, create=True) as keys:
        end = parse_end(expires, "--expires") if expires else None
        key, text = keys.create(name, tenant=tenant, scopes=[*(scope or ())], rights=chosen, expires=end)  # type: ignore[arg-type]
        _note(keys, "create_key", key)
    return _key_reply(call, key, text)


@command("eunoe key list")
def list_(call: Call) -> Reply:
    """List the keys of this store, also those that have ended."""
    with _open_keys(call) as keys:
        known = keys.list()
    entries = Entries(("id",), [_entry(key) for key in known])
    return Reply(known, entries, empty="no keys: `eunoe key create NAME` makes one")


@command("eunoe key rotate k3v5x2ab --overlap 1h")
def rotate(
    call: Call,
    id: KeyArgument,
    overlap: Annotated[str, typer.Option("--overlap", metavar="TIME", help="How long the old one still counts.")] = "",
) -> Reply:
    """Give a key a new secret. It is shown this once."""
    from eunoe.server.keys import parse_duration

    with _open_keys(call) as keys:
        key, text = keys.rotate(id, overlap=parse_duration(overlap, "--overlap") if overlap else timedelta())
        _note(keys, "rotate_key", key)
    return _key_reply(call, key, text)


@command("eunoe key revoke k3v5x2ab")
def revoke(call: Call, id: KeyArgument) -> Reply:
    """End a key for good, in all processes at once."""
    with _open_keys(call) as keys:
        key = keys.revoke(id)
        _note(keys, "revoke_key", key)
    return Reply({"revoked": key.id}, f"{key.id} ({key.name}) is revoked")


@command("eunoe key audit --limit 20")
def audit(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")] = 50,
) -> Reply:
    """Show who changed what through a server, newest first."""
    from eunoe.server.audit import Audit
    from eunoe.server.keys import OWNER

    with _open_state(call) as state:
        entries, _ = Audit(state).list(OWNER, limit=limit)
    rows = [  # cells of two lines: eight columns would leave no room for scopes
        (
            *(when(each.time), f"{each.key}\n{each.tenant}"),
            f"{each.action} {each.count}\n{each.outcome}, {each.via}",
            "\n".join(map(str, each.scopes)),
        )
        for each in entries
    ]
    grid = Grid(("time", "key", "action", "scope"), rows)
    return Reply(entries, grid, empty="nothing was changed through a server")


@contextmanager
def _open_state(call: Call, *, create: bool = False) -> Iterator[ServerState]:
    from eunoe.net.local_server import LocalFiles
    from eunoe.server.config import has_files
    from eunoe.server.state import ServerState

    target = call.open(create=create).target
    if not has_files(target):
        raise InputError("a store in memory has no keys: name a file with --store")
    state = ServerState(LocalFiles.beside(target).state)
    try:
        yield state
    finally:
        state.close()


@contextmanager
def _open_keys(call: Call, *, create: bool = False) -> Iterator[Keys]:
    from eunoe.server.keys import Keys

    with _open_state(call, create=create) as state:
        yield Keys(state)


def _note(keys: Keys, action: str, key: Key) -> None:
    from eunoe.server.audit import Audit, AuditEntry
    from eunoe.server.keys import OWNER

    Audit(keys.state).write(AuditEntry(action, OWNER.id, key.tenant, count=1, via="cli"))


def _key_reply(call: Call, key: Key, text: str) -> Reply:
    return Reply({"key": key, "token": text}, text, notes=[] if call.json else [_SHOWN_ONCE])


def _entry(key: Key) -> Entry:
    state = "valid"
    if key.revoked:
        state = "revoked"
    elif key.expires:
        state = f"{'until' if key.is_valid else 'ended'} {key.expires:%Y-%m-%d}"
    scopes = ", ".join(map(str, key.scopes)) or "all scopes"
    used = f"used {when(key.used)}" if key.used else "never used"
    notes = (key.tenant or "all tenants", scopes, ", ".join(key.rights), used)
    return Entry((f"{key.id}\n{state}",), key.name, " · ".join(notes))
