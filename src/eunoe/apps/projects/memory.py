"""Project memory: documents of a project, put in, asked for and taken out, in one process or in many."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, get_args
from uuid import UUID

import eunoe
from eunoe.apps.projects.documents import Document, matching_texts, parse_document, part_of
from eunoe.apps.projects.settings import ProjectSettings, is_server, offer_import
from eunoe.errors import ConflictError, InputError, ModelMismatchError, NotFoundError
from eunoe.memory import Memory, iterate
from eunoe.model.arguments import (
    MAX_NAME_CHARACTERS,
    RecipeName,
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_text,
)
from eunoe.model.atom import Atom, Item, Record
from eunoe.model.result import Hit, Receipt
from eunoe.model.scope import Scope
from eunoe.text.analyzer import folded_words
from eunoe.text.languages import ENGLISH, FRAME_WORDS, stop_words
from eunoe.text.normalize import load_groups

SCORE: Final = 0.5
"""Of each document that such a question is answered with."""

_WORDS: Final = load_groups("overview_words")
_SUBJECTS, _ASPECTS = _WORDS["subject"], _WORDS["aspect"]
_KNOWN_WORDS: Final = _SUBJECTS | _ASPECTS | _WORDS["other"] | FRAME_WORDS | stop_words(ENGLISH)
_MAX_WORDS: Final = 40
"""A longer question is about something."""


def asks_for_overview(question: str) -> bool:
    """Say whether a question is about a project as a whole, in English.

    >>> asks_for_overview("What has been done in this project? Completed work and summaries.")
    True
    >>> asks_for_overview("What is the status of the login?")
    False
    """
    chunks = question.split()[:_MAX_WORDS]
    words = {word for chunk in chunks for word in folded_words(chunk)}
    if len(chunks) == _MAX_WORDS or not words <= _KNOWN_WORDS:
        return False
    aspects = len(words & _ASPECTS)
    return aspects > 1 or (aspects == 1 and not words.isdisjoint(_SUBJECTS))


class RelevanceThreshold(NamedTuple):
    """The lowest scores, from 0 to 1, of the best document and of its followers.

    >>> threshold = RelevanceThreshold(best=0.5, follower=0.2)
    >>> threshold.count_passing([0.6, 0.3, 0.1]), threshold.count_passing([0.4, 0.3])
    (2, 0)
    """

    best: float
    follower: float

    def count_passing(self, scores: Sequence[float]) -> int:
        """How many of these, best first, bear on the question."""
        if not scores or scores[0] < self.best:
            return 0
        return 1 + sum(score >= self.follower for score in scores[1:])


THRESHOLDS: Final[Mapping[str, RelevanceThreshold]] = {"documents": RelevanceThreshold(best=0.5, follower=0.03)}
"""By recipe."""


def threshold_of(recipe: str) -> RelevanceThreshold:
    """The threshold of a recipe; one that was not measured lets everything pass."""
    return THRESHOLDS.get(recipe, RelevanceThreshold(0.0, 0.0))


DEFAULT_COUNT: Final = 5
DEFAULT_RECIPE: Final[RecipeName] = "documents"
"""It ranks documents best; docs/decisions/0043-project-ranking.md has the figures."""

_PAGE_FACTS: Final = 2_000
_REFUSALS: Final = {"forgotten": "was forgotten on purpose", "conflict": "stands for other words"}
_log = logging.getLogger(__name__)

ProjectName = str | int | UUID
_Found = tuple[float, Item | Record]
"""The score of a document, and what was found of it."""


class ProjectMemory:
    """Documents of projects, each project for itself.

    >>> with ProjectMemory.open(":memory:") as memory:
    ...     ids = memory.index("shop", ["The login broke because the clock of the server was wrong."])
    ...     results = memory.retrieve("shop", ["Why did the login break?", "Who won the football match?"])
    ...     [result["ids"] == ids for result in results], results[1]["docs"]
    ([True, False], [])
    """

    def __init__(self, memory: Memory, *, recipe: RecipeName = DEFAULT_RECIPE, threshold: float | None = None) -> None:
        self.memory = memory
        self.recipe = check_choice(recipe, "recipe", get_args(RecipeName))
        self.threshold = None if threshold is None else check_number(threshold, "threshold", 0.0, 1.0)

    @classmethod
    def open(
        cls,
        save_dir: str | os.PathLike[str] | None = None,
        *,
        llm: Any = None,
        embedder: Any = None,
        settings: ProjectSettings | None = None,
        recipe: RecipeName = DEFAULT_RECIPE,
        threshold: float | None = None,
    ) -> ProjectMemory:
        """Open the memory of all projects in a folder. A store with vectors of another model is opened with its own.

        Args:
            save_dir: a folder, else the one that MEMORY_SAVE_DIR names. A `.db` file, a URL or ":memory:" is the store
                itself; of a server (http://, https://) it is the server's, with the key that EUNOE_KEY holds.
            llm, embedder: as `eunoe.open` takes them, else what the settings say. A server uses its own.
            settings: instead of those in the environment.
            threshold: the lowest score of every document; what was measured (see `relevance`) if not given.
        """
        check_choice(recipe, "recipe", get_args(RecipeName))
        if threshold is not None:
            check_number(threshold, "threshold", 0.0, 1.0)
        settings = settings or ProjectSettings.from_environment(save_dir=os.fspath(save_dir) if save_dir else None)
        return cls(open_memory(settings, llm, embedder), recipe=recipe, threshold=threshold)

    def index(self, project: ProjectName, docs: Sequence[str | Mapping[str, Any]]) -> list[str]:
        """Keep documents, all of them or, on an error, none; return their ids in the order given.

        A document is a text, or a mapping with "text" and perhaps "id", "title", "ticket", "label", "time" and
        "metadata". One without an id or a ticket of its own is known by its words: given again it has the same id.
        """
        receipts = self.keep(project, docs)
        refused = [receipt for receipt in receipts if not receipt]
        if refused:
            reasons = ", ".join(
                f"{receipt.id} {_REFUSALS.get(receipt.outcome, receipt.outcome)}" for receipt in refused
            )
            raise ConflictError(
                f"{len(refused)} of {len(receipts)} documents were refused, the others are kept: {reasons}"
            )
        return [receipt.id for receipt in receipts]

    def keep(self, project: ProjectName, docs: Sequence[str | Mapping[str, Any]]) -> list[Receipt]:
        """Do the same as `index`, but return a receipt for each document instead of raising."""
        scope = Scope(project=project)
        documents = _parse_documents(docs)
        self._check_ids(scope, documents)
        items = [document.items for document in documents]
        receipts = self.memory.remember_many(scope, [item for parts in items for item in parts])
        self._unarchive(scope, [receipt.id for receipt in receipts if receipt.outcome == "duplicate"])
        remaining = iter(receipts)
        by_document = [[next(remaining) for _ in parts] for parts in items]
        return [next((receipt for receipt in parts if not receipt), parts[0]) for parts in by_document]

    def retrieve(
        self, project: ProjectName, queries: Sequence[str], num_to_retrieve: int | None = DEFAULT_COUNT
    ) -> list[dict[str, Any]]:
        """Return the documents that bear on each question, best first, with their scores (0 to 1) and ids.

        A question on something else gives none, and so does an empty one. A question about the project as a whole,
        such as "What has been done in this project?", gives the documents that were indexed last too.
        """
        scope = Scope(project=project)
        count = check_count(DEFAULT_COUNT if num_to_retrieve is None else num_to_retrieve, "num_to_retrieve")
        return [self._answer(scope, query, count) for query in _check_list(queries, "queries", str)]

    def delete(self, project: ProjectName, docs_or_ids: Sequence[str], *, missing_ok: bool = False) -> list[str]:
        """Remove documents by id, or by their exact words (then each that has them); return the ids removed.

        If one of them is not known, NotFoundError names it and nothing is removed, unless `missing_ok` lets it pass. A
        document may be indexed again.
        """
        scope = Scope(project=project)
        names = list(dict.fromkeys(_check_list(docs_or_ids, "docs_or_ids", str)))
        check_flag(missing_ok, "missing_ok")
        while documents := self._find_documents(scope, names, missing_ok):
            try:
                self.memory.forget(scope, [id for part_ids in documents for id in part_ids], may_return=True)
                break
            except NotFoundError:  # somebody else was quicker with one of them
                if not missing_ok:
                    raise
        return [part_ids[0] for part_ids in documents]

    def remove_project(self, project: ProjectName) -> int:
        """Remove all memory of a project; return how many documents there were."""
        scope = Scope(project=project)
        count = sum(part_of(fact).number == 1 for fact in self._all_facts(scope))
        self.memory.forget(scope, everything=True, may_return=True)
        return count

    def projects(self) -> list[str]:
        """Return the names of the projects that have memory."""
        scopes = [scope for scope in self.memory.scopes() if list(scope) == ["project"]]
        return [scope["project"] for scope in scopes if self.memory.list(scope, kinds=["fact"], limit=1).items]

    def ticket_documents(self, project: ProjectName, ticket: str) -> list[str]:
        """Return the ids of the documents that name this ticket as theirs."""
        check_text(ticket, "ticket")
        facts = self._all_facts(Scope(project=project))
        return list(dict.fromkeys(part_of(fact).document for fact in facts if fact.metadata.get("ticket") == ticket))

    def close(self) -> None:
        self.memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_ids(self, scope: Scope, documents: Sequence[Document]) -> None:
        """Refuse other words under an id that is taken, before anything is written."""
        texts: dict[str, str] = {}
        for document in documents:
            if not document.has_own_id:
                continue
            if document.id not in texts:
                texts[document.id] = self._text_of(scope, document.id) or document.text
            later_ids = [item["id"] for item in document.items[1:]]
            if texts[document.id] != document.text or any(self._part_ids(scope, id) for id in later_ids):
                raise ConflictError(
                    f"{document.id!r} stands for other words: delete it first, or give another id; nothing was stored"
                )

    def _unarchive(self, scope: Scope, ids: Iterable[str]) -> None:
        for id in dict.fromkeys(ids):
            with suppress(NotFoundError):  # somebody has deleted it since
                item = self.memory.get(scope, id)
                if isinstance(item, Atom) and item.retired and not item.superseded_by:
                    self.memory.streams.unarchive(scope, id)

    def _answer(self, scope: Scope, query: str, count: int) -> dict[str, Any]:
        found = self._relevant_documents(scope, query, count) if query.strip() else {}
        if asks_for_overview(query) and self._needed.best <= SCORE:
            found = self._overview(scope, found, count)
        texts = {
            id: self._text_of(scope, id) if part_of(item).parts > 1 else item.text for id, (_, item) in found.items()
        }
        ids = [id for id, text in texts.items() if text is not None]
        scores = [found[id][0] for id in ids]
        return {"question": query, "docs": [texts[id] for id in ids], "doc_scores": scores, "ids": ids}

    @property
    def _needed(self) -> RelevanceThreshold:
        given = self.threshold
        return threshold_of(self.recipe) if given is None else RelevanceThreshold(given, given)

    def _relevant_documents(self, scope: Scope, query: str, count: int) -> dict[str, _Found]:
        """The documents that bear on the question, with their scores and what was found of them."""
        hits = self._best_hits(scope, query, count)
        passing = self._needed.count_passing([hit.score for hit in hits.values()])
        return {id: (hit.score, hit.record) for id, hit in islice(hits.items(), min(passing, count))}

    def _overview(self, scope: Scope, found: dict[str, _Found], count: int) -> dict[str, _Found]:
        """What bears on the words of an overview question, as far as half of the room, and what was indexed last."""
        sure = [(id, each) for id, each in found.items() if each[0] >= SCORE][: count // 2]
        latest = ((id, (SCORE, item)) for id, item in self._latest_documents(scope, count) if id not in dict(sure))
        return dict(islice(chain(sure, latest), count))

    def _latest_documents(self, scope: Scope, page_size: int) -> Iterator[tuple[str, Item]]:
        """The documents that hold, with their first parts; the one that was indexed last comes first."""
        now = datetime.now(UTC)
        for fact in self._all_facts(scope, page_size, newest=True):
            is_over = isinstance(fact, Atom) and fact.valid_to is not None and fact.valid_to <= now
            if part_of(fact).number == 1 and not is_over:
                yield part_of(fact).document, fact

    def _best_hits(self, scope: Scope, query: str, count: int) -> dict[str, Hit]:
        """The best hit of each document. Parts of one may crowd others out, so that more may have to be asked for."""
        limit = count
        while True:
            hits = self.memory.recall(scope, query, limit=limit, kinds=["fact"], recipe=self.recipe)
            best: dict[str, Hit] = {}
            for hit in hits:
                best.setdefault(part_of(hit.record).document, hit)
            if len(best) >= count or len(hits) < limit:
                return best
            limit *= 4

    def _find_documents(self, scope: Scope, names: Sequence[str], missing_ok: bool) -> list[list[str]]:
        found = {name: [part_ids] for name in names if (part_ids := self._part_ids(scope, name))}
        if texts := set(names) - found.keys():
            found |= self._find_by_text(scope, texts)
        missing = [name if len(name) <= 60 else f"{name[:59]}…" for name in names if name not in found]
        if missing and not missing_ok:
            raise NotFoundError(f"no document is {', '.join(map(repr, missing))}; nothing was removed")
        return list({part_ids[0]: part_ids for name in names for part_ids in found.get(name, ())}.values())

    def _find_by_text(self, scope: Scope, texts: set[str]) -> dict[str, list[list[str]]]:
        found: dict[str, list[list[str]]] = {}
        for fact in self._all_facts(scope):
            part = part_of(fact)
            text = None if part.number > 1 else fact.text if part.parts == 1 else self._text_of(scope, part.document)
            for match in () if text is None else matching_texts(fact, text, texts):
                found.setdefault(match, []).append(part.ids)
        return found

    def _part_ids(self, scope: Scope, id: str) -> list[str]:
        """The ids of all parts of a document; none if no document has this id."""
        try:
            item = self.memory.get(scope, id) if id.strip() and len(id) <= MAX_NAME_CHARACTERS else None
        except (NotFoundError, InputError):
            return []
        part = part_of(item) if isinstance(item, Atom) else None
        return part.ids if part and part.number == 1 else []

    def _text_of(self, scope: Scope, id: str) -> str | None:
        """The words of a document; None if it is not there (any more)."""
        try:
            return "".join(self.memory.get(scope, part).text for part in self._part_ids(scope, id)) or None
        except NotFoundError:
            return None

    def _all_facts(self, scope: Scope, page_size: int = _PAGE_FACTS, newest: bool = False) -> Iterator[Item]:
        return iterate(self.memory, scope, kinds=["fact"], limit=min(page_size, _PAGE_FACTS), newest=newest)


def open_memory(settings: ProjectSettings, llm: Any = None, embedder: Any = None, *, project: str = "") -> Memory:
    """Open the store that the settings name. If all documents go to one project, the offer to import names it."""
    target = settings.target(create=True)
    if is_server(target):
        return eunoe.connect(str(target))
    llm = settings.llm() if llm is None else llm
    embedder = settings.embedder() if embedder is None else embedder
    try:
        memory = eunoe.open(target, embedder=embedder, llm=llm, form=False)
    except ModelMismatchError as error:
        _log.warning("%s. The store's own vectors are used until then", error)
        memory = eunoe.open(target, llm=llm, form=False)
    if isinstance(target, Path):
        offer_import(target, memory, project)
    return memory


def _check_list(values: Any, name: str, kind: Any) -> list[Any]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, not {type(values).__name__}")
    checked = list(values)
    for place, value in enumerate(checked):
        if not isinstance(value, kind):
            raise InputError(f"{name}[{place}] is a {type(value).__name__}")
    return checked


def _parse_documents(docs: Any) -> list[Document]:
    documents = []
    for place, value in enumerate(_check_list(docs, "docs", str | Mapping)):
        try:
            documents.append(parse_document(value))
        except InputError as error:
            raise InputError(f"document {place}: {error}; nothing was stored") from None
    return documents
