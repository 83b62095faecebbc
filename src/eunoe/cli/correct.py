"""`eunoe correct` and `eunoe corrections`: say by hand what is worth keeping, and see what was said."""

from __future__ import annotations

from typing import Annotated

import typer

from eunoe.cli.command import Call, Reply, command
from eunoe.cli.display.output import quantity
from eunoe.cli.display.views import Entries, Entry, when
from eunoe.cli.options import IdArgument, ScopeArgument, argument
from eunoe.model.arguments import VERDICTS
from eunoe.model.atom import Correction

_VERDICTS = f"{', '.join(VERDICTS[:-1])} or {VERDICTS[-1]}."


@command("eunoe correct user=anna ID drop")
def correct(
    call: Call,
    scope: ScopeArgument,
    id: IdArgument,
    verdict: Annotated[str, argument("VERDICT", _VERDICTS)],
    sentence: Annotated[str, typer.Option("--sentence", metavar="TEXT", help="The part of the message.")] = "",
) -> Reply:
    """Say that a memory or message is worth keeping, is not, or is of another kind.

    It acts at once. From then on sentences that are like it are read so, in all conversations of the same user.
    """
    made = call.open().corrections.add(scope, id, verdict, sentence=sentence)  # type: ignore[arg-type]
    changed = f"{quantity(len(made.changed), 'memory')} changed; it counts in {made.scope} from now on"
    return Reply(made, _entries([made]), changed)


@command("eunoe corrections agent=cook/user=anna")
def corrections(
    call: Call,
    scope: ScopeArgument,
    remove: Annotated[str, typer.Option("--remove", metavar="ID", help="Let this one count no more.")] = "",
) -> Reply:
    """Show the corrections of a scope, or remove one.

    Those of what a user said are kept in the stream of that user.
    """
    if remove:
        call.open().corrections.remove(scope, remove)
        return Reply({"removed": remove}, f"{remove} counts no more")
    found = call.open().corrections.list(scope)
    return Reply({"corrections": found}, _entries(found), empty="there are no corrections in this scope")


def _entries(found: list[Correction]) -> Entries:
    rows = [Entry((each.verdict, when(each.recorded)), " ".join(each.sentences), each.id) for each in found]
    return Entries(("verdict", "when"), rows)
