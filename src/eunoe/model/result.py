"""What verbs give back: receipts, reports and pages, hits, contexts, parts of the entity graph, previews and leases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from eunoe.errors import InputError
from eunoe.model.arguments import Kind, Outcome, shorten, show
from eunoe.model.atom import Atom, Item, Record
from eunoe.model.message import Message
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


class Reason(NamedTuple):
    """One signal that spoke for a hit, and its share of the score."""

    name: str
    share: float
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.share:.2f}" + (f" ({self.detail})" if self.detail else "")


@dataclass(eq=False, repr=False)
class Hit:
    """A memory that was recalled, its score from 0 to 1, and why.

    Its item and its reasons are made when somebody looks at them: most callers read only the text.
    """

    record: Record
    scope: Scope
    score: float
    explain: Callable[[], tuple[Reason, ...]]

    @cached_property
    def item(self) -> Item:
        """The message or atom."""
        return self.record.item(self.scope)

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """What spoke for it, the most important first."""
        return self.explain()

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def kind(self) -> Kind:
        return self.record.kind

    @property
    def text(self) -> str:
        return self.record.text

    @property
    def time(self) -> datetime | None:
        return self.record.time

    @property
    def source(self) -> tuple[str, ...]:
        """Ids of the messages it rests on: its own for a message."""
        return (self.id,) if self.kind == Message.kind else self.record.sources

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hit):
            return False
        return (self.item, self.score, self.reasons) == (other.item, other.score, other.reasons)

    def __hash__(self) -> int:
        return hash((self.id, self.score))

    def __repr__(self) -> str:
        return f"Hit({self.score:.2f}, {self.kind}, {shorten(self.text)!r})"


class Hits(list[Hit]):
    """Hits, best first, and what there is to say about the search."""

    def __init__(self, hits: Iterable[Hit] = (), notes: tuple[str, ...] = ()) -> None:
        super().__init__(hits)
        self.notes = notes
        """Hints for the caller, such as a near scope that holds something where this one holds nothing."""

    def __repr__(self) -> str:
        return super().__repr__() + "".join(f"\nnote: {note}" for note in self.notes)

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        from html import escape

        head = "".join(f"<th>{name}</th>" for name in ("score", "kind", "text", "time", "scope", "why"))
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(hit))}</tr>" for hit in self)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def _cells(hit: Hit) -> tuple[str, ...]:
    time = f"{hit.time:%Y-%m-%d %H:%M}" if hit.time else ""
    return f"{hit.score:.2f}", hit.kind, hit.text, time, hit.scope.text, ", ".join(map(str, hit.reasons))


@dataclass(frozen=True, slots=True)
class Context:
    """Memory for one reply: first what always stands there, then what was recalled for this message."""

    text: str
    """Ready to be put into a prompt; if it is empty, `notes` or `faults` say why."""
    tokens: int
    """Its length, never more than the budget."""
    static: str = ""
    """The part that stays the same from turn to turn: `text` begins with it, so that prompt caches hit.

    As JSON, which cannot be left open, it is an object of its own, less `other_memories` and `retrieved_memories`.
    """
    messages: tuple[dict[str, Any], ...] = ()
    """The same as chat messages, if the format is `messages`."""
    hits: tuple[Hit, ...] = ()
    """What was recalled for this message and found room."""
    query: str = ""
    """What was looked up; empty if nothing was."""
    faults: tuple[str, ...] = ()
    """Parts that could not be had; the rest is there."""
    notes: tuple[str, ...] = ()
    """Hints for the caller: why the text is empty, or what an embedder or reranker could not do."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Context({self.tokens} tokens, {len(self.hits)} hits, query={self.query!r})"


@dataclass(frozen=True, slots=True)
class Entity:
    """A name, and how much there is of it."""

    key: str
    """The form in which names are compared."""
    name: str
    """As it is written in one of its passages."""
    passages: int
    """How many passages have it."""
    weight: float
    """How strongly it is tied to the name asked about, through others if need be; without one, to all others."""
    distance: int = 0
    """Steps from the name asked about."""


@dataclass(frozen=True, slots=True)
class Link:
    """Two names, by their keys, that passages share. Each passage counts 1, one that is about either of them more."""

    a: str
    b: str
    weight: float


@dataclass(frozen=True, slots=True)
class Relation:
    """What passages say of two names, by their keys: a language model, or metadata, gave it."""

    subject: str
    relation: str
    object: str
    passages: int
    """How many passages say it."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A passage that has the name asked about."""

    id: str
    kind: str
    text: str
    about: bool
    """Whether the name is what the passage is about."""
    keys: tuple[str, ...] = ()
    """The keys of the names in it, as far as they are shown."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A part of the graph of one scope."""

    entity: str = ""
    """The key of the name asked about; empty if none was."""
    entities: tuple[Entity, ...] = ()
    """The nearest first, the strongest tie first; the one asked about before all."""
    links: tuple[Link, ...] = ()
    passages: tuple[Mention, ...] = ()
    relations: tuple[Relation, ...] = ()
    """Between the entities; those that most passages say first."""


@dataclass(frozen=True, slots=True)
class GraphSize:
    """How much there is in the graph of one scope."""

    passages: int = 0
    entities: int = 0
    mentions: int = 0
    """Pairs of a passage and an entity in it."""
    triples: int = 0
    """What language models, or metadata, gave; each once, however many passages say it."""


class Triple(NamedTuple):
    """One statement of a passage: who, what, whom."""

    subject: str
    relation: str
    object: str


class PassageGraph(NamedTuple):
    """The entities and triples of one passage, as a language model or metadata gave them.

    >>> PassageGraph.of(PassageGraph(("Anna",), (Triple("Anna", "lives in", "Rome"),)).json()).triples[0].object
    'Rome'
    """

    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()

    @classmethod
    def of(cls, data: str) -> PassageGraph:
        entities, triples = json.loads(data)
        return cls(tuple(entities), tuple(map(Triple._make, triples)))

    def json(self) -> str:
        return json.dumps(self, ensure_ascii=False)


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


@dataclass(frozen=True, slots=True)
class Lease:
    """What a worker holds. Whoever has it may write what the work gave."""

    name: str
    owner: str
    """Random; it tells this lease from all others of the same name."""
    data: Mapping[str, Any] = field(default_factory=dict)
    attempts: int = 0
    """How often the work has failed."""
    seconds: float = 0.0
    """How long it lasts without being renewed."""


@dataclass(frozen=True, slots=True)
class LeaseStatus:
    """How a piece of work stands."""

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)
    is_held: bool = False
    until: datetime | None = None
    """Until when it is held."""
    attempts: int = 0
    retry: datetime | None = None
    """Not to be tried again before this moment."""
    error: str = ""
    """How the last attempt failed."""


def check_lease(lease: object) -> Lease:
    if not isinstance(lease, Lease):
        raise InputError(f"lease is {show(lease)}: give one that memory.leases.acquire returned")
    return lease


def check_optional_lease(lease: object) -> Lease | None:
    return None if lease is None else check_lease(lease)
