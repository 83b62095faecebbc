"""`eunoe review`: new memories that wait until somebody has looked at them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Annotated

import typer

from eunoe.cli.command import Call, Reply, command
from eunoe.cli.display.output import quantity
from eunoe.cli.display.views import View, item_entries
from eunoe.cli.options import ExactOption, FullOption, ScopeArgument, argument
from eunoe.model.atom import Item

UndoOption = Annotated[bool, typer.Option("--undo", help="Let them wait again.")]


@command("eunoe review list user=anna")
def list_(
    call: Call,
    keys: Annotated[str, argument("[SCOPE]", "Whose memory; all if none is named.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many on one page.")] = 50,
    after: Annotated[str, typer.Option("--after", metavar="NEXT", help="Read on from the page before.")] = "",
    full: FullOption = False,
    exact: ExactOption = False,
) -> Reply:
    """Show the memories that wait for review, the latest first."""
    page = call.open().recent(in_review=True, limit=limit, after=after, within=keys or None, exact=exact)
    more = [f"there is more: go on with --after {page.next}"] if page.next else []
    views = [view for scope, items in groupby(page.items, _scope_text) for view in _scope_views(scope, items, full)]
    return Reply(page, *views, notes=(*page.notes, *more), empty="nothing waits for review")


@command("eunoe review keep user=anna ID")
def keep(
    call: Call,
    scope: ScopeArgument,
    ids: Annotated[list[str], argument("ID...", "The ids of memories that wait.")],
    undo: UndoOption = False,
    exact: ExactOption = False,
) -> Reply:
    """Keep memories that wait for review.

    From then on they are recalled. `eunoe update` corrects one and keeps it, `eunoe forget` rejects it.
    """
    receipts = call.open().review(scope, ids, keep=not undo, exact=exact)
    changed = sum(receipt.outcome != "duplicate" for receipt in receipts)
    return Reply(receipts, f"{quantity(changed, 'memory')} {'in review again' if undo else 'kept'}")


def _scope_text(item: Item) -> str:
    return str(item.scope)


def _scope_views(scope: str, items: Iterable[Item], full: bool) -> Iterable[View]:
    yield f"{scope}:"
    yield item_entries(items, full=full)
