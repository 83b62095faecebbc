"""What is read of a conversation at a time, and what extractors make of it."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from eunoe.errors import EunoeError
from eunoe.form.turns import TurnReading
from eunoe.model.arguments import AtomKind
from eunoe.model.scope import Scope
from eunoe.model.stream import Target
from eunoe.records.revisions import load_revision, load_summary
from eunoe.store.contract import Reading


class KnownAtom(NamedTuple):
    """An atom that is in the store already and bears on the chunk at hand."""

    target: int
    """Place of its stream among the targets."""
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """An atom that an extractor offers to one stream."""

    target: int
    """Place of its stream among the targets."""
    kind: AtomKind
    text: str
    sources: tuple[str, ...]
    """Ids of the turns that bear it out; never empty."""
    label: str = ""
    key: str = ""
    """Its memory key, such as `anna/home`."""
    people: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    """Ids of known atoms that it makes untrue; only ever some of those that were shown."""
    worth: float | None = None
    """How likely it is worth keeping, where that was judged."""
    is_doubtful: bool = False
    """Whether what bears it out is just enough, or it was worth little to those who chose it."""
    correction: str = ""
    """The corrected sentence that decided about it, if one did."""
    author: str = ""
    """Who put it in these words: the LLM's name, or `extractive`. Set by the former, never by an answer."""


class Refusal(NamedTuple):
    """An item of an LLM's answer that no turn bears out."""

    target: int
    """Place of its stream among the targets."""
    cited: frozenset[str]
    """Ids of the turns it cited."""


class Extraction(NamedTuple):
    """What extractors made of a chunk."""

    proposals: list[Proposal]
    refused: int = 0
    """Items of an LLM's answer that cannot be used."""
    failures: tuple[str, ...] = ()
    """What went wrong and was made up for."""
    refusals: tuple[Refusal, ...] = ()
    """Those of the refused items that were in order but not borne out: others take their place."""
    readings: tuple[TurnReading, ...] = ()
    """What was read of the turns without an LLM."""


class StreamsRead(NamedTuple):
    """How streams stood when their records and summaries were read."""

    states: Mapping[Scope, tuple[int, int]]
    """The version and the current revision of each stream; zeros for one that was not there."""

    @classmethod
    def of(cls, store: Reading, scopes: Iterable[Scope]) -> Self:
        """Note how these streams stand, in the snapshot in which they are read."""
        streams = {scope: store.stream(scope) for scope in scopes}
        return cls({
            scope: (stream.version, load_summary(store, stream).revision) if stream else (0, 0)
            for scope, stream in streams.items()
        })  # fmt: skip

    def is_forgotten(self, store: Reading) -> bool:
        """Whether anything that these streams held then, a summary among it, was forgotten since."""
        for scope, (version, revision) in self.states.items():
            stream = store.stream(scope)
            if stream is None:
                if version:
                    return True
            elif store.removed(stream.id, version) or (revision and not load_revision(store, stream, revision)):
                return True
        return False


def shows_beside(shown: Target, others: Sequence[Target], conversation: Scope, is_group: bool) -> bool:
    """Return whether what a stream holds may stand beside others in one prompt: everybody who can read any of these
    can read it too."""
    return all(can_all_read(shown, other, conversation, is_group) for other in others)


def can_all_read(stream: Target, other: Target, conversation: Scope, is_group: bool) -> bool:
    """Return whether everybody who can read one stream can read another, both fed by the same conversation."""
    circles = [_circle(each, conversation, is_group) for each in (stream, other)]
    return circles[0] == circles[1] or circles[0][0] > circles[1][0]


def _circle(target: Target, conversation: Scope, is_group: bool) -> tuple[int, str]:
    """How wide the circle of its readers is, and whose it is: one user, all who take part, or everybody.

    A conversation that belongs to no user may be joined by another one at any time.
    """
    is_conversation = target.scope == conversation or target.settings.owner[-1] in ("session", "thread")
    user = target.user or target.scope.pairs.get("user", "")
    if user and not (is_conversation and not target.user and is_group):
        return 0, user
    return (1, "") if is_conversation else (2, "")


_log = logging.getLogger("eunoe")


def describe_failure(what: str, error: Exception) -> str:
    """Describe a failure in one line. Of one that nobody foresaw only the type is told, since its text may repeat what
    was said; the log has the rest."""
    if isinstance(error, EunoeError):
        return f"{what}: {error}"
    _log.error("forming failed: %s", what, exc_info=error)
    return f"{what}: {type(error).__name__}"
