"""Extraction of one chunk: by the LLM that each stream names, by rules where there is none or it fails."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from eunoe.form.llm_extraction import UnusableAnswer, extract_by_llm
from eunoe.form.proposal import Extraction, KnownAtom, Proposal
from eunoe.form.reading import Reading
from eunoe.form.rule_extraction import extract_by_rules
from eunoe.llm.answers import UNUSABLE
from eunoe.llm.contract import Llm
from eunoe.llm.models import Models
from eunoe.model.atom import EXTRACTIVE
from eunoe.model.choices import ATOM_KINDS
from eunoe.model.hit import Hit
from eunoe.model.scope import Scope
from eunoe.model.stream import Target
from eunoe.model.time import utc_now
from eunoe.model.turn import Turn
from eunoe.recall.ranking_recipes import RECIPES
from eunoe.recall.request import Filter, RecallRequest
from eunoe.recall.search import Searcher
from eunoe.records.insertion import Floats
from eunoe.store.tables import Job, StreamState

_MAX_KNOWN = 40
_MAX_KNOWN_PER_STREAM = 10
"""Known atoms that an LLM is shown."""
_MAX_QUERY_CHARACTERS = 2000
_MAX_ATTEMPTS = 5
"""After so many, messages that an LLM only answers with nonsense are formed without it."""
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
    reading: Reading
    """How these streams and the conversation stood then."""

    def allows(self, proposal: Proposal) -> bool:
        """Whether a proposal may be kept: in a group, a user's memory rests on no other user's turns."""
        user = self.targets[proposal.target].user if self.is_group else ""
        users = {turn.user for turn in self.turns if turn.id in proposal.sources}
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
        extractions = [self._extract_with(models[places[0]], chunk, places) for places in groups.values()]
        proposals, refused, failures = zip(*extractions, strict=True)
        return Extraction([*chain.from_iterable(proposals)], sum(refused), tuple(chain.from_iterable(failures)))

    def _extract_with(self, model: Llm | None, chunk: Chunk, places: Sequence[int]) -> Extraction:
        targets = [chunk.targets[place] for place in places]
        extraction, author = None, EXTRACTIVE
        failures: list[str] = []
        if model is not None:
            try:
                known = self._find_known(targets, chunk.turns)
                extraction, author = extract_by_llm(model, targets, chunk.turns, known, utc_now()), model.name
            except UnusableAnswer as error:
                attempts = chunk.job.lease.attempts + 1
                # Not if a server that was away is to blame for the attempts before.
                if attempts < _MAX_ATTEMPTS or UNUSABLE not in chunk.job.lease.error:
                    raise
                outcome = f"after {attempts} attempts formed without the model"
                failures.append(f"messages of {chunk.stream.scope}: {error}; {outcome}")
                _log.warning("%s", failures[0])
        extraction = extraction or Extraction(extract_by_rules(targets, chunk.turns))
        own = [replace(proposal, author=author, target=places[proposal.target]) for proposal in extraction.proposals]
        return Extraction(own, extraction.refused, tuple(failures))

    def _find_known(self, targets: Sequence[Target], turns: Sequence[Turn]) -> list[KnownAtom]:
        query = "\n".join(turn.text for turn in turns)[-_MAX_QUERY_CHARACTERS:]
        places = {target.scope: place for place, target in enumerate(targets)}
        known: dict[int, list[KnownAtom]] = defaultdict(list)
        for hit in search_atoms(self._searcher, list(places), query, _MAX_KNOWN):
            place = places[hit.scope]
            if len(known[place]) < _MAX_KNOWN_PER_STREAM:
                known[place].append(KnownAtom(place, hit.id, hit.text))
        return [atom for place in sorted(known) for atom in known[place]]


def search_atoms(
    searcher: Searcher, scopes: Sequence[Scope], query: str, limit: int, vector: Floats | None = None
) -> list[Hit]:
    """Find the atoms of these scopes that fit a text best."""
    only_atoms = Filter(kinds=frozenset(ATOM_KINDS))
    now = utc_now().timestamp()
    request = RecallRequest(query, only_atoms, RECIPES["default"], now, limit, tokens=None, vector=vector)
    return searcher.search(scopes, request).hits
