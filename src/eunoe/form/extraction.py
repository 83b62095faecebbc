"""Extraction of one chunk: by the LLM that each stream names, by rules where there is none or it fails."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from eunoe.errors import LlmError
from eunoe.form.chunk import Extraction, KnownAtom, Proposal, StreamsRead, can_all_read, shows_beside
from eunoe.form.claims import Likeness
from eunoe.form.extractive import extract_extractively
from eunoe.form.llm_extraction import Background, UnusableAnswer, extract_by_llm
from eunoe.form.statements import is_secret, is_vital
from eunoe.form.turns import KindModel, Sentence, TurnReader, TurnReading
from eunoe.llm.contract import AnswerError, CutAnswerError, DeclinedError, Llm, PromptTooLongError
from eunoe.llm.models import Models
from eunoe.llm.structured import UNUSABLE
from eunoe.model.arguments import ATOM_KINDS, KEPT_KINDS, utc_now
from eunoe.model.atom import EXTRACTIVE
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.model.stream import Target
from eunoe.model.turn import Turn
from eunoe.net.http import HttpError
from eunoe.recall.recipes import RECIPES
from eunoe.recall.request import Filter, RecallRequest
from eunoe.recall.search import Searcher
from eunoe.records.corrections import LikeSentences, Place, find_match
from eunoe.records.insertion import Floats
from eunoe.store.schema import Job, StreamState

_MIN_VITAL_LIKENESS: Final = 0.95
"""What matters for health is dropped only if it says nearly the same."""
_MAX_KNOWN = 40
_MAX_KNOWN_PER_STREAM = 10
"""Known atoms that an LLM is shown."""
_MAX_QUERY_CHARACTERS = 2000
_MAX_FOREIGN = 5
"""Memories of other streams that a proposal is compared with."""
_MAX_ATTEMPTS = 3
"""After so many, messages that an LLM only answers with nonsense are formed without it."""
_REFUSED_STATUSES = (400, 413, 415, 422, 501)
"""What servers answer to a question that they never take."""
_MAX_DECLINED = 2
"""After so many times, messages that an LLM does not want to read are formed without it."""
_COMPARED_TURNS = 4
"""Other turns that tell how close any two texts of a talk are by their vectors."""
_MIN_ROOM = 0.05
"""Keeps the measure finite where all vectors are nearly the same."""
_log = logging.getLogger("eunoe")


class Chunk(NamedTuple):
    """One job as it was read: what was said, who takes part, and the streams that it feeds."""

    stream: StreamState
    job: Job
    turns: list[Turn]
    is_group: bool
    """Whether several users took part in the conversation so far."""
    targets: list[Target]
    """The streams that this chunk feeds."""
    all_targets: list[Target]
    """The streams that the conversation feeds, those of users who are silent in this chunk among them."""
    reading: StreamsRead
    """How these streams and the conversation stood then."""
    earlier: Sequence[Turn] = ()
    """The turns before, which explain what these speak of."""
    summary: str = ""
    """What the conversation's own stream sums up of it so far."""
    corrections: Mapping[Scope, LikeSentences] = {}
    """What was corrected in the streams, if anything was."""

    def find_corrections(self, target: Target, turn: Turn) -> list[LikeSentences]:
        """What was corrected in the conversation, in the stream of who spoke, and in the one that learns."""
        own = (each.scope for each in self.all_targets if turn.user and each.user == turn.user)
        scopes = dict.fromkeys([self.stream.scope, *own, target.scope])
        return [self.corrections[scope] for scope in scopes if scope in self.corrections]

    def allows(self, proposal: Proposal) -> bool:
        """Whether a proposal may be kept: in a group, a user's memory rests on no other user's turns."""
        user = self.targets[proposal.target].user if self.is_group else ""
        users = {turn.user for turn in (*self.earlier, *self.turns) if turn.id in proposal.sources}
        return not user or users in ({user}, {user, ""})


class Extractor:
    """Makes the proposals of a chunk for all the streams that it feeds."""

    def __init__(self, searcher: Searcher, models: Models) -> None:
        self._searcher = searcher
        self._models = models

    def extract(self, chunk: Chunk) -> Extraction:
        """Extract for all streams, with one call for those that share an LLM."""
        if not chunk.turns or not chunk.targets:
            return Extraction([])
        groups: dict[int, list[int]] = defaultdict(list)
        models = [self._models.get(target.settings.extraction_model) for target in chunk.targets]
        for place, model in enumerate(models):
            groups[id(model)].append(place)
        return _join(self._extract_with(models[places[0]], chunk, places) for places in groups.values())

    def _extract_with(self, model: Llm | None, chunk: Chunk, places: Sequence[int]) -> Extraction:
        targets = [chunk.targets[place] for place in places]
        if model is None:
            extraction = _extract_without_llm(self._searcher, chunk, targets, chunk.turns, chunk.earlier)
        else:
            extraction = _LlmTask(model, chunk, targets, self._searcher).extract(chunk.turns, chunk.earlier)
        own = [replace(proposal, target=places[proposal.target]) for proposal in extraction.proposals]
        return extraction._replace(proposals=own)


@dataclass(frozen=True, slots=True)
class _LlmTask:
    """What one LLM extracts of a chunk: in one call, in smaller pieces if that is too much for it, and by rules what it
    cannot do."""

    model: Llm
    chunk: Chunk
    targets: Sequence[Target]
    searcher: Searcher

    def extract(self, turns: Sequence[Turn], earlier: Sequence[Turn]) -> Extraction:
        """Extract from some of the turns. Raise LlmError if the LLM may do better another time."""
        try:
            return self._ask(turns, earlier)
        except (CutAnswerError, PromptTooLongError) as error:
            if len(turns) < 2:
                return self._give_up(turns, error, "a single message is too much for it")
            middle = len(turns) // 2
            halves = [(turns[:middle], earlier), (turns[middle:], [*earlier, *turns[:middle]])]
            return _join(self.extract(*half) for half in halves)
        except DeclinedError as error:
            return self._give_up(turns, error, f"declined {_MAX_DECLINED} times")
        except LlmError as error:
            cause = error.__cause__
            is_refused = isinstance(cause, HttpError) and cause.status in _REFUSED_STATUSES
            if not is_refused and not isinstance(error, UnusableAnswer | AnswerError):
                raise
            lease, told = self.chunk.job.lease, str(error)
            # Not if a server that was away is to blame for the attempts before.
            if lease.attempts + 1 < _MAX_ATTEMPTS or UNUSABLE not in lease.error:
                raise UnusableAnswer(
                    told if UNUSABLE in told else f"{self.model.name} gave {UNUSABLE}: {told}"
                ) from error
            return self._give_up(turns, error, f"after {lease.attempts + 1} attempts")

    def _ask(self, turns: Sequence[Turn], earlier: Sequence[Turn]) -> Extraction:
        known, background = self._find_known(turns), self._read_background(turns, earlier)
        for left in reversed(range(_MAX_DECLINED)):
            try:
                found = extract_by_llm(self.model, self.targets, turns, known, utc_now(), background)
                break
            except DeclinedError:
                if not left:
                    raise
        own = [replace(proposal, author=proposal.author or self.model.name) for proposal in found.proposals]
        return found._replace(proposals=[*own, *self._replace_refused(turns, found)])

    def _give_up(self, turns: Sequence[Turn], error: LlmError, why: str) -> Extraction:
        failure = f"messages of {self.chunk.stream.scope}: {error}; {why}, formed without the model"
        _log.warning("%s", failure)
        return self._extract_without_llm(turns)._replace(failures=(failure,))

    def _replace_refused(self, turns: Sequence[Turn], extraction: Extraction) -> list[Proposal]:
        """What rules find in the turns that refused items cited, and that no other memory of the stream rests on. Where
        one of them cited none, it may be any turn."""
        cited: dict[int, list[frozenset[str]]] = defaultdict(list)
        for refusal in extraction.refusals:
            cited[refusal.target].append(refusal.cited)
        used = {(proposal.target, source) for proposal in extraction.proposals for source in proposal.sources}
        return [
            proposal
            for proposal in (self._extract_without_llm(turns).proposals if cited else ())
            if proposal.target in cited
            and used.isdisjoint((proposal.target, source) for source in proposal.sources)
            and not (all(own := cited[proposal.target]) and frozenset().union(*own).isdisjoint(proposal.sources))
        ]

    def _extract_without_llm(self, turns: Sequence[Turn]) -> Extraction:
        known = [*self.chunk.earlier, *self.chunk.turns]
        return _extract_without_llm(self.searcher, self.chunk, self.targets, turns, known[: known.index(turns[0])])

    def _find_known(self, turns: Sequence[Turn]) -> list[KnownAtom]:
        """What the streams know that may be shown beside the others."""
        query = "\n".join(turn.text for turn in turns)[-_MAX_QUERY_CHARACTERS:]
        places = {target.scope: place for place, target in enumerate(self.targets) if self._may_be_shown(target)}
        known: dict[int, list[KnownAtom]] = defaultdict(list)
        for hit in search_atoms(self.searcher, list(places), query, _MAX_KNOWN) if places else ():
            place = places[hit.scope]
            if len(known[place]) < _MAX_KNOWN_PER_STREAM:
                known[place].append(KnownAtom(place, hit.id, hit.text))
        return [atom for place in sorted(known) for atom in known[place]]

    def _may_be_shown(self, target: Target) -> bool:
        return shows_beside(target, self.targets, self.chunk.stream.scope, self.chunk.is_group)

    def _read_background(self, turns: Sequence[Turn], earlier: Sequence[Turn]) -> Background:
        scope = self.chunk.stream.scope
        own = next((target for target in self.chunk.all_targets if target.scope == scope), None)
        summary = self.chunk.summary if own is None or self._may_be_shown(own) else ""
        return Background(earlier, summary, self._measure_likeness(turns), self._find_foreign)

    def _find_foreign(self, place: int, text: str) -> list[str]:
        """Memories near a text, of streams that not all readers of this one can read."""
        scope, is_group, own = self.chunk.stream.scope, self.chunk.is_group, self.targets[place]
        foreign = [target.scope for target in self.chunk.all_targets if not can_all_read(target, own, scope, is_group)]
        return [hit.text for hit in search_atoms(self.searcher, foreign, text, _MAX_FOREIGN)] if foreign else []

    def _measure_likeness(self, turns: Sequence[Turn]) -> Likeness:
        """How close a claim is to turns by vectors, beyond its mean closeness to the others; 0 if there are none."""

        def measure(claim: str, sources: Sequence[Turn]) -> float:
            others = [turn for turn in turns if turn not in sources]
            if len(others) < _COMPARED_TURNS:
                return 0.0
            compared = others[:: len(others) // _COMPARED_TURNS][:_COMPARED_TURNS]
            texts = {turn.id: f"{turn.name}: {turn.text}"[:_MAX_QUERY_CHARACTERS] for turn in (*sources, *compared)}
            vectors = self.searcher.embedder.embed_now([claim, *texts.values()])
            own = vectors.mean(claim)
            if own is None:
                return 0.0
            cosines = {
                id: float(own @ vector) for id, text in texts.items() if (vector := vectors.mean(text)) is not None
            }
            if len(cosines) < len(texts):
                return 0.0
            ground = sum(cosines[turn.id] for turn in compared) / len(compared)
            return (max(cosines[turn.id] for turn in sources) - ground) / max(1.0 - ground, _MIN_ROOM)

        return measure


def _extract_without_llm(
    searcher: Searcher, chunk: Chunk, targets: Sequence[Target], turns: Sequence[Turn], earlier: Sequence[Turn]
) -> Extraction:
    reader = TurnReader(searcher.embedder.embedder)
    readings = reader.read(turns, earlier)
    if not chunk.corrections:
        found = extract_extractively(targets, readings)
        return Extraction([replace(proposal, author=EXTRACTIVE) for proposal in found], readings=tuple(readings))
    places = find_places(reader.model, readings)
    corrected = [correct_readings(readings, places, partial(chunk.find_corrections, target)) for target in targets]
    proposals = [
        replace(proposal, target=place, author=EXTRACTIVE)
        for place, target in enumerate(targets)
        for proposal in extract_extractively([target], corrected[place])
    ]
    return Extraction(proposals, readings=tuple(corrected[0]))


def find_places(model: KindModel | None, readings: Sequence[TurnReading]) -> dict[str, Place]:
    """Where the model puts the sentences of turns that it read."""
    means = {each.text: own.means[each.text] for own in readings if own.means for each in own.sentences}
    return dict(zip(means, model.place([*means.values()]), strict=True)) if model and means else {}


def correct_readings(
    readings: Sequence[TurnReading], places: dict[str, Place], find: Callable[[Turn], Sequence[LikeSentences]]
) -> list[TurnReading]:
    """Readings with what corrections say of their sentences; `find` gives those that count for a turn."""
    pairs = ((reading, find(reading.turn)) for reading in readings)
    return [
        own._replace(sentences=tuple(_correct(each, places.get(each.text), known) for each in own.sentences))
        if known
        else own
        for own, known in pairs
    ]


def _correct(sentence: Sentence, place: Place | None, known: Sequence[LikeSentences]) -> Sentence:
    match = find_match(known, sentence.text, place)
    if match is None:
        return sentence
    verdict, text = match.sentence.verdict, match.sentence.text
    if verdict == "drop":
        is_kept = match.likeness < _MIN_VITAL_LIKENESS and is_vital(sentence.text)
        return sentence if is_kept else sentence._replace(kind="nothing", worth=0.0, correction=text)
    if is_secret(sentence.text):
        return sentence
    kind = sentence.kind if sentence.kind in KEPT_KINDS else "fact"
    return sentence._replace(kind=kind if verdict == "keep" else verdict, worth=1.0, correction=text)


def _join(extractions: Iterable[Extraction]) -> Extraction:
    proposals, refused, failures, refusals, readings = zip(*extractions, strict=True)
    return Extraction(
        [*chain.from_iterable(proposals)],
        sum(refused),
        tuple(chain.from_iterable(failures)),
        tuple(chain.from_iterable(refusals)),
        tuple(chain.from_iterable(readings)),
    )


def search_atoms(
    searcher: Searcher, scopes: Sequence[Scope], query: str, limit: int, vector: Floats | None = None
) -> list[Hit]:
    """Find the atoms of these scopes that fit a text best."""
    only_atoms = Filter(kinds=frozenset(ATOM_KINDS))
    now = utc_now().timestamp()
    request = RecallRequest(query, only_atoms, RECIPES["default"], now, limit, tokens=None, vector=vector)
    return searcher.search(scopes, request).hits
