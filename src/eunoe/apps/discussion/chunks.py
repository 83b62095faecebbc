"""Chunks: how a discussion is cut, which chunks are to be made, and how they are made one after the other.

What is due is derived from the log, the memories and the leases. Bounds that were written down once never move: neither
other settings nor other messages change them. Only what is in no chunk yet is cut. Each chunk is made under a lease: by
one process, once, and so that a failure stays known.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import accumulate, groupby
from typing import Any, Final, Literal, NamedTuple

from eunoe.apps.discussion.authors import Author, AuthorSources, NothingError, choose_author, says_nothing
from eunoe.apps.discussion.creators import CreatorCall, find_creator
from eunoe.apps.discussion.model import (
    CHUNK_MEMORY,
    NOTHING,
    SETTINGS,
    Chunk,
    LogMessage,
    all_atoms,
    chunk_of,
    is_in_force,
    is_made,
    nothing_item,
    own_source,
)
from eunoe.apps.discussion.settings import AuthorSettings, ChunkSettings, DiscussionSettings
from eunoe.apps.discussion.texts import chunk_text
from eunoe.errors import ConflictError, EunoeError, InputError, StoreError
from eunoe.memory import Memory
from eunoe.model.arguments import utc_now
from eunoe.model.atom import AUTHOR, EXTRACTIVE, Atom
from eunoe.model.result import LeaseStatus
from eunoe.model.scope import Scope
from eunoe.model.turn import SILENT_ROLES
from eunoe.text.normalize import fingerprint, one_line

_TOKENS_PER_WORD: Final = 1.35
_CHARACTERS_PER_TOKEN: Final = 3.5
_MARGIN: Final = 1.10
"""Estimates are a little too high rather than too low."""
_LEAST_MESSAGES: Final = 3
"""A discussion with fewer has nothing to sum up."""
_TRIES_IN_PLACE: Final = 1
"""A chunk that failed more often is tried behind the others, so that no few of them hold up all that come later."""
_IMPORTED: Final = -1
"""Owns the messages that imported memories were made from."""


def _tokens(words: int, characters: int, factor: float) -> int:
    """An estimate of how many tokens so much text has for a language model."""
    return int(max(words * _TOKENS_PER_WORD, characters / _CHARACTERS_PER_TOKEN) * _MARGIN * factor)


def has_words(message: LogMessage) -> bool:
    """Whether creators read a message: not if it is the system's, or an image or a tool call without text."""
    return message.role.lower() not in SILENT_ROLES and bool(message.text.strip())


def cut(
    messages: Iterable[LogMessage], settings: ChunkSettings, factor: float = 1.0
) -> tuple[list[list[LogMessage]], list[LogMessage]]:
    """Cut messages into chunks from the oldest on; return the chunks, and what is left because it is below the sizes.

    A chunk ends with the message that reaches a size. A message that would make it larger than its tokens begins the
    next one; one that is larger by itself is a chunk of its own.
    """
    chunks: list[list[LogMessage]] = []
    chunk: list[LogMessage] = []
    words = characters = 0
    for message in messages:
        own = len(message.text.split()), len(message.text)
        if chunk and _tokens(words + own[0], characters + own[1], factor) > settings.tokens:
            chunks.append(chunk)
            chunk, words, characters = [], 0, 0
        chunk.append(message)
        words, characters = words + own[0], characters + own[1]
        if _tokens(words, characters, factor) >= settings.tokens or len(chunk) >= settings.messages:
            chunks.append(chunk)
            chunk, words, characters = [], 0, 0
    return chunks, chunk


def digest(messages: Iterable[LogMessage]) -> str:
    """A fingerprint of who said what."""
    return fingerprint(*(part for each in messages for part in (each.role, each.speaker, each.text))).hex()


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A chunk that was made, and the atoms it became."""

    chunk: Chunk
    atoms: tuple[Atom, ...]

    @property
    def recorded(self) -> datetime:
        return max(map(_recorded, self.atoms))


class Records(NamedTuple):
    """What the memories of one kind say about chunks: which were made, from what, and what no longer holds."""

    made: list[ChunkRecord]
    expired_by: Mapping[str, frozenset[str]]
    """By the id of a memory: the ids of those that stand in its place, and of those that stand in theirs."""
    leftovers: list[str]
    """Ids of atoms that hold although others were made in their place."""

    def revivable(self, record: ChunkRecord) -> list[str]:
        """Ids of what expired because of this chunk's memories alone, and holds again if they are made anew."""
        own = {atom.id for atom in record.atoms}
        return sorted(id for id, successors in self.expired_by.items() if successors <= own)


def read_records(memory: Memory, scope: Scope, kind: str) -> Records:
    """Read the atoms of a kind. One that has expired still says that its chunk was made, if another stands for it."""
    now = utc_now()
    atoms = [
        each
        for each in all_atoms(memory, scope, kind, NOTHING)
        if kind in (each.label, each.metadata.get("chunk", {}).get("kind"))
    ]
    by_id, standing = {atom.id: atom for atom in atoms}, dict[str, Atom]()
    expired_by: dict[str, frozenset[str]] = {}
    superseded: set[str] = set()

    def note(id: str, successors: Iterable[str]) -> None:
        """Note what stands in the place of a memory, and what stands in the place of that."""
        known = frozenset(successors).union(*(expired_by.get(each, ()) for each in successors))
        if known:
            expired_by[id] = expired_by.get(id, frozenset()) | known

    # What stands for another one comes after it.
    for atom in sorted(atoms, key=lambda each: (each.metadata.get("place", 0.0), _recorded(each)), reverse=True):
        successors = [id for id in atom.metadata.get("superseded_by", ()) if _is_older(standing.get(id), atom)]
        note(atom.id, successors)
        superseded.update([atom.id] * bool(successors))
        if is_made(atom, now) or atom.id in expired_by:
            standing[atom.id] = atom
            for id in atom.metadata.get("supersedes", ()):
                if _is_older(by_id.get(id), atom):
                    note(id, [atom.id])
                if id in expired_by:
                    superseded.add(id)
    # Of each chunk the atoms that were made last count.
    chunks, current, outdated = dict[str, Chunk](), dict[str, list[Atom]](), set[str]()
    for atom in sorted(standing.values(), key=_recorded, reverse=True):
        if chunk := chunk_of(atom):
            if chunks.setdefault(chunk.name, chunk) == chunk:
                current.setdefault(chunk.name, []).append(atom)
            else:
                outdated.add(atom.id)
    leftovers = [id for id, atom in standing.items() if is_in_force(atom, now) and id in outdated | superseded]
    return Records([ChunkRecord(chunks[name], tuple(group)) for name, group in current.items()], expired_by, leftovers)


def _is_older(atom: Atom | None, other: Atom) -> bool:
    """Whether an atom is there and was as it is when the other one was made."""
    return atom is not None and _recorded(atom) < _recorded(other)


def _recorded(atom: Atom) -> datetime:
    return atom.recorded or utc_now()


@dataclass(frozen=True, slots=True)
class ChunkWork:
    """A chunk that is to be made."""

    chunk: Chunk
    messages: tuple[LogMessage, ...]
    record: ChunkRecord | None = None
    """What was made from it before."""


@dataclass(slots=True)
class FormerChunk:
    """A chunk in whose place others stand. Its memories end when each of its messages is in one of theirs."""

    record: ChunkRecord
    start: int
    end: int
    uncovered: set[str] = field(default_factory=set)
    """Ids of its messages that are in no other memory yet."""


@dataclass(slots=True)
class ChunkPlan:
    """What is to be done for one kind of memory."""

    work: list[ChunkWork] = field(default_factory=list)
    empty: list[ChunkRecord] = field(default_factory=list)
    """Chunks without any message left."""
    former: list[FormerChunk] = field(default_factory=list)
    orphan_leases: list[str] = field(default_factory=list)
    waiting: int = 0
    """Messages that wait until there are enough for a chunk."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """How what is in no chunk yet is cut."""

    settings: ChunkSettings
    factor: float = 1.0
    lookback: int = 0
    force: bool = False
    is_on: bool = True
    """Whether new chunks are made at all; those that were made are kept up to date in any case."""
    edition: int = 0
    """That of new chunks."""
    least_edition: int = 0
    """Chunks of earlier editions are to be replaced."""


def plan_chunks(
    kind: str,
    sequence: Sequence[LogMessage],
    records: Records,
    leases: Sequence[LeaseStatus],
    cutting: Cutting,
    imported: Chunk | None = None,
) -> ChunkPlan:
    """Find what is to be made. `sequence` are all messages, retracted ones too, since bounds may name them.

    Messages up to the end of `imported` are in imported memories.
    """
    planner = _Planner(kind, sequence, cutting, imported)
    planner.take_records(records)
    planner.take_leases(leases)
    planner.extend()
    planner.review()
    planner.cut_rest()
    return planner.finish({lease.name: lease.attempts for lease in leases})


@dataclass(slots=True)
class _Span:
    """Where a chunk stands in the sequence."""

    chunk: Chunk
    start: int
    end: int
    record: ChunkRecord | None = None


class _Planner:
    """The steps of a plan, in their order."""

    def __init__(self, kind: str, sequence: Sequence[LogMessage], cutting: Cutting, imported: Chunk | None) -> None:
        self._kind = kind
        self._sequence = sequence
        self._cutting = cutting
        self._imported = imported
        self._plan = ChunkPlan()
        self._places = {message.id: place for place, message in enumerate(sequence)}
        self._is_read = [not message.is_retracted and has_words(message) for message in sequence]
        self._owners: list[int | None] = [None] * len(sequence)
        """By place: the number of the span that covers it."""
        self._spans: list[_Span] = []
        standing = [(place, message) for place, message in enumerate(sequence) if not message.is_retracted]
        self._turns = [place for place, message in standing if message.role.lower() not in SILENT_ROLES]
        self._limit = len(sequence)
        """The place from which on messages are left out, since they may still change."""
        if cutting.lookback > 0:
            self._limit = self._turns[-cutting.lookback] if cutting.lookback <= len(self._turns) else 0

    def take_records(self, records: Records) -> None:
        """Take in the chunks that were made, the latest first; of those that share messages one stands."""
        for record in sorted(records.made, key=lambda each: (each.chunk.edition, each.recorded), reverse=True):
            chunk = record.chunk
            bounds = [self._places[id] for id in (chunk.first, chunk.last) if id in self._places]
            if len(bounds) < 2:  # the message at a bound was forgotten: what is left of the chunk tells where it stood
                sources = (id for atom in record.atoms for id in own_source(atom))
                bounds += [self._places[id] for id in sources if id in self._places]
            if not bounds:
                self._plan.empty.append(record)
                continue
            span = _Span(chunk, min(bounds), max(bounds), record)
            if chunk.edition < self._cutting.least_edition or not self._add(span):
                self._plan.former.append(FormerChunk(record, span.start, span.end))

    def take_leases(self, leases: Sequence[LeaseStatus]) -> None:
        """Take the bounds of the chunks that somebody works on, or that failed; others are of no use any more."""
        for lease in leases:
            chunk, is_taken = Chunk(**lease.data), False
            if {chunk.first, chunk.last} <= self._places.keys() and chunk.edition >= self._cutting.least_edition:
                start, end = sorted((self._places[chunk.first], self._places[chunk.last]))
                owner = self._owners[self._places[chunk.first]]
                is_own = owner is not None and self._spans[owner].chunk.name == chunk.name
                is_taken = is_own or self._add(_Span(chunk, start, end))
            if not is_taken and not lease.is_held:
                self._plan.orphan_leases.append(lease.name)

    def _add(self, span: _Span) -> bool:
        """Take a chunk into the series, unless some of its messages are in a chunk that is there already."""
        if any(owner is not None for owner in self._owners[span.start : span.end + 1]):
            return False
        self._owners[span.start : span.end + 1] = [len(self._spans)] * (span.end + 1 - span.start)
        self._spans.append(span)
        return True

    def extend(self) -> None:
        """Let chunks whose last messages were retracted take in those that came in their place, behind the imported."""
        if self._imported and self._imported.last:
            first = min((span.start for span in self._spans), default=len(self._sequence))
            for place in range(self._places.get(self._imported.last, first - 1) + 1):
                if self._owners[place] is None:
                    self._owners[place] = _IMPORTED
        for number, span in sorted(enumerate(self._spans), key=lambda each: each[1].start):
            room, place = 0, span.end
            while place >= span.start and not self._is_read[place]:
                room += self._sequence[place].is_retracted
                place -= 1
            place = span.end + 1
            while room and place < self._limit and self._owners[place] is None:
                self._owners[place] = number
                span.end = place
                room -= self._is_read[place]
                place += 1

    def review(self) -> None:
        """See which chunks are to be made, made anew, or have nothing left."""
        for span in self._spans:
            places = [place for place in range(span.start, span.end + 1) if self._is_read[place]]
            messages, chunk = [self._sequence[place] for place in places], span.chunk
            found = digest(messages)
            if not messages and span.record:
                self._plan.empty.append(span.record)
            elif not messages:
                self._plan.orphan_leases.append(chunk.name)
            elif chunk.digest != found if span.record else self._cutting.is_on:
                # Bounds that are there: a first message that is retracted still names the chunk.
                first = chunk.first if chunk.first in self._places else messages[0].id
                is_last = self._places.get(chunk.last) == span.end and self._is_read[span.end]
                bounded = replace(chunk, first=first, last=chunk.last if is_last else messages[-1].id, digest=found)
                self._plan.work.append(ChunkWork(bounded, tuple(messages), span.record))

    def cut_rest(self) -> None:
        """Cut what is in no chunk: between chunks all of it, at the end what reaches the sizes. What is in a memory
        already is so again in any case."""
        last_owned = max((span.end for span in self._spans), default=-1)
        former_end = max((former.end for former in self._plan.former), default=-1)
        has_enough = len(self._turns) >= _LEAST_MESSAGES
        limit = max(self._limit if self._cutting.is_on else 0, former_end + 1)
        keys = list(accumulate(owner is not None for owner in self._owners))
        free = [place for place in range(limit) if self._owners[place] is None and self._is_read[place]]
        for _, group in groupby(free, key=lambda place: keys[place]):  # those without a chunk between them together
            run = list(group)
            parts, rest = cut((self._sequence[place] for place in run), self._cutting.settings, self._cutting.factor)
            due = [*parts, *([rest] if rest else [])]
            if run[-1] > last_owned and not self._cutting.force:
                waiting = [
                    part for part in due if (part is rest or not has_enough) and self._places[part[0].id] > former_end
                ]
                self._plan.waiting += sum(map(len, waiting))
                due = [part for part in due if part not in waiting]
            places = self._new_places([self._places[part[0].id] for part in due])
            for part, place in zip(due, places, strict=True):
                chunk = Chunk(self._kind, place, part[0].id, part[-1].id, digest(part), self._cutting.edition)
                self._plan.work.append(ChunkWork(chunk, tuple(part)))

    def _new_places(self, starts: Sequence[int]) -> list[float]:
        """Numbers by which new chunks stand where they belong: behind all others, or between their neighbours."""
        former = ((each.start, each.record.chunk.place) for each in self._plan.former)
        neighbours = sorted([*((span.start, span.chunk.place) for span in self._spans), *former])
        gaps = (bisect_right(neighbours, start, key=lambda each: each[0]) for start in starts)
        lowest = [self._imported.place] if self._imported else []
        places: list[float] = []
        for gap, group in groupby(gaps):
            count = len(list(group))
            if gap == len(neighbours):
                low = max([*lowest, *(place for _, place in neighbours)], default=0.0)
                high = low + count + 1
            else:
                high = neighbours[gap][1]
                low = neighbours[gap - 1][1] if gap else max(lowest, default=high - 1.0)
            places += [low + (high - low) * number / (count + 1) for number in range(1, count + 1)]
        return places

    def finish(self, tried: Mapping[str, int]) -> ChunkPlan:
        """The plan, with what is in no memory yet of the chunks in whose place others stand."""
        for former in self._plan.former:
            for place in range(former.start, former.end + 1):
                owner = self._owners[place]
                is_made = owner is not None and (owner == _IMPORTED or self._spans[owner].record is not None)
                if self._is_read[place] and not is_made:
                    former.uncovered.add(self._sequence[place].id)
        self._plan.work.sort(key=lambda work: (max(_TRIES_IN_PLACE, tried.get(work.chunk.name, 0)), work.chunk.place))
        return self._plan


Progress = Callable[[str, int, int], None]
"""Is told the kind of memory, how many chunks are done, and how many there are."""
ChunkOutcome = Literal["made", "nothing", "failed", "held", "paused", "moved"]
"""`nothing`: there was nothing to remember, which is kept. `held`: somebody else makes it. `paused`: it failed a moment
ago. `moved`: the chunk is not as it was planned any more."""
_MAX_PLANS: Final = 5
"""How often a plan is made anew in one run because another process was quicker."""
_MAX_FAILURES: Final = 3
"""After so many failures one after the other the author is taken to be out of order, and the rest waits."""
_MAX_ERROR_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class ChunkTrial:
    """What one chunk would become with other settings."""

    kind: str
    number: int
    chunks: int
    """So many there are with these settings."""
    text: str
    """Its words, as authors are shown them."""
    now: tuple[Atom, ...]
    """The memories that rest on its messages now."""
    made: tuple[Mapping[str, Any], ...]
    """What it would become, each as `Memory.remember` takes it; none if there is nothing to remember."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class ChunkUpdate:
    """A run over the chunks of one kind, and what it did so far."""

    memory: Memory
    scope: Scope
    kind: str
    settings: DiscussionSettings
    sources: AuthorSources
    force: bool = False
    progress: Progress | None = None
    rebuild: bool = False
    """Whether all chunks are to be cut and made anew."""
    made: int = 0
    redone: int = 0
    nothing: int = 0
    waiting: int = 0
    held: int = 0
    notes: list[str] = field(default_factory=list)

    def run(self, sequence: Sequence[LogMessage], imported: Chunk | None = None) -> None:
        """Make what is due. `sequence` are all messages, retracted ones too."""
        for _ in range(_MAX_PLANS):
            records = read_records(self.memory, self.scope, self.kind)
            leases = self.memory.leases.list(self.scope, f"{self.kind}:")
            # The latest edition, or for a rebuild the next, unless one was begun and not finished.
            made = {record.chunk.edition for record in records.made}
            edition = max([*made, *(lease.data.get("edition", 0) for lease in leases)], default=0)
            newest = [atom for record in records.made if record.chunk.edition == edition for atom in record.atoms]
            is_begun = made != {edition} and all(atom.metadata.get(SETTINGS) == self._digest() for atom in newest)
            edition += bool(self.rebuild and made and not is_begun)
            cutting = self._cutting(edition, edition if self.rebuild else 0, self.force)
            plan = plan_chunks(self.kind, sequence, records, leases, cutting, imported)
            # End what stands for messages that are gone. After a kill the next run finds again what is left to do.
            for record in plan.empty:
                self._expire(records.revivable(record), again=True)
                self._expire([atom.id for atom in record.atoms])
            self._expire(records.leftovers)
            self._end_former(plan, ())
            for name in plan.orphan_leases:
                self.memory.leases.drop(self.scope, name)
            if self._make_all(plan, records):
                break
        self.waiting = plan.waiting
        if left := len(plan.former):
            self.notes.append(f"{self.kind}: {left} chunks keep their old memories: rebuild again to go on")
        self._expire(read_records(self.memory, self.scope, self.kind).leftovers)

    def try_one(self, sequence: Sequence[LogMessage], number: int) -> ChunkTrial:
        """See what one chunk would become in a rebuild; nothing is written. Raise LlmError if its author fails."""
        records = read_records(self.memory, self.scope, self.kind)
        edition = 1 + max((record.chunk.edition for record in records.made), default=-1)
        work = plan_chunks(self.kind, sequence, records, [], self._cutting(edition, edition, force=True)).work
        if not 1 <= number <= len(work):
            raise InputError(f"{self.kind}: there is no chunk {number}: the chat has {len(work)} with these settings")
        chosen = work[number - 1]
        made = tuple(self._create(chosen, self._author()))
        ids, now = {message.id for message in chosen.messages}, utc_now()
        atoms = (atom for record in records.made for atom in record.atoms if is_in_force(atom, now))
        held = tuple(atom for atom in atoms if ids.intersection(own_source(atom)))
        return ChunkTrial(self.kind, number, len(work), chunk_text(chosen.messages), held, made, tuple(self.notes))

    def _cutting(self, edition: int, least_edition: int, force: bool) -> Cutting:
        is_on, factor = self.kind in self.settings.memory_kinds, self.settings.token_factor
        return Cutting(self._chunk_settings(), factor, self.settings.lookback, force, is_on, edition, least_edition)

    def _make_all(self, plan: ChunkPlan, records: Records) -> bool:
        """Make the chunks of a plan; False if it is no longer true."""
        author, failures = self._author() if plan.work else None, 0
        for number, work in enumerate(plan.work, 1):
            if work.record:
                self._expire(records.revivable(work.record), again=True)
            outcome = self._make(work, author)
            if outcome == "moved":
                return False
            if outcome in ("made", "nothing"):
                self._end_former(plan, work.messages)
            self.held += outcome == "held"
            self.nothing += outcome == "nothing"
            self.made += outcome == "made" and work.record is None
            self.redone += outcome == "made" and work.record is not None
            failures = failures + 1 if outcome == "failed" else 0 if outcome in ("made", "nothing") else failures
            if self.progress:
                self.progress(self.kind, number, len(plan.work))
            if failures >= _MAX_FAILURES and number < len(plan.work):
                self.notes.append(f"{self.kind}: {failures} chunks failed in a row, so {len(plan.work) - number} wait")
                break
        return True

    def _make(self, work: ChunkWork, author: Author | None) -> ChunkOutcome:
        """Make the memories of one chunk and write them, all or none."""
        leases, chunk = self.memory.leases, work.chunk
        lease = leases.acquire(self.scope, chunk.name, ignore_pause=self.force, data=asdict(chunk))
        if lease is None:
            others = [each for each in leases.list(self.scope, chunk.name) if each.name == chunk.name]
            if not others or others[0].data.get("last") != chunk.last:  # somebody works on one with other bounds
                return "moved"
            return "held" if others[0].is_held else "paused"
        try:
            # Somebody may have made the chunk since the plan: asked under the lease, so that the answer stays true.
            found = self.memory.get_many(self.scope, [memory_id(chunk, 1)], exact=True)
            now, known = utc_now(), {atom.id for atom in work.record.atoms} if work.record else set()
            made = [each for each in found if isinstance(each, Atom) and each.retired is None and is_made(each, now)]
            planned = work.record.chunk if work.record and made and made[0].id in known else None
            if made and chunk_of(made[0]) != planned:
                leases.release(self.scope, lease)
                return "moved"
            # What has no author where it could have one is made of the words of the chat, in no time.
            is_quick = author is None and find_creator(self.kind).prompts is not None
            with nullcontext() if is_quick else leases.renewing(self.scope, lease):
                items = self._create(work, author)
            written = items or [{**self._complete(nothing_item(), work, 1, author), "label": NOTHING}]
            self.memory.remember_many(self.scope, written, replace=True, again=True, lease=lease)
            return "made" if items else "nothing"
        except (ConflictError, StoreError) as error:
            leases.release(self.scope, lease)
            if isinstance(error, StoreError):
                raise
            return "held"
        except Exception as error:  # a creator of somebody else's making may raise anything
            # Of errors that are not ours only the kind, since they may repeat what was said.
            reason = str(error) if isinstance(error, EunoeError) else type(error).__name__
            leases.fail(self.scope, lease, one_line(reason, _MAX_ERROR_CHARACTERS))
            return "failed"
        except BaseException:
            leases.release(self.scope, lease)
            raise

    def _create(self, work: ChunkWork, author: Author | None) -> list[dict[str, Any]]:
        """What a chunk becomes; nothing is written."""
        call = CreatorCall(self.memory, self.scope, work.chunk, work.messages, author, self.notes)
        try:
            made = find_creator(self.kind).make(call) or ()
        except NothingError:
            made = ()
        items = (item for item in made if not says_nothing(str(item.get("text", ""))))
        return [self._complete(item, work, number, author) for number, item in enumerate(items, 1)]

    def _complete(self, item: Mapping[str, Any], work: ChunkWork, number: int, author: Author | None) -> dict[str, Any]:
        """A memory with its id, its label and its place; it rests on the whole chunk unless it says on what."""
        chunk, name = work.chunk, author.name if author else EXTRACTIVE
        where = {"chunk": asdict(chunk), "place": chunk.place, SETTINGS: self._digest()}
        metadata = {AUTHOR: name, **item.get("metadata", {}), **where}
        source: Sequence[str] = item.get("source") or [message.id for message in work.messages]
        identity = {"id": memory_id(chunk, number), "label": chunk.kind, "source": source, "metadata": metadata}
        return {**item, **identity}

    def _end_former(self, plan: ChunkPlan, messages: Sequence[LogMessage]) -> None:
        """End the memories in whose place others stand, now that there are memories of these messages."""
        for former in plan.former:
            former.uncovered.difference_update(message.id for message in messages)
        self._expire([atom.id for former in plan.former if not former.uncovered for atom in former.record.atoms])
        plan.former[:] = [former for former in plan.former if former.uncovered]

    def _digest(self) -> str:
        return fingerprint(repr(self._chunk_settings())).hex()

    def _author(self) -> Author | None:
        creator = find_creator(self.kind)
        if creator.prompts is None:
            return None
        return choose_author(self._chunk_settings().author, creator.prompts, self.sources, creator.schema)

    def _chunk_settings(self) -> ChunkSettings:
        """The settings of the kind; one of another package has the sizes of chunk memories."""
        settings = getattr(self.settings, self.kind, None)
        sizes = self.settings.chunk_memory
        return settings if isinstance(settings, ChunkSettings) else replace(sizes, author=AuthorSettings())

    def _expire(self, ids: Sequence[str], again: bool = False) -> None:
        """End memories, or let them hold again."""
        if ids:
            self.memory.expire(self.scope, ids, None if again else utc_now())


def memory_id(chunk: Chunk, number: int) -> str:
    """The id of one of the memories of a chunk. A chunk has one chunk memory, and of other kinds any number."""
    return chunk.name if chunk.kind == CHUNK_MEMORY else f"{chunk.name}:{number}"
