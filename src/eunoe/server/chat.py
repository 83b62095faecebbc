"""The chat door: OpenAI's chat completions, by a model with memory around it or by a workflow."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException, HTTPResponse
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Header, Request
from starlette.background import BackgroundTask
from starlette.responses import JSONResponse, Response, StreamingResponse

from eunoe.apps.discussion.model import take_tag
from eunoe.apps.discussion.texts import message_text
from eunoe.apps.discussion.workflow import Environment, Workflow, run_workflow
from eunoe.apps.discussion.workflow.document import ModelMap, find_workflow
from eunoe.apps.discussion.workflow.run import WorkflowResult
from eunoe.apps.discussion.workflow.texts import read_messages
from eunoe.errors import AccessError, EunoeError, InputError, LlmError, NotFoundError, ScopeError, WorkflowError
from eunoe.llm import load_llm
from eunoe.llm.remote import OpenAILlm
from eunoe.model.arguments import show
from eunoe.model.scope import Scope
from eunoe.net.http import HttpError
from eunoe.net.local_server import default_scope
from eunoe.server.access import Caller
from eunoe.server.config import ServerConfig
from eunoe.server.keys import OWNER
from eunoe.server.problems import NoLlmError
from eunoe.server.requests import CallerParam, ServicesParam

router = APIRouter(tags=["chat"])

_WORKFLOW: Final = "workflow:"
_OWN_MODEL: Final = "eunoe"
"""The name under which the server's own model is listed: a chat need not know its real one."""
_CONVERSATION_KEYS: Final = ("session", "thread", "discussion")
_ID_CHARACTERS: Final = 24
_CONTEXT_TOKENS: Final = 2000
"""The most that memory adds to a request, so that it never fills a model's window."""
_MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
_DATA: Final = b"data:"
_log = logging.getLogger("eunoe.server")
_unfinished: set[asyncio.Task[None]] = set()
"""What is still to be kept of chats that were streamed."""
_threads: Final = ThreadPoolExecutor(256, thread_name_prefix="eunoe-chat")
T = TypeVar("T")

ScopeHeader = Annotated[str, Header(alias="Eunoe-Scope", description="Whose memory, if the key does not say it.")]


@dataclass(frozen=True, slots=True)
class Chat:
    """One request of a chat: whose it is, and what was said."""

    caller: Caller
    scope: Scope
    messages: Sequence[Mapping[str, Any]]

    async def with_context(self) -> list[dict[str, Any]]:
        """The messages with memory in them: what always stands there in the user's first, what was recalled in the
        last. Both are the user's own words, so that no order of roles is broken and no memory speaks as the system."""
        messages = [dict(message) for message in self.messages]
        places = [place for place, message in enumerate(messages) if message["role"] == "user"]
        if not places:
            return messages
        try:
            question = message_text(messages[places[-1]])
            context = await self.caller.async_memory.context(self.scope, question, tokens=_CONTEXT_TOKENS)
        except AccessError:
            raise
        except EunoeError as error:
            _log.warning("a chat goes on without memory: %s", error)
            return messages
        recalled = context.text[len(context.static) :].strip()
        for place, text in ((places[-1], recalled), (places[0], context.static)):
            if text:
                messages[place]["content"] = _with_text(text, messages[place].get("content"))
        return messages

    async def keep(self, answer: str) -> None:
        """Observe what was said since the last answer, and the answer."""
        said = list(enumerate(self.messages))
        last = max((place for place, message in said if message["role"] == "assistant"), default=-1)
        turn = [
            (place, "user", message_text(message)) for place, message in said[last + 1 :] if message["role"] == "user"
        ]
        turn.append((len(said), "assistant", answer))
        messages = [
            {"role": role, "content": text, "id": _fingerprint(self.scope.text, str(place), role, text)}
            for place, role, text in turn
            if text.strip()
        ]
        try:
            await self.caller.async_memory.observe(self.scope, messages)
        except AccessError:  # a key that may not write has memory that does not grow
            return
        except EunoeError as error:
            _log.warning("a turn of a chat was not kept: %s", error)


@router.get("/models", summary="Models that a chat may name")
async def list_models(caller: CallerParam, services: ServicesParam) -> Response:
    """The server's own model, and its workflows."""
    folder = services.config.workflows
    names = sorted(path.stem for path in folder.glob("*.json")) if folder else []
    ids = [_OWN_MODEL, *(_WORKFLOW + name for name in names)]
    models = [{"id": id, "object": "model", "created": 0, "owned_by": "eunoe"} for id in ids]
    return JSONResponse({"object": "list", "data": models})


@router.post("/chat/completions", summary="Chat with a model that remembers")
async def complete_chat(
    request: Request, caller: CallerParam, services: ServicesParam, scope: ScopeHeader = ""
) -> Response:
    """OpenAI's chat completions. Memory goes into the request, the model's answer comes back as it is, streamed if that
    is asked for, and then the turn is kept. `model` is `eunoe`, a name that the upstream knows, or `workflow:NAME`.
    """
    body = await asyncio.to_thread(_read_body, await request.body())
    tag, messages = take_tag(read_messages(body["messages"]))
    model, owner = str(body.get("model") or _OWN_MODEL), _find_owner(caller, scope)
    if model.startswith(_WORKFLOW):
        workflow = model.removeprefix(_WORKFLOW)
        try:
            run = _workflow_run(caller, services.config, workflow, messages, owner, tag)
            return await _answer_by_workflow(run, model, is_stream=body.get("stream") is True)
        except WorkflowError as error:  # it names files of the server
            _log.warning("%s failed: %s", model, error)
            raise LlmError(f"{model} failed; the server's log says why") from None
    chat = Chat(caller, _with_conversation(owner, messages), messages)
    upstream = await asyncio.to_thread(_find_upstream, services.config)
    if model != _OWN_MODEL:
        body["model"] = model
    elif upstream.model:
        body["model"] = upstream.model
    body["messages"] = await chat.with_context()
    try:
        answer = await _wait_for(upstream.open, body)
    except HttpError as error:
        if not error.status:
            raise LlmError(str(error)) from error
        return _refusal(error)
    kind = answer.headers.get("Content-Type") or "application/json"
    if body.get("stream") is True:
        return StreamingResponse(_stream(answer, chat), media_type=kind)
    return await _whole(answer, chat, kind)


def _read_body(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
        raise InputError("messages is missing: send a list of messages with role and content")
    return body


def _find_owner(caller: Caller, named: str) -> Scope:
    """Whose memory it is: as the request names it, else as the key is bound."""
    if named:
        return Scope.parse(_header_text(named))
    if len(caller.key.scopes) == 1:
        return caller.key.scopes[0]
    if caller.key is OWNER:
        return default_scope()
    raise ScopeError("the key does not say whose memory it is: send the header Eunoe-Scope, such as user=anna")


def _header_text(value: str) -> str:
    """A header's words, whether they came as UTF-8 or, as browsers send them, as Latin-1."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _with_conversation(owner: Scope, messages: Sequence[Mapping[str, Any]]) -> Scope:
    """The scope of the conversation. Clients send none: it goes by how the conversation began."""
    if any(key in owner for key in _CONVERSATION_KEYS):
        return owner
    first = next((message_text(message) for message in messages if message["role"] == "user"), "")
    return owner.extended({"session": f"chat-{_fingerprint(first)}"})


def _fingerprint(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:_ID_CHARACTERS]


def _with_text(text: str, content: Any) -> Any:
    """The content of a message, a text or a list of parts, with a text before it."""
    if isinstance(content, list):
        return [{"type": "text", "text": text}, *content]
    return f"{text}\n\n{content or ''}"


def _find_upstream(config: ServerConfig) -> OpenAILlm:
    llm = load_llm(config.llm)
    if not isinstance(llm, OpenAILlm):
        raise NoLlmError("a chat needs an OpenAI-compatible model: start the server with --llm openai:MODEL@URL")
    return llm


def _refusal(error: HttpError) -> Response:
    """What the upstream answered, as it answered it."""
    kind = "application/json" if error.refusal.lstrip().startswith("{") else "text/plain"
    wait = {"Retry-After": str(int(error.retry_after))} if error.retry_after else None
    return Response(error.refusal, error.status, wait, media_type=kind)


async def _whole(answer: HTTPResponse, chat: Chat, kind: str) -> Response:
    try:
        with answer:
            content = await _wait_for(answer.read, _MAX_ANSWER_BYTES + 1)
    except (OSError, HTTPException) as error:
        raise LlmError(f"the model's answer broke off: {type(error).__name__}") from error
    if len(content) > _MAX_ANSWER_BYTES:
        raise LlmError(f"the model's answer is longer than {_MAX_ANSWER_BYTES:,} bytes")
    text = _text_of(content, "message")
    return Response(content, media_type=kind, background=BackgroundTask(chat.keep, text))


async def _stream(answer: HTTPResponse, chat: Chat) -> AsyncIterator[bytes]:
    """Pass lines on as they come. What was said is kept behind them, also where the caller has gone, or the model."""
    texts: list[str] = []
    try:
        while line := await _wait_for(answer.readline):
            if line.startswith(_DATA):
                texts.append(_text_of(line[len(_DATA) :], "delta"))
            yield line
    finally:
        task = asyncio.create_task(_end(answer, chat, "".join(texts)))
        _unfinished.add(task)
        task.add_done_callback(_unfinished.discard)


async def _end(answer: HTTPResponse, chat: Chat, text: str) -> None:
    await chat.keep(text)
    await _wait_for(answer.close)  # where a read still waits for the model, this waits for it


def _wait_for(call: Callable[..., T], *arguments: Any) -> Awaitable[T]:
    """Call the model in a thread of the chats' own: a slow one holds up no other work of the server."""
    return asyncio.get_running_loop().run_in_executor(_threads, call, *arguments)


def _text_of(content: bytes, part: str) -> str:
    """What a choice says; nothing where there is none."""
    try:
        text = json.loads(content)["choices"][0][part]["content"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return ""
    return text if isinstance(text, str) else ""


def _workflow_run(
    caller: Caller, config: ServerConfig, name: str, messages: Sequence[Mapping[str, Any]], owner: Scope, tag: str
) -> Callable[[Callable[[str], None]], WorkflowResult]:
    """A workflow that is ready to run. Its discussion is the one that a tag names, else that of the conversation."""
    keys = owner.pairs.keys() - {"tenant", *_CONVERSATION_KEYS}
    if keys != {"user"}:
        raise ScopeError(f"a workflow keeps a discussion of one user, and {owner} is not that: name user=..., alone")
    if config.workflows is None:
        raise NotFoundError(f"there is no {show(name)}: start the server with --workflows DIR")
    try:
        path = find_workflow(config.workflows, name)
    except WorkflowError:
        raise NotFoundError(f"there is no workflow {show(name)}") from None
    workflow = Workflow.load(path)
    environment = Environment(models=ModelMap(default=load_llm(config.llm)), workflows=config.workflows)
    conversation = _with_conversation(owner, messages)
    id = tag or next(conversation.pairs[key] for key in reversed(_CONVERSATION_KEYS) if key in conversation)
    return lambda respond: run_workflow(
        workflow,
        memory=caller.memory,
        messages=messages,
        discussion_id=id,
        user=owner["user"],
        environment=environment,
        respond=respond,
    )


async def _answer_by_workflow(
    run: Callable[[Callable[[str], None]], WorkflowResult], model: str, *, is_stream: bool
) -> Response:
    """Answer as soon as the workflow's result is there; later nodes run on behind it."""
    loop, reply = asyncio.get_running_loop(), asyncio.Queue[str]()

    def respond(text: str) -> None:
        loop.call_soon_threadsafe(reply.put_nowait, text)

    task, first = asyncio.ensure_future(_wait_for(run, respond)), asyncio.ensure_future(reply.get())
    await asyncio.wait([task, first], return_when=asyncio.FIRST_COMPLETED)
    text = first.result() if first.done() else (await task).text
    first.cancel()

    async def finish() -> None:
        try:
            await task
        except EunoeError as error:
            _log.warning("a workflow failed behind its reply: %s", error)

    frame = {"id": f"chatcmpl-{_fingerprint(text, str(time.time()))}", "created": int(time.time()), "model": model}
    if not is_stream:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body = {**frame, "object": "chat.completion", "choices": [choice]}
        return JSONResponse(body, background=BackgroundTask(finish))
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": text}, None), ({}, "stop")]
    chunks = [
        {
            **frame,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
        for delta, reason in deltas
    ]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return StreamingResponse(
        iter([*lines, "data: [DONE]\n\n"]), media_type="text/event-stream", background=BackgroundTask(finish)
    )
