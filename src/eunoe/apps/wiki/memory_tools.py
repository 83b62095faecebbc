"""The tools by which a model uses the memory of the repository that its run is about."""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from eunoe.apps.wiki.memory_text import list_text, memory_text, names_text
from eunoe.apps.wiki.service import DEFAULT_THRESHOLD, WikiMemoryService
from eunoe.model.arguments import check_number
from eunoe.text.normalize import replace_surrogates

R = TypeVar("R")
MemoryTypeName = Literal["structural_decision", "pattern_found", "cross_reference"]

TOOL_NAMES: Final = ("store_memory", "recall_memories", "get_file_memories", "get_memory")
STORING_TOOLS: Final = frozenset({"store_memory"})

Content = Annotated[str, Field(description="What to remember, in words that make sense on their own.")]
FilePaths = Annotated[
    list[str] | None, Field(description="The source files it is about, as paths from the repository's root.")
]
RelatedPages = Annotated[list[str] | None, Field(description="Ids or titles of the wiki pages it concerns.")]
Replaces = Annotated[
    str | None, Field(description="The ID of a memory that is no longer true, in whose place it comes.")
]
Limit = Annotated[int, Field(description="How many at most, from 1 to 50.")]
Threshold = Annotated[
    float | None, Field(description="Leave out what scores less, from 0 to 1; a higher one gives fewer and surer ones.")
]
WantedFiles = Annotated[list[str], Field(description="Files, folders, or globs such as src/**/*.py.")]


class RunPlace(NamedTuple):
    """The repository that a run is about, as the run's state has it."""

    repository_id: Any
    repo_dir: str | None = None
    branch: str | None = None
    commit: str | None = None

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "RunPlace":
        if not state.get("repository_id"):
            raise ToolException("Error: repository_id not yet available from agent state")
        repo_dir = state.get("repo_dir") or state.get("clone_path")
        folder = None if repo_dir is None else str(repo_dir)
        return cls(state["repository_id"], folder, state.get("branch"), state.get("commit"))


class MemoryTools:
    """The tools of one agent. Which repository is meant is read from the state of the run that calls them.

    A ToolException becomes a tool message with the status "error"; nothing is tried again.
    """

    def __init__(
        self, source_agent: str, service: WikiMemoryService, score_threshold: float = DEFAULT_THRESHOLD
    ) -> None:
        self._source_agent = source_agent
        self._service = service
        self._score_threshold = check_number(score_threshold, "score_threshold", 0.0, 1.0)

    async def store_memory(
        self,
        content: Content,
        memory_type: MemoryTypeName,
        runtime: ToolRuntime,
        file_paths: FilePaths = None,
        related_pages: RelatedPages = None,
        replaces: Replaces = None,
    ) -> str:
        """Store a structural decision, pattern, or cross-reference for future wiki generations."""
        repository_id, repo_dir, branch, commit = RunPlace.of(runtime.state)
        result = await self._service.store_memory(
            repository_id,
            replace_surrogates(content),  # a model may have stopped in the middle of an emoji
            memory_type,
            self._source_agent,
            file_paths,
            related_pages,
            repo_dir=repo_dir,
            branch=branch,
            commit=commit,
            replaces=replaces,
        )
        _check(result, "Failed to store memory")
        if result["chunks_created"] == 1:
            return f"Memory stored successfully (ID: {result['memory_id']})"
        return f"Memory stored in {result['chunks_created']} chunks ({names_text('IDs:', result['memory_ids'])})"

    async def recall_memories(
        self,
        query: str,
        runtime: ToolRuntime,
        limit: Limit = 5,
        memory_type: MemoryTypeName | None = None,
        score_threshold: Threshold = None,
    ) -> str:
        """Recall relevant memories based on semantic similarity to your query."""
        place = RunPlace.of(runtime.state)
        search = self._service.search_memories
        result = await search(
            place.repository_id,
            replace_surrogates(query),
            limit,
            memory_type,
            repo_dir=place.repo_dir,
            score_threshold=self._score_threshold if score_threshold is None else score_threshold,
        )
        _check(result, "Failed to recall memories")
        if not result["count"]:
            return "No relevant memories found."
        return list_text(f"Found {result['count']} relevant memories:", result["memories"])

    async def get_file_memories(self, file_paths: WantedFiles, runtime: ToolRuntime) -> str:
        """Get memories related to specific source files you're analyzing."""
        place = RunPlace.of(runtime.state)
        result = await self._service.get_memories_by_files(place.repository_id, file_paths, repo_dir=place.repo_dir)
        _check(result, "Failed to get file memories")
        if not result["count"]:
            return "No memories found for these files."
        return list_text(f"Found {result['count']} file-related memories:", result["memories"])

    async def get_memory(self, memory_id: str, runtime: ToolRuntime) -> str:
        """Get one memory in full, by the ID that the other memory tools show."""
        place = RunPlace.of(runtime.state)
        result = await self._service.get_memory(place.repository_id, memory_id, repo_dir=place.repo_dir)
        _check(result, "Failed to get memory")
        return memory_text(result["memory"])

    def tools(self) -> list[BaseTool]:
        """Return them as LangChain takes them, for agents that are awaited and for others."""
        verbs = [getattr(self, name) for name in TOOL_NAMES]
        return [StructuredTool.from_function(_blocking(verb), verb, handle_tool_error=True) for verb in verbs]


def _check(result: Mapping[str, Any], failure: str) -> None:
    if result["status"] != "success":
        raise ToolException(f"{failure}: {result['error']}")


def _blocking(verb: Callable[..., Coroutine[Any, Any, R]]) -> Callable[..., R]:
    """The same for who does not await: in a thread of its own, since this one may have an event loop already."""

    @functools.wraps(verb)
    def call(*args: Any, **kwargs: Any) -> R:
        with ThreadPoolExecutor(1, thread_name_prefix="eunoe-wiki") as pool:
            return pool.submit(copy_context().run, asyncio.run, verb(*args, **kwargs)).result()

    return call
