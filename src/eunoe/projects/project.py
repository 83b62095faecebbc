"""Project memory: documents of a project, put in, asked for and taken out, in one process or in many."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Self
from uuid import UUID

import eunoe
from eunoe.errors import (
    ConflictError,
    EmbedderError,
    InputError,
    LlmError,
    ModelMismatchError,
    NotFoundError,
    StoreError,
)
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.choices import RecipeName
from eunoe.model.hit import Hit
from eunoe.model.report import Receipt
from eunoe.model.scope import Scope
from eunoe.projects.documents import Document, document_of, part_id, place_of, says
from eunoe.recall.relevance import DEPTH, JUDGES, SHARE, WORDS, WORDS_FLOOR, Floor, floor_of, reads

FILE: Final = "eunoe.db"
"""The store of all projects in a save folder."""
SAVE_DIR: Final = "MEMORY_SAVE_DIR"
COUNT: Final = 5
RECIPE: Final[RecipeName] = "associative"

_PAGE = 2_000
_LONGEST_ID = 1024
_EMBEDDERS = ("none", "eunoe", "static", "wordllama", "minilm", "auto")
_log = logging.getLogger(__name__)

Project = str | int | UUID


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """Where project memory rests and which models it uses. What is empty is not set."""

    save_dir: str = ""
    llm_model: str = ""
    llm_base_url: str = ""
    llm_api_key: str = ""
    embedding_model: str = ""
    embedding_base_url: str = ""
    embedding_api_key: str = ""

    @classmethod
    def from_environment(cls, **given: str | None) -> ProjectSettings:
        """What is given, else what MEMORY_SAVE_DIR, MEMORY_LLM_MODEL, MEMORY_EMBEDDING_MODEL and the like say.

        >>> ProjectSettings.from_environment(save_dir="memory", llm_model="none").save_dir
        'memory'
        """
        named = {name: os.environ.get(f"MEMORY_{name.upper()}", "").strip() for name in cls.__slots__}
        return cls(**named | {name: str(value) for name, value in given.items() if value})

    def embedder(self) -> Any:
        """What to open a memory with. A model that cannot be had is done without, with a warning."""
        try:
            return self._embedder(self.embedding_model) if self.embedding_model else "auto"
        except EmbedderError as error:
            _log.warning("%s: documents are embedded by the store's own model instead", error)
            return "auto"

    def llm(self) -> Any:
        """What to open a memory with. A model that cannot be had is done without, with a warning."""
        try:
            return self._llm(self.llm_model) if self.llm_model else "auto"
        except LlmError as error:
            _log.warning("%s: the memory works without a language model", error)
            return "none"

    def target(self) -> str | Path:
        """The store: a file in the save folder, or what names a store itself."""
        if not self.save_dir:
            raise InputError(f"there is no place for the memory: give save_dir or set {SAVE_DIR} to a folder")
        if self.save_dir == ":memory:" or "://" in self.save_dir:
            return self.save_dir
        path = Path(self.save_dir).expanduser()
        return path if path.suffix == ".db" or path.is_file() else path / FILE

    def _embedder(self, model: str) -> Any:
        from eunoe import embed

        if model in _EMBEDDERS or model.startswith("openai:"):
            return _tried(embed.load, model)
        if not self.embedding_base_url and not model.startswith("text-embedding-"):
            raise EmbedderError(f"{model} needs a server, which MEMORY_EMBEDDING_BASE_URL names")
        if self.embedding_api_key:
            from eunoe.embed.openai import OpenAI

            return OpenAI(model, base_url=self.embedding_base_url or None, api_key=self.embedding_api_key)
        at = f"@{self.embedding_base_url}" if self.embedding_base_url else ""
        return _tried(embed.load, f"openai:{model}{at}")

    def _llm(self, model: str) -> Any:
        from eunoe import llm
        from eunoe.llm.openai import OpenAI

        if model in ("none", "auto") or (":" in model and not self.llm_base_url):
            return _tried(llm.load, model)
        return OpenAI(model, base_url=self.llm_base_url or None, api_key=self.llm_api_key or None)


class ProjectMemory:
    """Documents of projects, each project for itself.

    >>> with ProjectMemory.open(":memory:") as memory:
    ...     ids = memory.index("shop", ["The login broke because the clock of the server was wrong."])
    ...     found = memory.retrieve("shop", ["Why did the login break?", "Who won the football match?"])
    ...     [result["ids"] == ids for result in found], found[1]["docs"]
    ([True, False], [])
    """

    def __init__(self, memory: Memory, *, recipe: RecipeName = RECIPE, floor: float | None = None) -> None:
        self.memory = memory
        self.recipe = recipe
        self._fixed = floor is not None
        self.judge = JUDGES.get(recipe, recipe) if floor is None else recipe
        """The recipe whose scores say whether a question has to do with the project."""
        self.floor = floor_of(self.judge) if floor is None else Floor.fixed(floor)

    @classmethod
    def open(
        cls,
        save_dir: str | os.PathLike[str] | None = None,
        *,
        llm: Any = None,
        embedder: Any = None,
        settings: ProjectSettings | None = None,
        recipe: RecipeName = RECIPE,
        floor: float | None = None,
    ) -> ProjectMemory:
        """Opens the memory of all projects in a folder; nothing in it depends on the names of models.

        Args:
            save_dir: a folder, else the one that MEMORY_SAVE_DIR names. A `.db` file, a URL or ":memory:" is the store
                itself.
            llm, embedder: as `eunoe.open` takes them, else what the settings say.
            settings: instead of those in the environment.
            floor: the least score of every document; what was measured (`eunoe.recall.relevance`) if not given.
        """
        chosen = settings or ProjectSettings.from_environment(save_dir=os.fspath(save_dir) if save_dir else None)
        target = chosen.target()
        if isinstance(target, Path):
            _make(target.parent)
        asked = chosen.llm() if llm is None else llm
        memory = _opened(target, chosen.embedder() if embedder is None else embedder, asked)
        return cls(memory, recipe=recipe, floor=floor)

    def index(self, project: Project, docs: Sequence[str | Mapping[str, Any]]) -> list[str]:
        """Keeps documents, all of them or, on an error, none; gives their ids in the order given.

        A document is a text, or a mapping with "text" and perhaps "id", "title", "ticket", "label", "time" and
        "metadata". One without an id or a ticket of its own is known by its words: given again it has the same id.
        """
        receipts = self.keep(project, docs)
        refused = [receipt for receipt in receipts if not receipt]
        if refused:
            raise ConflictError(
                f"{len(refused)} of {len(receipts)} documents were refused, the others are kept: {_why(refused)}"
            )
        return [receipt.id for receipt in receipts]

    def keep(self, project: Project, docs: Sequence[str | Mapping[str, Any]]) -> list[Receipt]:
        """`index` that says of each document what became of it instead of raising."""
        scope = _scope(project)
        documents = _read(docs)
        self._check(scope, documents)
        items = [document.items() for document in documents]
        written = self.memory.remember_many(scope, [item for group in items for item in group])
        self._reopen(scope, [receipt.id for receipt in written if receipt.outcome == "duplicate"])
        receipts = iter(written)
        return [_whole([next(receipts) for _ in group]) for group in items]

    def retrieve(
        self, project: Project, queries: Sequence[str], num_to_retrieve: int | None = COUNT
    ) -> list[dict[str, Any]]:
        """The documents that bear on each question, best first, with their scores (0 to 1) and ids.

        A question on something else gives none, and so does an empty one.
        """
        scope = _scope(project)
        count = COUNT if num_to_retrieve is None else num_to_retrieve
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"num_to_retrieve is {count!r}: it must be a whole number of at least 1")
        return [self._answer(scope, query, count) for query in _several(queries, "queries", str)]

    def delete(self, project: Project, docs_or_ids: Sequence[str], *, missing_ok: bool = False) -> list[str]:
        """Removes documents by id, or by their exact words (then each that has them); gives the ids removed.

        If one of them is not known, NotFoundError names it and nothing is removed, unless `missing_ok` lets it pass. A
        document may be indexed again.
        """
        scope = _scope(project)
        names = list(dict.fromkeys(_several(docs_or_ids, "docs_or_ids", str)))
        while gone := self._named(scope, names, missing_ok):
            try:
                self.memory.forget(scope, [id for parts in gone for id in parts], may_return=True)
                break
            except NotFoundError:  # somebody else was quicker with one of them
                if not missing_ok:
                    raise
        return [parts[0] for parts in gone]

    def remove_project(self, project: Project) -> int:
        """Removes all memory of a project; gives how many documents there were."""
        scope = _scope(project)
        count = sum(place_of(atom)[1] == 1 for atom in self._atoms(scope))
        self.memory.forget(scope, everything=True, may_return=True)
        return count

    def projects(self) -> list[str]:
        """The names of the projects that have memory."""
        scopes = [scope for scope in self.memory.scopes() if list(scope) == ["project"]]
        return [scope["project"] for scope in scopes if self.memory.list(scope, kinds=["fact"], limit=1).items]

    def close(self) -> None:
        self.memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self, scope: Scope, documents: Sequence[Document]) -> None:
        """An id stands for one text: other words under it are refused before anything is written."""
        said: dict[str, str] = {}
        for document in documents:
            if not document.named:
                continue
            if document.id not in said:
                said[document.id] = self._text(scope, document.id) or document.text
            if said[document.id] != document.text or self._taken(scope, document):
                raise ConflictError(
                    f"{document.id!r} stands for other words: delete it first, or give another id; nothing was stored"
                )

    def _taken(self, scope: Scope, document: Document) -> bool:
        """Whether a part would need the id of another document."""
        ids = [item["id"] for item in document.items()[1:]]
        return any(self._by_id(scope, id) for id in ids)

    def _reopen(self, scope: Scope, ids: Iterable[str]) -> None:
        """What was archived meanwhile and is indexed again is to be found again."""
        for id in dict.fromkeys(ids):
            with suppress(NotFoundError):  # somebody has deleted it since
                item = self.memory.get(scope, id)
                if isinstance(item, Atom) and item.retired and not item.superseded_by:
                    self.memory.streams.unarchive(scope, id)

    def _answer(self, scope: Scope, query: str, count: int) -> dict[str, Any]:
        found = self._found(scope, query, count) if query.strip() else {}
        texts = {id: self._text(scope, id) if place_of(_atom(hit))[2] > 1 else hit.text for id, hit in found.items()}
        ids = [id for id, text in texts.items() if text is not None]
        scores = list(accumulate((found[id].score for id in ids), min))
        return {"question": query, "docs": [texts[id] for id in ids], "doc_scores": scores, "ids": ids}

    def _found(self, scope: Scope, query: str, count: int) -> dict[str, Hit]:
        """The best hit of each document that bears on the question."""
        readable = self._reads(query)
        judge, floor = (self.judge, self.floor) if readable else (WORDS, WORDS_FLOOR)
        judged = self._best(scope, query, max(count, DEPTH), judge)
        passed = floor.passed([hit.score for hit in judged.values()])
        near = dict(list(judged.items())[: min(passed, count)])
        if not near or judge == self.recipe:
            return near
        ranked = self._best(scope, query, count, self.recipe)
        least = SHARE * max((hit.score for hit in ranked.values()), default=0.0)
        return {
            id: hit for id, hit in ranked.items() if hit.score >= least and (readable or not _by_vector_alone(hit))
        } or near

    def _reads(self, query: str) -> bool:
        """Whether vectors may help to say that nothing is near; where a floor was given, that floor says it."""
        embedder = self.memory.embedder
        return self._fixed or embedder is None or reads(embedder.name, query)

    def _best(self, scope: Scope, query: str, count: int, recipe: RecipeName) -> dict[str, Hit]:
        """The best hit of each document. Parts of one may crowd others out, so that more may have to be asked for."""
        limit = count
        while True:
            hits = self.memory.recall(scope, query, limit=limit, kinds=["fact"], recipe=recipe)
            best: dict[str, Hit] = {}
            for hit in hits:
                best.setdefault(place_of(_atom(hit))[0], hit)
            if len(best) >= count or len(hits) < limit:
                return best
            limit *= 4

    def _named(self, scope: Scope, names: Sequence[str], missing_ok: bool) -> list[list[str]]:
        """The parts of each document that has one of these ids, or says one of these."""
        found = {name: self._by_id(scope, name) for name in names}
        texts = {name for name, parts in found.items() if not parts}
        by_text = self._by_text(scope, texts) if texts else {}
        missing = [name for name in names if name in texts and name not in by_text]
        if missing and not missing_ok:
            raise NotFoundError(f"no document is {', '.join(map(_short, missing))}; nothing was removed")
        documents = [parts for name in names for parts in ([found[name]] if found[name] else by_text.get(name, ()))]
        return list({parts[0]: parts for parts in documents}.values())

    def _by_id(self, scope: Scope, id: str) -> list[str]:
        """The ids of all parts of a document, or none if there is no document of this id."""
        try:
            item = self.memory.get(scope, id) if id.strip() and len(id) <= _LONGEST_ID else None
        except (NotFoundError, InputError):
            return []
        if not isinstance(item, Atom):
            return []
        _, part, parts = place_of(item)
        return [part_id(id, number) for number in range(1, parts + 1)] if part == 1 else []

    def _by_text(self, scope: Scope, texts: set[str]) -> dict[str, list[list[str]]]:
        """The parts of each document that says one of these, by what it says."""
        found: dict[str, list[list[str]]] = {}
        for atom in self._atoms(scope):
            id, part, parts = place_of(atom)
            text = None if part > 1 else atom.text if parts == 1 else self._text(scope, id)
            for said in () if text is None else says(atom, text, texts):
                found.setdefault(said, []).append([part_id(id, number) for number in range(1, parts + 1)])
        return found

    def _text(self, scope: Scope, id: str) -> str | None:
        """The words of a document, or None if it is not there (any more)."""
        ids = self._by_id(scope, id)
        try:
            return "".join(self.memory.get(scope, part).text for part in ids) if ids else None
        except NotFoundError:
            return None

    def _atoms(self, scope: Scope) -> Iterator[Atom]:
        after = ""
        while True:
            page = self.memory.list(scope, kinds=["fact"], limit=_PAGE, after=after)
            yield from (item for item in page.items if isinstance(item, Atom))
            if not (after := page.next):
                return


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise StoreError(f"the folder {str(folder)!r} cannot be made: {error}") from error


def _opened(target: str | Path, embedder: Any, llm: Any) -> Memory:
    """A store whose vectors come from another model keeps them, and is opened with the model they come from."""
    try:
        return eunoe.open(target, embedder=embedder, llm=llm, form=False)
    except ModelMismatchError as error:
        _log.warning("%s. The store's own vectors are used until then", error)
        return eunoe.open(target, llm=llm, form=False)


def _tried(load: Callable[[str], object], spec: str) -> str:
    """A setting that can be loaded, as it is: written down in the store it lets others open it too."""
    if spec != "auto":
        load(spec)
    return spec


def _scope(project: Project) -> Scope:
    return Scope(project=project)


def _several(values: Any, name: str, one: Any) -> list[Any]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, not {type(values).__name__}")
    many = list(values)
    for place, value in enumerate(many):
        if not isinstance(value, one):
            raise InputError(f"{name}[{place}] is a {type(value).__name__}")
    return many


def _read(docs: Any) -> list[Document]:
    read = []
    for place, value in enumerate(_several(docs, "docs", str | Mapping)):
        try:
            read.append(document_of(value))
        except InputError as error:
            raise InputError(f"document {place}: {error}; nothing was stored") from None
    return read


def _whole(receipts: Sequence[Receipt]) -> Receipt:
    """What became of a document: of the part that was refused, if one was, else of the first."""
    return next((receipt for receipt in receipts if not receipt), receipts[0])


def _why(refused: Sequence[Receipt]) -> str:
    why = {"forgotten": "was forgotten on purpose", "conflict": "stands for other words"}
    return ", ".join(f"{receipt.id} {why.get(receipt.outcome, receipt.outcome)}" for receipt in refused)


def _atom(hit: Hit) -> Atom:
    assert isinstance(hit.item, Atom)
    return hit.item


def _by_vector_alone(hit: Hit) -> bool:
    return all(reason.name == "dense" for reason in hit.reasons)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
