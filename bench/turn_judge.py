"""The engine's own judgement of turns: what kind of thing each holds, and how much it is worth keeping."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from eunoe.errors import EunoeError
from eunoe.form.turns import TurnReader, TurnReading
from eunoe.memory import Memory
from eunoe.model.arguments import KEPT_KINDS, TURN_KINDS
from eunoe.model.atom import Atom, source_place
from eunoe.model.message import Message
from eunoe.model.turn import Turn

DROPPED_KINDS: Final = tuple(kind for kind in TURN_KINDS if kind not in KEPT_KINDS)
_BY_VALUE: Final = ("instruction", "change", "decision", "plan", "preference", "fact")
"""The kinds that are kept, the most valuable first: a turn that holds several things has the first of their kinds."""
_PAGE_SIZE: Final = 1000


def read_session(memory: Memory, turns: Sequence[Message]) -> list[TurnReading]:
    """What is read of each turn of a session without an LLM."""
    return TurnReader(memory.embedder).read([_turn_of(turn) for turn in turns])


def _turn_of(message: Message) -> Turn:
    return Turn(message.id, message.text, message.role, message.speaker)


def find_kind(memory: Memory, user: str, turns: Sequence[Message]) -> str:
    """The kind of the last of these turns, which are all that a new user's conversation has."""
    judgement = read_session(memory, turns)[-1].judgement
    return judgement.kind if judgement else _find_kind_by_forming(memory, user, turns)


def _find_kind_by_forming(memory: Memory, user: str, turns: Sequence[Message]) -> str:
    """The kind that the labels of what is formed from a turn tell."""
    scope, last = {"user": user, "session": "1"}, turns[-1]
    memory.observe(scope, turns)
    form_session(memory, scope)
    labels = {atom.label for atom in formed_atoms(memory, user) if last.id in source_ids(atom)}
    kinds = {label if label in KEPT_KINDS else "fact" for label in labels}
    dropped = "request" if last.text.rstrip().endswith("?") else "nothing"
    return next((kind for kind in _BY_VALUE if kind in kinds), dropped)


def form_session(memory: Memory, scope: Mapping[str, str]) -> None:
    """Form what was said in a session. What fails would make wrong figures."""
    if failed := memory.form(scope).failed:
        raise EunoeError(failed[0])


def formed_atoms(memory: Memory, user: str) -> Iterator[Atom]:
    """All that was formed for a user and in their sessions, superseded or not."""
    after, is_read = "", False
    while after or not is_read:
        page = memory.recent(user=user, retired=True, limit=_PAGE_SIZE, after=after)
        yield from (item for item in page.items if isinstance(item, Atom))
        after, is_read = page.next, True


def source_ids(atom: Atom) -> set[str]:
    """The ids of the turns that an atom rests on, whichever session they were said in."""
    return {source_place(name, atom.scope)[1] for name in atom.source} if atom.scope else set()
