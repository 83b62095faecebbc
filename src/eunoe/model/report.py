"""What verbs report: receipts, pages, and how the store stands."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from datetime import datetime
from typing import Any, Final, Generic, Self, TypeVar

from eunoe.model.choices import Outcome
from eunoe.model.scope import Scope

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write did with one item.

    `stored`: it is durable now. `duplicate`: it was there already, as `id`. `superseded`: it is durable and closed
    the memory `closed`. `forgotten`: it was refused, because it had been forgotten on purpose. `conflict`: it was
    refused, because `id` is taken by other words, which stay as they are. `ignored`: the session is incognito, nothing
    was written.
    """

    outcome: Outcome
    id: str
    embedded: bool = True
    """False while its vector is still to be made: behind the reply, or once an embedder that failed works again."""
    closed: str = ""

    def __bool__(self) -> bool:
        """Whether the item is in the store now, put there by this call or by an earlier one."""
        return self.outcome not in ("forgotten", "conflict", "ignored")


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A copy of a store that was written and read once more, and what it holds."""

    path: str
    bytes: int
    scopes: int
    messages: int
    facts: int
    observations: int
    kept: str = ""
    """Where the store is kept that a restored one took the place of."""


_SHOWN_ITEMS: Final = 5


@dataclass(frozen=True, slots=True, repr=False)
class Page(Generic[T]):
    """A part of a longer list; pass `next` as `after` to read on. Empty `next` means there is no more."""

    items: tuple[T, ...]
    next: str = ""
    notes: tuple[str, ...] = ()
    """Hints for the caller, such as a near scope that holds something where this one holds nothing."""

    def __repr__(self) -> str:
        shown = [*map(repr, self.items[:_SHOWN_ITEMS]), *["..."] * (len(self.items) > _SHOWN_ITEMS)]
        notes = "".join(f", note: {note}" for note in self.notes)
        return f"Page({len(self.items)} items: [{', '.join(shown)}], next={self.next!r}{notes})"


@dataclass(frozen=True, slots=True)
class _Sum:
    """A report that adds up, field by field."""

    def __add__(self, other: Self) -> Self:
        pairs = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return type(self)(*(mine + theirs for mine, theirs in pairs))

    def __repr__(self) -> str:
        """Only the fields that say something."""
        said = ((each.name, getattr(self, each.name)) for each in fields(self))
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in said if value)})"


@dataclass(frozen=True, slots=True, repr=False)
class FormReport(_Sum):
    """What forming did."""

    messages: int = 0
    """Messages that were turned into memories."""
    stored: tuple[str, ...] = ()
    """Ids of new atoms, in all streams."""
    in_review: int = 0
    """Those of them that wait to be looked at."""
    merged: int = 0
    """Memories that were known already; they now rest on the new messages too."""
    superseded: int = 0
    """Older memories closed by new ones."""
    refused: int = 0
    """Proposals that were not kept: forgotten before, without a message that bears them out, or for no stream here."""
    consolidated: tuple[Scope, ...] = ()
    """Streams with a new summary."""
    failed: tuple[str, ...] = ()
    """Faults. What they hit is still due, or was formed without the LLM if they say so."""


@dataclass(frozen=True, slots=True, repr=False)
class GraphReport(_Sum):
    """What extracting entities and triples with a language model did."""

    passages: int = 0
    """Passages that were read."""
    known: int = 0
    """Of these, passages about which the LLM was not asked: the same words had been read, or metadata told."""
    entities: int = 0
    triples: int = 0
    due: int = 0
    """Passages that are still to be read."""
    failed: tuple[str, ...] = ()
    """Faults. What they hit is still due."""


@dataclass(frozen=True, slots=True, repr=False)
class ImportReport(_Sum):
    """What an import brought in."""

    stored: int = 0
    duplicates: int = 0
    forgotten: int = 0
    """Lines refused because they had been forgotten here."""
    tombstones: int = 0
    closed: int = 0
    """Memories that were still open here and had been superseded by the time of the export."""
    conflicts: int = 0
    """Lines refused because their id stands for other words here, which stay as they are."""

    @property
    def lines(self) -> int:
        return sum(astuple(self))


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """Which memories a clean-up archived, or would archive, and why."""

    archived: tuple[tuple[str, str], ...] = ()
    """Id and reason."""
    kept: int = 0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was removed, and whether a search of everything still finds a trace of it."""

    messages: tuple[str, ...] = ()
    atoms: tuple[str, ...] = ()
    vectors: int = 0
    removed: Mapping[Scope, tuple[str, ...]] = field(default_factory=dict)
    """Ids of what went, scope by scope; none where only a summary or settings went."""
    held_by: Mapping[Scope, tuple[str, ...]] = field(default_factory=dict)
    """Ids of what stays and still has the words, scope by scope: the messages that a memory came from and, if a search
    was asked for, whatever says the same. Forget them too, or somebody else's words stay."""
    unsearched: tuple[str, ...] = ()
    """Where the words may still be and nobody looked."""
    mentions: tuple[str, ...] = ()
    """Ids that stay but mention the forgotten person by name, in the scopes that were given."""
    mentions_by_scope: Mapping[Scope, tuple[str, ...]] = field(default_factory=dict)
    """The same, scope by scope. `forget` with `mentions=True` removes them."""
    summaries: tuple[Scope, ...] = ()
    """Scopes with a revision of the summary that mentions the person and was not made from what is gone."""
    verified: bool | None = None
    """Whether nothing is left in the scopes and in what the memories came from: no trace, nothing that still has the
    words, nobody who mentions the person, and no place out of reach. None if no search was asked for."""
    traces: tuple[str, ...] = ()
    """Places in the store where the words, or what was made of them, were still found."""
    revisions: int = 0
    """Revisions of summaries that had absorbed what was forgotten, and went with it."""
    rebuilt: tuple[Scope, ...] = ()
    """Scopes whose summary was written anew at once. Where a language model writes it, it follows in the background."""
    notes: tuple[str, ...] = ()
    """Which corrections went with what they correct. Where nothing was removed: near scopes that hold something."""

    @property
    def total(self) -> int:
        return len(self.messages) + len(self.atoms)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that something was removed from."""
        return tuple(self.removed)


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls of one LLM for one operation have taken together."""

    operation: str
    model: str
    calls: int = 0
    failures: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    """0 where no price is known."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of an LLM, without what was asked and what was answered."""

    operation: str
    model: str
    time: datetime
    """When it was asked."""
    scope: Scope | None = None
    """For whose memory it was asked, where that is known."""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """0 where no price is known."""
    error: str = ""
    """The kind of failure, with the status that a server gave; empty if it answered."""


@dataclass(frozen=True, slots=True)
class LlmReport:
    """Whether an LLM answers, and what one short answer took."""

    model: str
    problem: str = ""
    """What is wrong; empty if it answers."""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def __bool__(self) -> bool:
        """Whether it answers."""
        return not self.problem


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a store that is not as it was written. It repeats no words."""

    table: str
    """Empty if it is about a scope as a whole."""
    row: str
    """What tells the row apart, such as its id; empty if it is about a whole table."""
    scope: str
    """Empty where it is not known, or belongs to no scope."""
    problem: str

    def __str__(self) -> str:
        of = f"of {self.scope}" if self.scope else ""
        return f"{' '.join(filter(None, (self.table, self.row, of)))}: {self.problem}"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check of the whole store found."""

    rows: int
    """Rows that were read."""
    damage: tuple[Damage, ...] = ()

    def __bool__(self) -> bool:
        """Whether everything is as it was written."""
        return not self.damage


@dataclass(frozen=True, slots=True)
class Reembedding:
    """How far a store is on its way from a model of the package to the one that has replaced it."""

    old_model: str
    new_model: str
    done: int
    """Items that have a vector of the new model."""
    total: int
    """Items that have a vector at all."""

    def __str__(self) -> str:
        return f"{self.done:,} of {self.total:,} items ({self.new_model} has replaced {self.old_model})"


@dataclass(frozen=True, slots=True)
class Status:
    """How the store stands."""

    target: str
    schema: int
    scopes: int
    messages: int
    facts: int
    observations: int
    retired: int
    tombstones: int
    embedder: str
    unembedded: int
    """Items without any vector, which is still to be made."""
    bytes: int
    embedder_languages: tuple[str, ...] = ()
    """Languages that the embedder reads well; empty where nobody knows."""
    languages: Mapping[str, int] = field(default_factory=dict)
    """How many of the latest 100 memories are in each language, most first; `unclear` where their words do not tell."""
    cached_streams: int = 0
    cached_bytes: int = 0
    unindexed: int = 0
    """Huge texts of which only the beginning can be searched so far; the rest follows behind the reply."""
    embedder_error: str = ""
    reranker_error: str = ""
    """Why the last recall that asked for the reranker did without it."""
    vectors: Mapping[str, int] = field(default_factory=dict)
    """Vectors kept, by model."""
    reembedding: Reembedding | None = None
    """How far vectors are made anew, where the package has another model in the place of the store's."""
    llm: str = ""
    """The models that form and consolidate, if any."""
    due_messages: int = 0
    """Messages that were not yet turned into memories."""
    jobs: int = 0
    """Chunks of conversations that wait or are under way."""
    failing: int = 0
    """Jobs and summaries whose last attempt failed; they are tried again."""
    error: str = ""
    """What the last of these said."""
    revisions: int = 0
    in_review: int = 0
    """Atoms that wait to be looked at; `facts` and `observations` leave them out."""
    usage: tuple[Usage, ...] = ()
    """What language models have taken so far."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Faults of this process that cost a context a part, by kind."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """One line a field, for notebooks."""
        printer.text("\n".join(f"{each.name}: {getattr(self, each.name)}" for each in fields(self)))
