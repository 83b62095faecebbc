"""A scripted author of wikis: as a chat model in this process, and behind a server that speaks as OpenAI's do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult

Message = dict[str, Any]
Call = tuple[str, dict[str, Any]]
Step = str | Call | list[Call] | tuple[str, list[Call]]
"""What the author says at one call: a text, calls of tools, or both."""


class Author:
    """Follows a script for the plan, and one for each page: step n is the answer to the nth call of a run."""

    def __init__(self, pages: Sequence[str] = ("overview", "cart", "orders"), files: Sequence[str] = ()) -> None:
        self.pages = pages
        self.files = list(files)
        self.seen: list[list[Message]] = []
        self.planning: list[Step] = []
        """Before the structure is given."""
        self.structure: dict[str, Any] | None = None
        self.page_script: Callable[[str], list[Step]] = lambda id: [f"# Page {id}\n\nText of {id}."]
        self.on_page: Callable[[str], object] = lambda id: None
        self.on_begin: Callable[[str], object] = lambda id: None
        """Called at the first call of each run, that of the plan with an empty id, before anything is noted."""
        self._lock = Lock()

    @property
    def written(self) -> list[str]:
        """The pages for which an agent was asked, in the order in which they were begun."""
        return [id for messages in self.seen if (id := page_id(messages)) and turn(messages) == 0]

    @property
    def plans(self) -> int:
        return sum(not page_id(messages) and turn(messages) == 0 for messages in self.seen)

    def results(self, tool: str) -> list[str]:
        """What a tool has answered, each answer once."""
        answers: dict[str, str] = {}
        for messages in self.seen:
            names = {call["id"]: call["function"]["name"] for each in messages for call in each.get("tool_calls") or ()}
            for each in messages:
                if each["role"] == "tool" and names.get(each["tool_call_id"]) == tool:
                    answers[each["tool_call_id"]] = text_of(each)
        return list(answers.values())

    def answer(self, messages: list[Message]) -> tuple[str, list[Call]]:
        page = page_id(messages)
        if turn(messages) == 0:
            self.on_begin(page)
        with self._lock:
            self.seen.append(messages)
        if page and turn(messages) == 0:
            self.on_page(page)
        script = self.page_script(page) if page else [*self.planning, [("WikiStructure", self._structure())]]
        step = script[min(turn(messages), len(script) - 1)]
        if isinstance(step, str):
            return step, []
        if isinstance(step, list):
            return "", step
        text, rest = step
        return (text, rest) if isinstance(rest, list) else ("", [(text, rest)])

    def _structure(self) -> dict[str, Any]:
        pages = [
            {"id": id, "title": id.title(), "description": f"About {id}.", "importance": "high"} for id in self.pages
        ]
        sections = [{"title": "All", "pages": [{**page, "file_paths": self.files} for page in pages]}]
        return self.structure or {"title": "The shop", "description": "What it does.", "sections": sections}


class AuthorModel(BaseChatModel):
    """The author as a chat model of LangChain."""

    author: Any

    @property
    def _llm_type(self) -> str:
        return "author"

    def bind_tools(self, tools: Any, **settings: Any) -> AuthorModel:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **values: Any) -> ChatResult:
        asked: Any = convert_to_openai_messages(messages)
        text, calls = self.author.answer(asked)
        ids = (f"call-{len(self.author.seen)}-{number}" for number in range(len(calls)))
        tool_calls = [{"name": name, "args": args, "id": id} for (name, args), id in zip(calls, ids, strict=True)]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, tool_calls=tool_calls))])


@contextmanager
def author_server(author: Author) -> Iterator[str]:
    """The author behind a real server; gives what to pass as `--model`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                text, calls = author.answer(request["messages"])
                body, status = _completion(text, calls, len(author.seen)), 200
            except Exception as error:
                body, status = {"error": {"message": str(error)}}, 400
            content = json.dumps(body).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:  # who asked was killed meanwhile
                pass

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"openai:author@http://127.0.0.1:{http.server_port}/v1"
        finally:
            http.shutdown()
            thread.join()


def page_id(messages: Sequence[Message]) -> str:
    """The page that a run is about; empty for the plan."""
    asked = next(text_of(each) for each in messages if each["role"] == "user")
    match = re.match(r"Write the page (\S+)\.", asked)
    return match[1] if match else ""


def turn(messages: Sequence[Message]) -> int:
    return sum(each["role"] == "assistant" for each in messages)


def text_of(message: Message) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _completion(text: str, calls: list[Call], number: int) -> dict[str, Any]:
    tool_calls = [
        {"id": f"call-{number}-{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for place, (name, args) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": tool_calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "author",
        "choices": [choice],
        "usage": usage,
    }
