"""The workflow that writes a wiki: plan it, write its pages side by side, then the table of contents."""

from __future__ import annotations

import asyncio
import operator
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypedDict
from uuid import UUID

from eunoe.apps.wiki.agents import (
    Agent,
    WikiPage,
    WikiStructure,
    create_page_agent,
    create_structure_agent,
    load_chat_model,
    page_message,
    page_of,
    structure_message,
    structure_of,
)
from eunoe.apps.wiki.files import RepositoryFiles, default_repository_id
from eunoe.apps.wiki.memory import WikiMemoryRepository, WikiMemoryService, parse_repository_id
from eunoe.apps.wiki.pages import LinkTargets, OutputFolder, render_index, render_page
from eunoe.errors import ConflictError, EunoeError, InputError, LlmError, MissingPackageError, StoreError
from eunoe.files import locked
from eunoe.hosts.langchain.final_text import is_page
from eunoe.memory import AsyncMemory, Memory

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.language_models import BaseChatModel
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Send
except ImportError as error:
    raise MissingPackageError("eunoe.apps.wiki needs LangChain and LangGraph: pip install 'eunoe[wiki]'") from error

_DEFAULT_CONCURRENCY: Final = 4
_MAX_REASON_CHARACTERS: Final = 300
_README_NAMES: Final = ("readme.md", "readme.rst", "readme.txt", "readme")


class PageFailure(NamedTuple):
    """A page that could not be written, and why."""

    id: str
    reason: str


class Progress(NamedTuple):
    """How far a wiki has come: the pages that are done, all of them, and the one that was written or failed last."""

    done: int
    total: int
    page: str
    is_failure: bool = False


Tell = Callable[[Progress], object]


@dataclass(frozen=True, slots=True)
class WikiReport:
    """What a run did."""

    repository_id: str
    out_dir: Path
    written: tuple[str, ...]
    """Ids of the pages that this run wrote."""
    kept: tuple[str, ...]
    """Ids of those that the run before it had written, which did not come to its end."""
    failures: tuple[PageFailure, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        return not self.failures


class WikiWorkflowState(TypedDict, total=False):
    """The state of one run. `repository_id` and `repo_dir` go into the runs of its agents."""

    repository_id: str
    repo_dir: str
    wiki_dir: str
    structure: WikiStructure
    written: Annotated[list[str], operator.add]
    failures: Annotated[list[PageFailure], operator.add]
    notes: Annotated[list[str], operator.add]


class PageState(WikiWorkflowState):
    """What one page is written from."""

    page: WikiPage


async def generate_wiki(
    repository_id: UUID | str | None = None,
    force_regenerate: bool = False,
    *,
    repo_dir: str | os.PathLike[str],
    out_dir: str | os.PathLike[str],
    model: str | BaseChatModel = "auto",
    memory: Memory | AsyncMemory | None = None,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    concurrency: int = _DEFAULT_CONCURRENCY,
    tell: Tell = lambda progress: None,
) -> WikiReport:
    """Write the wiki of a repository as Markdown into a folder.

    After a run that was killed, or in which pages failed, only the missing pages are written. After a complete one all
    are written again, with what agents remembered.

    Args:
        repository_id: whose memories are used; by default it follows from the origin's URL, else the root commit.
        force_regenerate: hide the old memories of this repository; they are deleted when the wiki is complete, and
            restored if it is not.
        repo_dir: the folder that is described.
        out_dir: where the wiki stands. Files that were not written here are never touched.
        model: a LangChain chat model, or the name of one.
        memory: where agents remember; by default the store of the command line.
        middleware: for both agents, after their own; one that has the name of their own takes its place.
        concurrency: how many pages are written at a time.
        tell: is called after each page.
    """
    if concurrency < 1:
        raise InputError("concurrency must be 1 or more")
    chat_model = await asyncio.to_thread(load_chat_model, model)
    folder, files = await asyncio.to_thread(_open_folders, repository_id, Path(repo_dir), out_dir)
    repository = WikiMemoryRepository(memory)
    with ExitStack() as stack:
        await asyncio.to_thread(stack.enter_context, folder.opened())
        held = _locked_memories(repository.memory.target, folder.state.repository_id, alone=force_regenerate)
        await asyncio.to_thread(stack.enter_context, held)
        before = await asyncio.to_thread(folder.begin, force=force_regenerate)
        run = _Run(files, await asyncio.to_thread(files.names), folder, before, chat_model, memory, middleware, tell)
        return await _finish(run, folder, WikiMemoryService(repository), concurrency)


async def _finish(run: _Run, folder: OutputFolder, service: WikiMemoryService, concurrency: int) -> WikiReport:
    """Bring a run to its end.

    What was remembered before a forced one is hidden meanwhile; it is deleted if the wiki is complete, else it comes
    back.
    """
    id, since = folder.state.repository_id, folder.state.forced_since
    # Without a moment nothing is hidden, and what a forced run that was killed has left hidden comes back.
    hide = service.hide_memories(id, datetime.fromisoformat(since)) if since else service.restore_memories(id)
    _check(await hide)
    try:
        report = await run.finish(concurrency)
        if not report.is_complete:
            return report
        # Before the wiki counts as complete: after a kill between the two the next run would show them again.
        _check(await service.purge_hidden_memories(id))
    finally:
        _check(await service.restore_memories(id))
    changed = await asyncio.to_thread(folder.finish)
    notes = [f"{name} belongs to no page, but was changed: it was left there" for name in changed]
    return replace(report, notes=(*report.notes, *notes))


@contextmanager
def _locked_memories(store: str, repository_id: str, *, alone: bool) -> Iterator[None]:
    """Hold the memories of a repository until the end of the process: a forced run hides them, which others would undo.

    The lock is a file beside the store; for a store that is no file, among the temporary ones.
    """
    is_file = os.path.isfile(store)
    place = Path(store).resolve() if is_file else Path(tempfile.gettempdir(), f"eunoe-{os.getuid()}-{os.getpid()}")
    digest = blake2b(repository_id.encode(), digest_size=8).hexdigest()
    path = place.with_name(f"{place.name}-wiki-{digest}.lock")
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path, shared=not alone))
        except ConflictError:
            raise ConflictError(
                f"another run is writing a wiki of repository {repository_id}, and one of the two is forced: wait"
            ) from None
        yield
    with suppress(ConflictError), locked(path):  # nobody else holds it
        path.unlink(missing_ok=True)


def _open_folders(
    repository_id: UUID | str | None, repo_dir: Path, out_dir: str | os.PathLike[str]
) -> tuple[OutputFolder, RepositoryFiles]:
    """The folder of the wiki, and the repository without it."""
    out = Path(out_dir).expanduser().resolve()
    files = RepositoryFiles(repo_dir, hidden=out)
    folder = OutputFolder(out, parse_repository_id(repository_id or default_repository_id(repo_dir)))
    if files.root.is_relative_to(folder.path):
        raise InputError(f"{folder.path} holds the repository itself: give the wiki a folder of its own, such as wiki")
    if ".git" in folder.path.parts:
        raise InputError(f"{folder.path} belongs to git: choose another folder for the wiki")
    return folder, files


class _Run:
    """One run of the workflow, and its nodes."""

    def __init__(
        self,
        files: RepositoryFiles,
        names: Sequence[str],
        folder: OutputFolder,
        before: WikiStructure | None,
        model: BaseChatModel,
        memory: Memory | AsyncMemory | None,
        middleware: Sequence[AgentMiddleware[Any, Any, Any]],
        tell: Tell,
    ) -> None:
        self._files = files
        self._names = names
        if not names:
            raise InputError(f"{files.root} has no files: there is nothing to write a wiki about")
        self._folder = folder
        self._before = before
        self._structure_agent = partial(create_structure_agent, model, memory=memory, middleware=middleware)
        self._page_agent: Agent = create_page_agent(model, memory=memory, middleware=middleware)
        self._tell = tell
        self._kept: list[str] = []
        self._done = 0

    async def finish(self, concurrency: int) -> WikiReport:
        """Bring the run to its end."""
        folder = self._folder
        start: WikiWorkflowState = {
            "repository_id": folder.state.repository_id,
            "repo_dir": str(self._files.root),
            "wiki_dir": str(folder.path),
        }
        state = await self._graph().ainvoke(start, {"max_concurrency": concurrency})
        failures = sorted(state["failures"])
        return WikiReport(
            folder.state.repository_id,
            folder.path,
            tuple(sorted(state["written"])),
            tuple(self._kept),
            tuple(failures),
            tuple(state["notes"]),
        )

    def _graph(self) -> Agent:
        graph = StateGraph(WikiWorkflowState)
        graph.add_node("plan", self._plan)
        graph.add_node("write_page", self._write_page, input_schema=PageState)
        graph.add_node("write_index", self._write_index)
        graph.add_edge(START, "plan")
        graph.add_conditional_edges("plan", self._missing_pages, ["write_page", "write_index"])
        graph.add_edge("write_page", "write_index")
        graph.add_edge("write_index", END)
        return graph.compile()

    async def _plan(self, state: WikiWorkflowState) -> dict[str, Any]:
        structure, notes = self._folder.state.structure, list[str]()
        if structure is None:
            structure, notes = (await self._ask_for_structure(state)).tidy(set(self._names))
        await asyncio.to_thread(self._folder.plan, structure)
        return {"structure": structure, "notes": notes}

    async def _ask_for_structure(self, state: WikiWorkflowState) -> WikiStructure:
        readme = await asyncio.to_thread(self._readme)
        text = structure_message(self._files.root.name, self._names, readme, self._before)
        try:
            return structure_of(await self._structure_agent().ainvoke(_agent_input(state, text)))
        except EunoeError:
            raise
        except Exception as error:
            raise LlmError(f"the wiki cannot be planned: {_reason(error)}") from error

    def _missing_pages(self, state: WikiWorkflowState) -> Sequence[Send] | str:
        pages = list(state["structure"].pages())
        self._kept = [page.id for page in pages if self._folder.has_page(page.id)]
        self._done = len(self._kept)
        missing = [page for page in pages if page.id not in self._kept]
        return [Send("write_page", {**state, "page": page}) for page in missing] or "write_index"

    async def _write_page(self, state: PageState) -> dict[str, Any]:
        page = state["page"]
        try:
            result = await self._page_agent.ainvoke(_agent_input(state, page_message(page, state["structure"])))
            text = page_of(result)
            targets = LinkTargets(state["structure"], set(self._names), self._files.root, self._folder.path)
            await asyncio.to_thread(self._folder.write_page, page.id, render_page(page, text, targets))
        except Exception as error:  # the other pages are written all the same
            self._report(state, page, is_failure=True)
            return {"failures": [PageFailure(page.id, _reason(error))]}
        self._done += 1
        self._report(state, page)
        notes = [] if is_page(text) else [f"page {page.id}: the model wrote no heading; look whether it is a page"]
        return {"written": [page.id], "notes": notes}

    async def _write_index(self, state: WikiWorkflowState) -> dict[str, Any]:
        await asyncio.to_thread(self._folder.write_index, render_index(state["structure"], self._folder.has_page))
        return {}

    def _report(self, state: WikiWorkflowState, page: WikiPage, *, is_failure: bool = False) -> None:
        self._tell(Progress(self._done, len(list(state["structure"].pages())), page.title, is_failure))

    def _readme(self) -> str:
        name = next((name for name in self._names if name.lower() in _README_NAMES), "")
        return self._files.read(name)[0] if name else ""


def _check(result: dict[str, Any]) -> None:
    if result["status"] != "success":
        raise StoreError(f"the memories of this repository cannot be hidden or restored: {result['error']}")


def _agent_input(state: WikiWorkflowState, text: str) -> dict[str, Any]:
    names = ("repository_id", "repo_dir", "wiki_dir")
    return {"messages": [("user", text)], **{name: state[name] for name in names}}  # type: ignore[literal-required]


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())[:_MAX_REASON_CHARACTERS]
    return text if isinstance(error, EunoeError) and text else f"{type(error).__name__}: {text}".rstrip(": ")
