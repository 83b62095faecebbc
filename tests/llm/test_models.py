"""Models behind a real HTTP server, models out of objects, and what a memory counts of them."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe import llm
from eunoe.errors import LlmError
from eunoe.llm import Prompt, Reply, load, price
from eunoe.llm.anthropic import Anthropic
from eunoe.llm.models import Models
from eunoe.llm.openai import OpenAI
from eunoe.llm.scripted import Scripted
from eunoe.net import endpoint as endpoints

SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}
PLAIN = Prompt("Be kind.", "Hello", operation="chat")
ASKED = Prompt("List facts.", "Anna plays the cello.", SCHEMA, "facts", 500, "extraction")
VARIABLES = ("EUNOE_LLM", "EUNOE_LLM_FAST", "EUNOE_LLM_PRICE", "EUNOE_LLM_CONCURRENCY", "EUNOE_LLM_TIMEOUT",
             "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")  # fmt: skip

Answer = Callable[["Endpoint", dict[str, Any]], tuple[int, bytes, dict[str, str]]]


class Endpoint(ThreadingHTTPServer):
    """A local server of models: the answers queued in `script` first, good ones after."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Answer] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.models = says(200, {"data": [{"id": "first"}, {"id": "second"}]})
        self.release = threading.Event()
        self.root = f"http://127.0.0.1:{self.server_address[1]}"
        self.url = self.root + "/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"path": self.path, **body})
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self._answer(*(self.server.script.pop(0) if self.server.script else good)(self.server, body))

    def do_GET(self) -> None:
        self.server.requests.append({"path": self.path})
        self._answer(*self.server.models(self.server, {}))

    def _answer(self, status: int, answer: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(answer)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def good(endpoint: Endpoint, body: dict[str, Any]) -> tuple[int, bytes, dict[str, str]]:
    if "tools" in body:
        content: list[dict[str, Any]] = [{"type": "tool_use", "name": "facts", "input": {"facts": ["cello"]}}]
    else:
        content = [{"type": "thinking", "thinking": "..."}, {"type": "text", "text": "Hi."}]
    text = '{"facts": ["cello"]}' if "response_format" in body else "Hi."
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "input_tokens": 5,
        "cache_read_input_tokens": 6,
        "output_tokens": 7,
    }
    answer = {"choices": [{"message": {"content": text}}], "content": content, "usage": usage}
    return 200, json.dumps(answer).encode(), {}  # fmt: skip


def says(status: int, body: Any = "trouble", **headers: str) -> Answer:
    answer = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda endpoint, asked: (status, answer, {k.replace("_", "-"): v for k, v in headers.items()})


def hangs(endpoint: Endpoint, asked: dict[str, Any]) -> tuple[int, bytes, dict[str, str]]:
    endpoint.release.wait(30)
    return good(endpoint, asked)


def refuses(*fields: str) -> Answer:
    """A server that does not know these fields, or the values in them."""

    def answer(endpoint: Endpoint, body: dict[str, Any]) -> tuple[int, bytes, dict[str, str]]:
        form = body.get("response_format", {}).get("type")
        unknown = [field for field in fields if field in body or field == form]
        if not unknown:
            return good(endpoint, body)
        return 400, json.dumps({"error": {"message": f"Unsupported: {unknown[0]}"}}).encode(), {}

    return answer


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server
        server.release.set()
        server.shutdown()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, taken down instead of slept through."""
    taken: list[float] = []
    monkeypatch.setattr(endpoints, "_sleep", taken.append)
    return taken


def forms(endpoint: Endpoint) -> list[str]:
    return [request.get("response_format", {}).get("type", "") for request in endpoint.requests]


class TestOpenAI:
    def test_a_plain_question(self, endpoint: Endpoint) -> None:
        reply = OpenAI("m", base_url=endpoint.url + "/", api_key=" sk-1\n").ask(PLAIN)
        assert reply == Reply("Hi.", 11, 7, 0.0)
        messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
        expected = {"path": "/v1/chat/completions", "model": "m", "messages": messages}
        assert endpoint.requests == [{**expected, "max_tokens": 2000, "temperature": 0}]
        assert endpoint.headers[0]["authorization"] == "Bearer sk-1"

    def test_a_schema_goes_on_the_wire(self, endpoint: Endpoint) -> None:
        assert OpenAI("m", base_url=endpoint.url).ask(ASKED).text == '{"facts": ["cello"]}'
        wanted = {"name": "facts", "schema": SCHEMA, "strict": True}
        assert endpoint.requests[0]["response_format"] == {"type": "json_schema", "json_schema": wanted}
        assert endpoint.requests[0]["messages"][0]["content"] == "List facts."

    @pytest.mark.parametrize(
        "loose", [{"type": "object"}, {**SCHEMA, "required": []}, {"type": "array", "items": {"type": "object"}}]
    )
    def test_only_schemas_that_obey_its_rules_are_strict(self, loose: Any, endpoint: Endpoint) -> None:
        OpenAI("m", base_url=endpoint.url).ask(Prompt("s", "t", {**SCHEMA, "properties": {"facts": loose}}))
        assert endpoint.requests[0]["response_format"]["json_schema"]["strict"] is False

    @pytest.mark.parametrize(
        ("refused", "tried"),
        [
            (["json_schema"], ["json_schema", "json_object", "json_object"]),
            (["response_format"], ["json_schema", "json_object", "", ""]),
        ],
    )
    def test_a_server_without_schemas_is_asked_in_words_and_remembered(
        self, refused: list[str], tried: list[str], endpoint: Endpoint
    ) -> None:
        endpoint.script = [refuses(*refused)] * 4
        model = OpenAI("m", base_url=endpoint.url)
        model.ask(ASKED)
        model.ask(ASKED)
        assert forms(endpoint) == tried
        assert json.dumps(SCHEMA) in endpoint.requests[-1]["messages"][0]["content"]

    def test_a_refusal_for_another_reason_teaches_nothing(self, endpoint: Endpoint) -> None:
        endpoint.script = [says(400, {"error": {"message": "prompt too long"}})] * 3
        model = OpenAI("m", base_url=endpoint.url)
        with pytest.raises(LlmError, match="answered 400: prompt too long"):
            model.ask(ASKED)
        model.ask(ASKED)
        assert forms(endpoint) == ["json_schema", "json_object", "", "json_schema"]

    def test_what_a_server_does_not_accept_is_left_out_from_then_on(self, endpoint: Endpoint) -> None:
        def picky(server: Endpoint, body: dict[str, Any]) -> tuple[int, bytes, dict[str, str]]:
            for field, cure in (("temperature", "leave it out"), ("max_tokens", "use max_completion_tokens")):
                if field in body:
                    return 400, f"{field}: {cure}".encode(), {}
            return good(server, body)

        endpoint.script = [picky] * 4
        model = OpenAI("m", base_url=endpoint.url)
        assert [model.ask(PLAIN).text, model.ask(ASKED).text] == ["Hi.", '{"facts": ["cello"]}']
        assert len(endpoint.requests) == 4
        assert endpoint.requests[-1]["max_completion_tokens"] == 500

    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
    def test_passing_trouble_is_retried_with_growing_pauses(
        self, status: int, endpoint: Endpoint, waits: list[float]
    ) -> None:
        endpoint.script = [says(status)] * 3
        assert OpenAI("m", base_url=endpoint.url).ask(PLAIN).text == "Hi."
        assert waits == [0.5, 1.0, 2.0]

    @pytest.mark.parametrize(("header", "wait"), [("7", 7), ("9999", 30), ("Wed, 21 Oct 2015", 0.5)])
    def test_the_pause_a_server_asks_for_is_kept_within_bounds(
        self, header: str, wait: float, endpoint: Endpoint, waits: list[float]
    ) -> None:
        endpoint.script = [says(429, Retry_After=header)]
        OpenAI("m", base_url=endpoint.url).ask(PLAIN)
        assert waits == [wait]

    def test_retries_end(self, endpoint: Endpoint) -> None:
        endpoint.script = [says(503, "overloaded")] * 99
        with pytest.raises(LlmError, match="answered 503: overloaded"):
            OpenAI("m", base_url=endpoint.url).ask(PLAIN)
        assert len(endpoint.requests) == 4

    def test_an_asker_without_patience_is_answered_at_once(self, endpoint: Endpoint, waits: list[float]) -> None:
        endpoint.script = [says(503)] * 99
        with pytest.raises(LlmError, match="answered 503"):
            OpenAI("m", base_url=endpoint.url).ask(Prompt("s", "t", patience=0.4))
        assert (len(endpoint.requests), waits) == (1, [])

    @pytest.mark.parametrize("status", [301, 401, 403, 404, 413, 422])
    def test_a_refusal_is_not_retried(self, status: int, endpoint: Endpoint, waits: list[float]) -> None:
        endpoint.script = [says(status, {"error": "no"}, Location=endpoint.url + "/elsewhere")]
        with pytest.raises(LlmError, match=f"answered {status}: no"):
            OpenAI("m", base_url=endpoint.url, api_key="sk-1").ask(PLAIN)
        assert (len(endpoint.requests), waits) == (1, [])

    def test_a_refusal_that_repeats_the_prompt_is_not_shown(self, endpoint: Endpoint) -> None:
        endpoint.script = [says(422, {"detail": [{"loc": ["body"], "input": "Anna plays the cello."}]})]
        with pytest.raises(LlmError, match="no reason that can be shown") as caught:
            OpenAI("m", base_url=endpoint.url).ask(PLAIN)
        assert "cello" not in str(caught.value)

    def test_nobody_there_is_a_typed_error(self, endpoint: Endpoint, waits: list[float]) -> None:
        endpoint.shutdown()
        endpoint.server_close()
        with pytest.raises(LlmError, match="cannot be reached: ConnectionRefusedError"):
            OpenAI("m", base_url=endpoint.url).ask(PLAIN)
        assert len(waits) == 3

    def test_a_silent_server_is_left(self, endpoint: Endpoint) -> None:
        endpoint.script = [hangs] * 2
        with pytest.raises(LlmError, match=r"cannot be reached: .*[Tt]ime"):
            OpenAI("m", base_url=endpoint.url, timeout=0.05, attempts=2).ask(PLAIN)

    def test_an_answer_that_comes_drop_by_drop_is_left(
        self, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ticks = itertools.count(0, 121)
        monkeypatch.setattr(endpoints, "_clock", lambda: next(ticks))
        with pytest.raises(LlmError, match=r"no whole answer within 120\.0 s"):
            OpenAI("m", base_url=endpoint.url).ask(PLAIN)

    def test_an_answer_that_breaks_off_is_retried(self, endpoint: Endpoint, waits: list[float]) -> None:
        endpoint.script = [says(200, b'{"choices"', Content_Length="1000")]
        assert OpenAI("m", base_url=endpoint.url).ask(PLAIN).text == "Hi."
        assert waits == [0.5]

    @pytest.mark.parametrize(
        "body",
        [b"<html>", b"\xff\xfe", b"", b"[" * 100_000, [], {}, {"choices": []}, {"choices": [{"message": "x"}]}],
        ids=lambda body: repr(body)[:20],
    )
    def test_garbage_is_a_typed_error(self, body: Any, endpoint: Endpoint) -> None:
        endpoint.script = [says(200, body)]
        with pytest.raises(LlmError, match="gave something that is not an answer"):
            OpenAI("m", base_url=endpoint.url).ask(PLAIN)

    @pytest.mark.parametrize(
        ("message", "why"),
        [({"content": None}, "empty answer$"), ({"content": " \n"}, "empty answer$"), ({"refusal": "no"}, "declined")],
    )
    def test_an_empty_answer_is_a_typed_error(self, message: Any, why: str, endpoint: Endpoint) -> None:
        endpoint.script = [says(200, {"choices": [{"message": message}]})]
        with pytest.raises(LlmError, match=why):
            OpenAI("m", base_url=endpoint.url).ask(PLAIN)

    @pytest.mark.parametrize("status", [200, 401])
    def test_a_key_repeated_by_the_server_is_not_shown(self, status: int, endpoint: Endpoint) -> None:
        endpoint.script = [says(status, {"error": "Incorrect key sk-secret"})]
        with pytest.raises(LlmError) as caught:
            OpenAI("m", base_url=endpoint.url, api_key="sk-secret").ask(PLAIN)
        assert "secret" not in repr(caught.value) + repr(caught.value.__cause__)

    def test_odd_texts_arrive_as_valid_unicode(self, endpoint: Endpoint) -> None:
        OpenAI("m", base_url=endpoint.url).ask(Prompt("s", "a\ud800\0 \ud83d\ude00"))
        assert endpoint.requests[0]["messages"][1]["content"] == "a\ufffd\0 😀"

    def test_a_price_that_was_given_counts(self, endpoint: Endpoint) -> None:
        priced = load(f"openai:m@{endpoint.url}?price=1000000/2000000")
        assert priced
        assert priced.ask(PLAIN).cost == 11 + 2 * 7


class TestAnthropic:
    def test_a_plain_question(self, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", endpoint.root)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-2")
        model = load("anthropic:claude")
        assert model
        assert (model.name, model.ask(PLAIN)) == ("anthropic:claude", Reply("Hi.", 11, 7, 0.0))
        (request,) = endpoint.requests
        assert request["path"] == "/v1/messages"
        assert request["system"] == "Be kind."
        assert request["messages"] == [{"role": "user", "content": "Hello"}]
        assert endpoint.headers[0]["x-api-key"] == "sk-2"
        assert endpoint.headers[0]["anthropic-version"]

    def test_a_structured_answer_is_a_tool_it_must_call(self, endpoint: Endpoint) -> None:
        assert json.loads(Anthropic("m", base_url=endpoint.url).ask(ASKED).text) == {"facts": ["cello"]}
        (request,) = endpoint.requests
        assert request["tools"][0]["input_schema"] == SCHEMA
        assert request["tool_choice"] == {"type": "tool", "name": "facts"}

    def test_a_server_without_tools_is_asked_in_words_and_remembered(self, endpoint: Endpoint) -> None:
        endpoint.script = [refuses("tools")] * 3
        model = Anthropic("m", base_url=endpoint.root)
        assert [model.ask(ASKED).text, model.ask(ASKED).text] == ["Hi.", "Hi."]
        assert ["tools" in request for request in endpoint.requests] == [True, False, False]
        assert json.dumps(SCHEMA) in endpoint.requests[-1]["system"]

    def test_its_public_endpoint_needs_a_key(self) -> None:
        with pytest.raises(LlmError, match="set ANTHROPIC_API_KEY"):
            load("anthropic:m")


class TestLoad:
    @pytest.mark.parametrize("spec", [None, "none", "auto"])
    def test_none(self, spec: Any) -> None:
        assert load(spec) is None

    def test_the_environment_names_one(self, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM", f" {endpoint.url}?model=big ")
        monkeypatch.setenv("EUNOE_LLM_FAST", f"openai:small@{endpoint.url}")
        models = Models()
        assert models.names == "openai:big, openai:small (fast)"
        assert endpoint.requests == []

    def test_an_address_alone_takes_the_first_model_that_is_listed(self, endpoint: Endpoint) -> None:
        model = load(endpoint.url)
        assert model
        assert [model.ask(PLAIN).text, model.ask(PLAIN).text] == ["Hi.", "Hi."]
        assert [request["path"] for request in endpoint.requests].count("/v1/models") == 1
        assert endpoint.requests[-1]["model"] == "first"
        assert model.name == endpoint.url

    def test_a_server_that_lists_none_is_a_typed_error(self, endpoint: Endpoint) -> None:
        endpoint.models = says(200, {"data": []})
        model = load(endpoint.url)
        assert model
        with pytest.raises(LlmError, match=r"lists no model: name one with \?model=NAME"):
            model.ask(PLAIN)

    @pytest.mark.parametrize(
        ("spec", "why"),
        [
            ("gpt", "is not a language model; choose one of"),
            ("openai:", "names no model"),
            ("openai:m@ftp://x", "names no model"),
            ("openai:m", "set OPENAI_API_KEY"),
            ("http://u:secret@h/v1", "must look like"),
            ("http://[::1", "not the address"),
            ("http://h/v1?modle=x", "Unknown in the address of a model: modle"),
            ("http://h/v1?price=cheap", "must be written IN/OUT"),
            ("nonsense:m", "names no model that can be used|needs pydantic-ai"),
            (7, "an object of type int is not a language model"),
            (Scripted, "an object of type type is not"),
        ],
    )
    def test_a_bad_spec_is_refused_when_a_memory_is_opened(self, spec: Any, why: str, tmp_path: Path) -> None:
        with pytest.raises(LlmError, match=why) as caught:
            eunoe.open(tmp_path / "memory.db", embedder="none", llm=spec)
        assert "secret" not in str(caught.value)

    def test_a_missing_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("eunoe.llm.pydantic_ai.find_spec", lambda name: None)
        with pytest.raises(LlmError, match=r"needs pydantic-ai: pip install 'eunoe\[llm\]'"):
            load("groq:llama")


def shout(text: str) -> str:
    return text.upper()


def of_prompt(prompt: Prompt) -> Reply:
    return Reply(f"{prompt.operation}: {prompt.text}", 3, 4, 0.5)


async def later(text: str) -> str:
    await asyncio.sleep(0)
    return text.lower()


class TestObjects:
    def test_functions(self) -> None:
        models = [load(shout), load(of_prompt), load(later)]
        texts = [model.ask(PLAIN).text for model in models if model]
        assert texts == ["BE KIND.\n\nHELLO", "chat: Hello", "be kind.\n\nhello"]
        assert [model.name for model in models if model] == ["shout", "of_prompt", "later"]

    def test_an_async_function_works_inside_a_running_loop(self) -> None:
        async def main() -> str:
            model = load(later)
            assert model
            return model.ask(PLAIN).text

        assert asyncio.run(main()) == "be kind.\n\nhello"

    def test_an_async_function_is_left_when_patience_ends(self) -> None:
        async def never(prompt: Prompt) -> str:
            await asyncio.Event().wait()
            return ""

        model = load(never)
        assert model
        with pytest.raises(LlmError, match="never failed: TimeoutError"):
            model.ask(Prompt("s", "t", patience=0.01))

    @pytest.mark.parametrize(
        ("given", "why"), [(lambda text: 1 / 0, "ZeroDivisionError"), (lambda text: 7, "gave int")]
    )
    def test_a_function_that_fails_is_a_typed_error(self, given: Any, why: str) -> None:
        model = load(given)
        assert model
        with pytest.raises(LlmError, match=why):
            model.ask(PLAIN)

    def test_a_langchain_chat_model(self) -> None:
        from langchain_core.language_models import FakeMessagesListChatModel
        from langchain_core.messages import AIMessage

        usage: Any = {"input_tokens": 8, "output_tokens": 2, "total_tokens": 10}
        parts: Any = [{"type": "text", "text": "one "}, "two"]
        answers: Any = [AIMessage("Hi.", usage_metadata=usage), AIMessage(parts)]
        model = load(FakeMessagesListChatModel(responses=answers))
        assert model
        assert [model.ask(PLAIN), model.ask(PLAIN)] == [Reply("Hi.", 8, 2), Reply("one two")]
        assert model.name == "langchain:FakeMessagesListChatModel"

    def test_a_pydantic_ai_model(self) -> None:
        pytest.importorskip("pydantic_ai", reason="needs the extra llm")
        from pydantic_ai.messages import ModelResponse, TextPart
        from pydantic_ai.models.function import FunctionModel

        model = load(FunctionModel(lambda messages, info: ModelResponse([TextPart(messages[0].parts[1].content)])))
        assert model
        assert [model.ask(PLAIN).text, model.ask(PLAIN).text] == ["Hello", "Hello"]

    def test_an_object_with_ask(self) -> None:
        scripted = Scripted(["Hi.", RuntimeError("down")], name="mine")
        model = load(scripted)
        assert model
        assert (model.name, model.ask(PLAIN).text, scripted.prompts) == ("mine", "Hi.", [PLAIN])
        with pytest.raises(LlmError, match="mine failed: RuntimeError: down"):
            model.ask(PLAIN)
        with pytest.raises(LlmError, match="no answer left"):
            model.ask(PLAIN)

    def test_a_script_may_be_a_function(self) -> None:
        assert Scripted(lambda prompt: {"said": prompt.text}).ask(PLAIN).text == '{"said": "Hello"}'


class TestModels:
    def test_every_call_is_counted_by_operation_and_model(self) -> None:
        models = Models(
            Scripted([Reply("a", 10, 2, 0.25), Reply("b", 5, 1, 0.5), LlmError("down"), "four words of text"])
        )
        slow = models.slow
        assert slow
        slow.ask(PLAIN)
        slow.ask(PLAIN)
        with pytest.raises(LlmError):
            slow.ask(PLAIN)
        slow.ask(ASKED)
        chat, extraction = models.drain()
        assert chat._replace(micros=0) == ("chat", "scripted", 3, 1, 15, 3, 0, 0.75)
        assert (extraction.operation, extraction.calls, extraction.output_tokens) == ("extraction", 1, 4)
        assert extraction.input_tokens > 5
        assert models.drain() == []

    def test_the_fast_one_falls_back_to_the_slow_one(self) -> None:
        slow, fast = Scripted(name="slow"), Scripted(name="fast")
        one, two = Models(slow), Models(slow, fast)
        assert one.fast is one.slow
        assert two.fast
        assert (one.names, two.names, two.fast.name) == ("slow", "slow, fast (fast)", "fast")
        assert Models(slow, "none").fast is None
        assert (Models("none").slow, Models("none").fast, Models("none").names) == (None, None, "")

    def test_models_that_streams_name_are_made_once(self, endpoint: Endpoint) -> None:
        models = Models(Scripted())
        spec = f"openai:m@{endpoint.url}"
        assert models.named("") is models.slow
        assert models.named("fast") is models.fast
        assert models.named("none") is None
        assert models.named(spec) is models.named(spec)
        with pytest.raises(LlmError, match="is not a language model"):
            models.named("nonsense")

    def test_no_more_calls_at_once_than_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM_CONCURRENCY", "2")
        both, inside, most = threading.Barrier(2, timeout=60), [0], [0]
        lock = threading.Lock()

        def answer(prompt: Prompt) -> str:
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            both.wait()
            with lock:
                inside[0] -= 1
            return "done"

        slow = Models(Scripted(answer)).slow
        assert slow
        threads = [threading.Thread(target=slow.ask, args=(PLAIN,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most[0] == 2

    def test_who_cannot_wait_for_a_turn_gets_a_typed_error(self) -> None:
        begun, release = threading.Event(), threading.Event()

        def answer(prompt: Prompt) -> str:
            begun.set()
            assert release.wait(60)
            return "done"

        models = Models(Scripted(answer), at_once=1)
        assert models.slow
        thread = threading.Thread(target=models.slow.ask, args=(PLAIN,))
        thread.start()
        assert begun.wait(60)
        with pytest.raises(LlmError, match="busy with other calls"):
            models.slow.ask(Prompt("s", "t", operation="query", patience=0.01))
        release.set()
        thread.join()
        assert [(row.operation, row.failures) for row in models.drain()] == [("query", 1), ("chat", 0)]

    @pytest.mark.parametrize("text", ["0", "-1", "many", "²"])
    def test_a_limit_that_is_no_number_is_refused(self, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM_CONCURRENCY", text)
        with pytest.raises(LlmError, match="must be a number of calls"):
            Models("none")

    def test_a_time_limit_that_is_no_number_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM_TIMEOUT", "soon")
        with pytest.raises(LlmError, match="must be a number of seconds"):
            load("http://localhost:1/v1")


class TestPrice:
    def test_the_environment_may_give_it(self, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM_PRICE", "2/10")
        assert OpenAI("m", base_url=endpoint.url).ask(PLAIN).cost == pytest.approx((2 * 11 + 10 * 7) / 1e6)

    @pytest.mark.parametrize("text", ["1", "1/2/3", "-1/2", "nan/1", "a/b", "/"])
    def test_what_is_no_price_is_refused(self, text: str) -> None:
        with pytest.raises(LlmError, match="must be written IN/OUT"):
            price.read(text)

    def test_the_price_list_is_used_where_it_is_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("genai_prices", reason="comes with the extra llm")
        assert price.listed("openai", "gpt-4o-mini", 1_000_000, 0) > 0
        assert price.listed("openai", "no-such-model", 1_000_000, 0) == 0
        monkeypatch.setattr(price, "find_spec", lambda name: None)
        assert price.listed("openai", "gpt-4o-mini", 1_000_000, 0) == 0


def test_every_choice_is_named() -> None:
    assert len(llm.CHOICES) == 10
