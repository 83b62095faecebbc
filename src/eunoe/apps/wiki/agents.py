"""The two agents that write a wiki: one plans it, the other writes a page. Both read the repository and remember."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NotRequired

from eunoe.apps.wiki.chat_model import load_chat_model
from eunoe.apps.wiki.file_tools import FILE_TOOLS
from eunoe.apps.wiki.middleware import WikiMemoryMiddleware, WikiMemoryState
from eunoe.apps.wiki.prompts import PAGE_PROMPT, STRUCTURE_PROMPT
from eunoe.apps.wiki.structure import WikiStructure
from eunoe.errors import LlmError, MissingPackageError
from eunoe.hosts.langchain.final_text import is_page
from eunoe.llm.structured import read_json
from eunoe.memory import AsyncMemory, Memory

try:
    from langchain.agents import create_agent
    from langchain.agents.middleware import (
        AgentMiddleware,
        ModelCallLimitMiddleware,
        ModelRetryMiddleware,
        SummarizationMiddleware,
        ToolRetryMiddleware,
    )
    from langchain.agents.structured_output import ToolStrategy
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
    from langgraph.graph.state import CompiledStateGraph
    from pydantic import ValidationError
except ImportError as error:
    raise MissingPackageError("eunoe.apps.wiki needs LangChain and LangGraph: pip install 'eunoe[wiki]'") from error

Agent = CompiledStateGraph[Any, Any, Any, Any]

_MAX_MODEL_CALLS: Final = 60
"""Of one run of an agent; one that has not ended by then goes round in circles."""
_MAX_CONTEXT_TOKENS: Final = 100_000
"""What was read before is summarised when there is more, so that it fits into most models."""
_MAX_RETRIES: Final = 3
"""Of a call of the model or of a tool, after one, two and four seconds."""
_MAX_REASON_CHARACTERS: Final = 300
_MAX_PLANS: Final = 3
"""That are no structure of a wiki; a model that has not learnt by then what is wrong does not learn it."""


class WikiAgentState(WikiMemoryState):
    """What a run of a wiki agent is about: the repository, and the folder in it that is not shown."""

    wiki_dir: NotRequired[str]


class PlanLimit(AgentMiddleware[Any, Any, Any]):
    """Ends a run whose plans are refused again and again: each costs a call."""

    def before_model(self, state: Any, runtime: Any) -> None:
        messages = (each for each in state["messages"] if isinstance(each, ToolMessage))
        refusals = [each for each in messages if each.name == WikiStructure.__name__]
        if len(refusals) >= _MAX_PLANS:
            reason = " ".join(refusals[-1].text.split())[:_MAX_REASON_CHARACTERS]
            raise LlmError(f"the model gave {len(refusals)} plans that are no structure of a wiki: {reason}")


def create_structure_agent(
    model: str | BaseChatModel = "auto",
    *,
    memory: Memory | AsyncMemory | None = None,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
) -> Agent:
    """Make the agent that plans a wiki. Its run has `repository_id` and `repo_dir` in the input.

    What is given as `middleware` comes after its own, and in place of what has the same name there. The plan is the
    `structured_response` of the run; see `structure_of`.
    """
    return _create_agent(
        "structure_agent", model, STRUCTURE_PROMPT, memory, [PlanLimit(), *middleware], ToolStrategy(WikiStructure)
    )


def create_page_agent(
    model: str | BaseChatModel = "auto",
    *,
    memory: Memory | AsyncMemory | None = None,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
) -> Agent:
    """Make the agent that writes a page. Its run has `repository_id` and `repo_dir` in the input.

    What is given as `middleware` comes after its own, and in place of what has the same name there. The page is the
    last message of the run; see `page_of`.
    """
    return _create_agent("page_agent", model, PAGE_PROMPT, memory, middleware)


def _create_agent(
    name: str,
    model: str | BaseChatModel,
    prompt: str,
    memory: Memory | AsyncMemory | None,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]],
    response_format: ToolStrategy[WikiStructure] | None = None,
) -> Agent:
    chat_model = load_chat_model(model)
    own: list[AgentMiddleware[Any, Any, Any]] = [
        WikiMemoryMiddleware(name, memory=memory),
        SummarizationMiddleware(chat_model, trigger=("tokens", _MAX_CONTEXT_TOKENS)),
        ModelCallLimitMiddleware(run_limit=_MAX_MODEL_CALLS, exit_behavior="error"),
        ModelRetryMiddleware(max_retries=_MAX_RETRIES, on_failure="error"),
        ToolRetryMiddleware(max_retries=_MAX_RETRIES, on_failure=_describe_tool_failure),
    ]
    given = {each.name for each in middleware}
    stack = [*(each for each in own if each.name not in given), *middleware]
    return create_agent(
        chat_model,
        tools=FILE_TOOLS,
        system_prompt=prompt,
        middleware=stack,
        response_format=response_format,
        state_schema=WikiAgentState,
        name=name,
    )


def _describe_tool_failure(error: Exception) -> str:
    """What the model reads of a tool that failed: not the text of the error, which may hold anything."""
    return f"The tool cannot be used at the moment ({type(error).__name__}). Go on without it."


def structure_of(result: dict[str, Any]) -> WikiStructure:
    """Return the plan of a run, also of a model that gave it as text."""
    if isinstance(structure := result.get("structured_response"), WikiStructure):
        return structure
    try:
        return WikiStructure.model_validate(read_json(_last_text(result["messages"])))
    except (ValidationError, LlmError):
        raise LlmError("the model gave no structure of a wiki: try again, or choose another model") from None


def page_of(result: dict[str, Any]) -> str:
    """Return the page that a run wrote: the last text with a heading of the first level, else its last message."""
    texts = [message.text.strip() for message in result["messages"] if isinstance(message, AIMessage)]
    text = next(filter(is_page, reversed(texts)), _last_text(result["messages"]).strip())
    if not text:
        raise LlmError("the model wrote no page: try again, or choose another model")
    return text


def _last_text(messages: Sequence[AnyMessage]) -> str:
    return messages[-1].text if messages and isinstance(messages[-1], AIMessage) else ""
