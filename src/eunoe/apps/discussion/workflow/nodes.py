"""The nodes of workflows: they ask a language model, give texts, call workflows, hold locks, read and make memories.

Those that read memories are fast: they write nothing and ask no model, unless `update_first` says so. Those that make
memories are slow, and belong behind the reply.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from eunoe.apps.discussion.authors import Prompts, check_answer, fence
from eunoe.apps.discussion.documents import (
    SUMMARY_LEASE,
    SUMMARY_PROMPTS,
    current_summary,
    update_summary,
    write_summary,
)
from eunoe.apps.discussion.keywords import EQUAL_WEIGHTS, KeywordQuery, SearchMode
from eunoe.apps.discussion.retrievers import NO_ID, NO_MATCH, NO_MEMORIES, NO_SUMMARY, DiscussionReader
from eunoe.apps.discussion.texts import ALL, CHUNK_BREAK, Retrieval, escape_memory, recent_turns
from eunoe.apps.discussion.workflow.node import (
    ACROSS,
    HOST_MESSAGES,
    MAX_TOKENS,
    MODEL_KEYS,
    UPDATE_FIRST,
    WEIGHTS,
    NodeCall,
    key_problem,
    node,
)
from eunoe.apps.discussion.workflow.run import make_memories
from eunoe.apps.discussion.workflow.texts import COUNT_KEYS, conversation, plain_text, system_text, transcript
from eunoe.errors import AccessError, LlmError, WorkflowError
from eunoe.model.arguments import show
from eunoe.model.scope import Scope

_LAST_MESSAGES_KEY: Final = "lastMessagesToSendInsteadOfPrompt"
_LAST_MESSAGES: Final = 5
_DEFAULT: Final = "default"
_DEFAULT_CONTENT_KEY: Final = "UseDefaultContentInsteadOfWorkflow"
_CALL_KEYS: Final = ("scoped_variables", "workflowUserFolderOverride", "folder", *COUNT_KEYS)
_OVERRIDES: Final = {"systemPrompt": "firstNodeSystemPromptOverride", "prompt": "firstNodePromptOverride"}
_ROUTE_OVERRIDES: Final = {"systemPrompt": "systemPromptOverride", "prompt": "promptOverride"}
_LOCK_SECONDS: Final = 600


@node("Standard", keys=(*MODEL_KEYS, *COUNT_KEYS, _LAST_MESSAGES_KEY), needs_model=True, takes_in=True)
def standard(call: NodeCall) -> str:
    """Ask a language model with the prompt, or without one with the last messages of the chat."""
    prompt, system = call.render("prompt"), call.render("systemPrompt")
    if prompt.strip():
        return call.ask(prompt, system)
    count = call.number(_LAST_MESSAGES_KEY, _LAST_MESSAGES)
    messages = conversation(call.messages)[-count:] if count > 0 else []
    if not messages:
        raise WorkflowError("it has no prompt, and there are no messages to send in its place")
    text = plain_text(messages) if len(messages) == 1 else transcript(messages)
    return call.ask(text, system or system_text(call.messages))


@node("StaticResponse", required=["content"], keys=COUNT_KEYS)
def static_response(call: NodeCall) -> str:
    """Give a text."""
    return call.render("content")


@node("StringConcatenator", required=["strings"], keys=["delimiter", *COUNT_KEYS])
def string_concatenator(call: NodeCall) -> str:
    """Join texts."""
    return call.render("delimiter").join(call.texts("strings"))


@node(
    "CustomWorkflow",
    required=["workflowName"],
    keys=[*_CALL_KEYS, *_OVERRIDES.values()],
    workflows=lambda fields, _: [fields.get("workflowName")],
)
def custom_workflow(call: NodeCall) -> str:
    """Run another workflow. Its inputs are the scoped variables."""
    return _call_workflow(call, call.render("workflowName"), call.node, _OVERRIDES)


@node(
    "ConditionalCustomWorkflow",
    required=["conditionalKey", "conditionalWorkflows"],
    keys=[*_CALL_KEYS, "routeOverrides", _DEFAULT_CONTENT_KEY],
    workflows=lambda fields, _: (
        each.values() if isinstance(each := fields.get("conditionalWorkflows"), Mapping) else ()
    ),
)
def conditional_custom_workflow(call: NodeCall) -> str:
    """Run the workflow that stands beside the value of a key, else the default one."""
    given = call.node["conditionalWorkflows"]
    if problem := key_problem("conditionalWorkflows", given):
        raise WorkflowError(problem)
    value = call.render("conditionalKey").strip().casefold()
    routes = {name.strip().casefold(): (name, each) for name, each in given.items()}
    if value not in routes and call.node.get(_DEFAULT_CONTENT_KEY):
        return call.render(_DEFAULT_CONTENT_KEY)
    if value not in routes and _DEFAULT not in routes:
        raise WorkflowError(f"conditionalWorkflows has neither {show(value)} nor Default")
    name, workflow = routes.get(value) or routes[_DEFAULT]
    overrides = call.node.get("routeOverrides")
    folded = {key.casefold(): each for key, each in overrides.items()} if isinstance(overrides, Mapping) else {}
    route = folded.get(name.casefold(), {})
    fields = route if isinstance(route, Mapping) else {}
    return _call_workflow(call, call.render_text(workflow), fields, _ROUTE_OVERRIDES)


def _call_workflow(call: NodeCall, name: str, fields: Mapping[str, Any], overrides: Mapping[str, str]) -> str:
    """Run a workflow, with prompts of its first node that some fields override."""
    call.trace.inputs["workflow"] = name
    inputs = call.texts("scoped_variables") if "scoped_variables" in call.node else []
    folder = call.render("folder") or call.render("workflowUserFolderOverride")
    changes = {to: fields[key] for to, key in overrides.items() if isinstance(fields.get(key), str) and fields[key]}
    return call.run.call(name, inputs, folder, call.respond, **changes)


@node("WorkflowLock", required=["workflowLockId"])
def workflow_lock(call: NodeCall) -> str:
    """Hold a lock until the workflow ends, ten minutes at most. End the workflow if somebody else holds it."""
    run, id = call.run, call.render("workflowLockId").strip()
    if not id:
        raise WorkflowError("workflowLockId is empty")
    if run.memory is None:
        call.note("there is no store to keep the lock in: the workflow goes on without it")
    elif id not in run.locks:
        leases, scope, name = run.memory.leases, Scope(user=run.user), f"workflow_lock:{id}"
        try:
            lease = leases.acquire(scope, name, seconds=_LOCK_SECONDS)
        except AccessError:
            if run.scope is None:
                raise
            call.note("other discussions are out of reach: the lock is one of the discussion, and not of the user")
            scope = run.scope
            lease = leases.acquire(scope, name, seconds=_LOCK_SECONDS)
        if lease is None:
            call.note(f"the lock {show(id)} is held: the workflow ends here")
            run.is_ended = True
        else:
            run.locks.add(id)
            run.stack.callback(leases.release, scope, lease)
            run.stack.callback(run.locks.discard, id)
    return ""


_READER_KEYS: Final = (ACROSS, HOST_MESSAGES)


def find_reader(call: NodeCall) -> DiscussionReader | None:
    """What reads the discussion of a node; None if there is none."""
    run, is_across = call.run, call.flag(ACROSS)
    if not run.memory or not run.discussion_id:
        return None
    return DiscussionReader.of(run.memory, run.discussion_id, run.user, across_discussions=is_across)


def give(call: NodeCall, retrieval: Retrieval, host_message: str = "", delimiter: str = "") -> str:
    """What a node gives of a retrieval. Why it is empty or cut stands in the trace; the first may be said as
    WilmerAI says it."""
    if retrieval.message:
        call.trace.notes.append(retrieval.message)
    if retrieval.texts:
        return retrieval.joined(delimiter)
    return host_message if call.is_on(HOST_MESSAGES) else ""


@node(
    "RecentMemory",
    keys=[*_READER_KEYS, UPDATE_FIRST, MAX_TOKENS],
    workflows=lambda _, environment: [environment.user_settings.recent_memory_workflow],
)
def recent_memory(call: NodeCall) -> str:
    """The latest chunk memories, or what the workflow for them gives."""
    _update_first(call)
    if tool := call.run.environment.user_settings.recent_memory_workflow:
        return call.run.call(tool)
    tokens, reader = call.number(MAX_TOKENS, 0), find_reader(call)
    if reader:
        return give(call, reader.recent(tokens=tokens), NO_MEMORIES)
    return recent_turns(call.messages, tokens=tokens)


@node(
    "RecentMemorySummarizerTool",
    required=["maxTurnsToPull", "maxSummaryChunksFromFile"],
    keys=["lookbackStart", "customDelimiter", *_READER_KEYS],
)
def recent_memory_summarizer_tool(call: NodeCall) -> str:
    """The latest chunk memories."""
    turns, lookback = call.number("maxTurnsToPull", 0), call.number("lookbackStart", 0)
    count = call.number("maxSummaryChunksFromFile", 0) or 3
    delimiter, reader = call.render("customDelimiter", CHUNK_BREAK), find_reader(call)
    if reader:
        return give(call, reader.recent(count), NO_MEMORIES, delimiter)
    return recent_turns(call.messages, turns, lookback)


@node("FullChatSummary", keys=["isManualConfig", *_READER_KEYS, UPDATE_FIRST, MAX_TOKENS])
def full_chat_summary(call: NodeCall) -> str:
    """The rolling summary, and the chunk memories that came after it."""
    if not call.flag("isManualConfig"):
        _update_first(call)
    tokens, reader = call.number(MAX_TOKENS, 0), find_reader(call)
    return give(call, reader.full_summary(tokens), NO_SUMMARY) if reader else recent_turns(call.messages, tokens=tokens)


@node("GetCurrentSummaryFromFile", keys=_READER_KEYS)
def get_current_summary(call: NodeCall) -> str:
    """The rolling summary."""
    reader = find_reader(call)
    return give(call, reader.summary(), NO_SUMMARY) if reader else recent_turns(call.messages)


@node("GetCurrentMemoryFromFile", keys=["customDelimiter", *_READER_KEYS])
def get_current_memory(call: NodeCall) -> str:
    """All chunk memories."""
    delimiter, reader = call.render("customDelimiter", CHUNK_BREAK), find_reader(call)
    return give(call, reader.all(), NO_MEMORIES, delimiter) if reader else recent_turns(call.messages)


@node("GetCurrentStateDocument", keys=[ACROSS])
def get_current_state_document(call: NodeCall) -> str:
    """The state document. Turns of a chat are none: without a discussion it is empty."""
    reader = find_reader(call)
    return give(call, reader.state_document()) if reader else ""


@node("ChatSummaryMemoryGatheringTool", required=["maxTurnsToPull"], keys=_READER_KEYS)
def chat_summary_memory_gathering_tool(call: NodeCall) -> str:
    """The chunk memories that the rolling summary does not hold yet."""
    turns, reader = call.number("maxTurnsToPull", 0), find_reader(call)
    return give(call, reader.new(), NO_MEMORIES) if reader else recent_turns(call.messages, turns)


@node(
    "VectorMemorySearch",
    required=["input"],
    keys=[
        *("limit", WEIGHTS, "useRecencyScoring", "includeDates", "searchMode", "semanticQuery"),
        *("embeddingEndpointName", "useEntityExpansion", *_READER_KEYS),
    ],
)
def vector_memory_search(call: NodeCall) -> str:
    """The keyword memories that have any of the keywords, best first."""
    weights = call.node.get(WEIGHTS)
    if problem := key_problem(WEIGHTS, weights):
        raise WorkflowError(problem)
    query = KeywordQuery(
        keywords=call.render("input"),
        limit=call.number("limit", 0),
        weights=EQUAL_WEIGHTS if weights is None else weights,
        use_recency=call.flag("useRecencyScoring"),
        mode=cast("SearchMode", call.choice("searchMode", "keyword")),
        semantic_query=call.render("semanticQuery"),
        use_entity_expansion=call.flag("useEntityExpansion"),
    )
    include_dates = call.flag("includeDates")
    if reader := find_reader(call):
        return give(call, reader.search_keywords(query, include_dates=include_dates), NO_MATCH)
    return NO_ID if call.is_on(HOST_MESSAGES) else ""


def _update_first(call: NodeCall) -> None:
    """Make the memories that are due, where the node, its workflow or the run says so."""
    if call.run.scope and call.is_on(UPDATE_FIRST):
        make_memories(call)


@node(
    "QualityMemory",
    keys=["force", "whole"],
    takes_in=True,
    workflows=lambda _, environment: [environment.user_settings.chat_summary_workflow],
)
def quality_memory(call: NodeCall) -> str:
    """Take in the messages of the chat, and make the memories that are due. It gives nothing."""
    if call.run.scope:
        make_memories(call, force=call.flag("force"), is_whole=call.flag("whole"))
    return ""


@node("chatSummarySummarizer", keys=[*MODEL_KEYS, "minMemoriesPerSummary", "loopIfMemoriesExceed"], takes_in=True)
def chat_summary_summarizer(call: NodeCall) -> str:
    """Fold new chunk memories into the rolling summary, and give it."""
    llm, memory, scope, author = call.find_model(), call.run.memory, call.run.scope, None
    if llm:
        system, prompt = (
            call.node.get("systemPrompt") or SUMMARY_PROMPTS.system,
            call.node.get("prompt") or SUMMARY_PROMPTS.prompt,
        )
        author = _NodeAuthor(call, llm.name, SUMMARY_PROMPTS._replace(system=system, prompt=prompt))
    settings = call.run.environment.settings.summary
    least = call.number("minMemoriesPerSummary", settings.least_memories)
    most = call.number("loopIfMemoriesExceed", settings.most_memories)
    settings = replace(settings, is_on=True, least_memories=least, most_memories=most)
    if not scope or not memory:
        turns = recent_turns(call.messages, ALL)
        return author.write({"CHAT_SUMMARY": "", "LATEST_MEMORIES": turns}) if author and turns else turns
    try:
        is_written = update_summary(memory, scope, settings, author) is not None
        for lease in () if is_written else memory.leases.list(scope, SUMMARY_LEASE):
            if lease.is_held:
                call.note("the summary stays as it is: somebody else writes it just now")
            elif lease.retry:
                moment = f"{lease.retry:%H:%M:%S %Z}"
                call.note(f"the summary stays as it is until it is tried again at {moment}: {lease.error}")
    except (LlmError, WorkflowError) as error:
        call.note(f"the summary stays as it is, and what is new stays due: {error}")
    return give(call, DiscussionReader(memory, [scope]).summary())


@node("WriteCurrentSummaryToFileAndReturnIt", required=["input"], takes_in=True)
def write_current_summary(call: NodeCall) -> str:
    """Put a text in place of the rolling summary, and give it. A blank one changes nothing."""
    text, memory, scope = call.render("input"), call.run.memory, call.run.scope
    if not scope or not memory:
        return text
    current = escape_memory(current_summary(memory, scope))
    if not text.strip():
        call.note("the input is empty: the summary stays as it is")
        return current
    if text != current:
        write_summary(memory, scope, text, author=f"workflow:{call.run.workflow.name}")
    return text


@dataclass(frozen=True, slots=True)
class _NodeAuthor:
    """The language model of a node as an author of memories, asked with the node's own prompts."""

    call: NodeCall
    name: str
    prompts: Prompts

    def reads(self, name: str) -> bool:
        return name in f"{self.prompts.system}{self.prompts.prompt}" or name in self.prompts.material

    def write(self, inputs: Mapping[str, str]) -> str:
        """Ask with the inputs in the place of their names, in one pass: a name that somebody typed stays a word."""
        values = {name: fence(name, text) for name, text in inputs.items()}
        system, prompt, material = self.prompts
        missing = [values[name] for name in material if name not in f"{system}{prompt}"]
        text = "\n\n".join([self.call.render_text(prompt, values), *missing])
        return check_answer(self.call.ask(text, self.call.render_text(system, values)), self.name)
