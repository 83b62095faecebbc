"""What would be learned from messages, and what would not."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eunoe.model.atom import Atom
from eunoe.model.report import Page


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A message that nothing new would be learned from, and why."""

    id: str
    speaker: str
    """The name of who said it, or the role."""
    text: str
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Preview(Page[Atom]):
    """The atoms that would be learned from messages, and the messages that were passed over."""

    items: tuple[Atom, ...]
    doubtful: tuple[str, ...] = ()
    """Ids of those atoms that are less than sure; with `review` set to `uncertain` they would wait."""
    passed_over: tuple[PassedOver, ...] = ()
    corrected: Mapping[str, str] = field(default_factory=dict)
    """By id of an atom: the sentence whose correction by hand decided about it."""
