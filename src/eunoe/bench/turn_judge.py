"""The engine's own judgement of turns: what kind of thing each holds, and how much it is worth keeping."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from eunoe.embed.encoder import Encoder
from eunoe.errors import EunoeError
from eunoe.form.kind_model import KEPT_KINDS, TURN_KINDS, Judgement, KindInput, KindModel, load_kind_model
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.message import Message
from eunoe.model.source import source_place

DROPPED_KINDS: Final = tuple(kind for kind in TURN_KINDS if kind not in KEPT_KINDS)
_BY_VALUE: Final = ("instruction", "change", "decision", "plan", "preference", "fact")
"""The kinds that are kept, the most valuable first: a turn that holds several things has the first of their kinds."""
_PAGE_SIZE: Final = 1000

TurnJudge = Callable[[Sequence[Message]], Sequence[Judgement | None]]
"""Judges each turn of a session, in order, beside the one before it; None where it cannot."""


def load_turn_judge(memory: Memory) -> TurnJudge | None:
    """What judges turns in a memory: the kind model of its encoder. None where there is none but forming itself."""
    encoder = memory.embedder
    model = load_kind_model(encoder.name) if isinstance(encoder, Encoder) else None
    return partial(_judge, model, encoder) if model and isinstance(encoder, Encoder) else None


def _judge(model: KindModel, encoder: Encoder, turns: Sequence[Message]) -> list[Judgement | None]:
    means = encoder.layer_means([turn.text for turn in turns])
    first = [KindInput(turns[0].text, turns[0].role, vector=means[0])] if turns else []
    rest = [
        KindInput(turn.text, turn.role, before.text, vector, vector_before)
        for (before, turn), (vector_before, vector) in zip(pairwise(turns), pairwise(means), strict=True)
    ]
    return model.judge([*first, *rest])


def find_kind(memory: Memory, judge: TurnJudge | None, user: str, turns: Sequence[Message]) -> str:
    """The kind of the last of these turns, which are all that a new user's conversation has."""
    judgement = judge(turns)[-1] if judge else None
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
