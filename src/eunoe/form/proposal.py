"""What an extractor reads and gives: known atoms, and proposals of new ones."""

from dataclasses import dataclass
from typing import NamedTuple

from eunoe.form.turn_reading import TurnReading
from eunoe.model.arguments import AtomKind


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
