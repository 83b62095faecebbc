"""LLMs behind a real HTTP server, every setting that names one, and what calls cost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.llm.model_server import Answer, HttpReply, ModelServer, says

import eunoe
from eunoe.errors import LlmError
from eunoe.llm import Prompt, Reply, contract, load_llm
from eunoe.llm.contract import (
    AnswerError,
    CutAnswerError,
    DeclinedError,
    PromptTooLongError,
    ScriptedLlm,
    call_cost,
    configured_price,
)
from eunoe.llm.models import MAX_ROOM_TOKENS, Models
from eunoe.llm.remote import AnthropicLlm, OpenAILlm
from eunoe.llm.structured import ask_structured

SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}
PLAIN = Prompt("Be kind.", "Hello", operation="chat")
ASKED = Prompt("List facts.", "Anna plays the cello.", SCHEMA, "facts", 500, "extraction")


def refuses(*fields: str) -> Answer:
    """A server that does not know these fields, or the values in them."""

    def answer(server: ModelServer, body: dict[str, Any]) -> HttpReply:
        form = body.get("response_format", {}).get("type")
        unknown = [field for field in fields if field in body or field == form]
        if not unknown:
            return server.good(server, body)
        return 400, json.dumps({"error": {"message": f"Unsupported: {unknown[0]}"}}).encode(), {}

    return answer


def forms(endpoint: ModelServer) -> list[str]:
    return [request.get("response_format", {}).get("type", "") for request in endpoint.requests]


class TestOpenAI:
    def test_a_plain_question(self, endpoint: ModelServer) -> None:
        reply = OpenAILlm("m", base_url=endpoint.url + "/", api_key=" sk-1\n").ask(PLAIN)
        assert reply == Reply("Hi.", 11, 7, 0.0)
        messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
        expected = {"path": "/v1/chat/completions", "model": "m", "messages": messages}
        assert endpoint.requests == [{**expected, "max_tokens": 2000, "temperature": 0}]
        assert endpoint.headers[0]["authorization"] == "Bearer sk-1"

    def test_a_temperature_goes_on_the_wire(self, endpoint: ModelServer) -> None:
        OpenAILlm("m", base_url=endpoint.url).ask(replace(PLAIN, temperature=0.7))
        assert endpoint.requests[0]["temperature"] == 0.7

    def test_a_schema_goes_on_the_wire(self, endpoint: ModelServer) -> None:
        assert OpenAILlm("m", base_url=endpoint.url).ask(ASKED).text == '{"facts": ["cello"]}'
        wanted = {"name": "facts", "schema": SCHEMA, "strict": True}
        assert endpoint.requests[0]["response_format"] == {"type": "json_schema", "json_schema": wanted}
        assert endpoint.requests[0]["messages"][0]["content"] == "List facts."

    @pytest.mark.parametrize(
        "loose", [{"type": "object"}, {**SCHEMA, "required": []}, {"type": "array", "items": {"type": "object"}}]
    )
    def test_only_schemas_that_obey_its_rules_are_strict(self, loose: Any, endpoint: ModelServer) -> None:
        OpenAILlm("m", base_url=endpoint.url).ask(Prompt("s", "t", {**SCHEMA, "properties": {"facts": loose}}))
        assert endpoint.requests[0]["response_format"]["json_schema"]["strict"] is False

    @pytest.mark.parametrize(
        ("refused", "tried"),
        [
            (["json_schema"], ["json_schema", "json_object", "json_object"]),
            (["response_format"], ["json_schema", "json_object", "", ""]),
        ],
    )
    def test_a_server_without_schemas_is_asked_in_words_and_remembered(
        self, refused: list[str], tried: list[str], endpoint: ModelServer
    ) -> None:
        endpoint.script = [refuses(*refused)] * 4
        model = OpenAILlm("m", base_url=endpoint.url)
        model.ask(ASKED)
        model.ask(ASKED)
        assert forms(endpoint) == tried
        assert json.dumps(SCHEMA) in endpoint.requests[-1]["messages"][0]["content"]

    def test_a_refusal_for_another_reason_teaches_nothing(self, endpoint: ModelServer) -> None:
        endpoint.script = [says(400, {"error": {"message": "bad request"}})] * 3
        model = OpenAILlm("m", base_url=endpoint.url)
        with pytest.raises(LlmError, match="answered 400: bad request"):
            model.ask(ASKED)
        model.ask(ASKED)
        assert forms(endpoint) == ["json_schema", "json_object", "", "json_schema"]

    def test_what_a_server_does_not_accept_is_left_out_from_then_on(self, endpoint: ModelServer) -> None:
        def picky(server: ModelServer, body: dict[str, Any]) -> HttpReply:
            for field, cure in (("temperature", "leave it out"), ("max_tokens", "use max_completion_tokens")):
                if field in body:
                    return 400, f"{field}: {cure}".encode(), {}
            return server.good(server, body)

        endpoint.script = [picky] * 4
        model = OpenAILlm("m", base_url=endpoint.url)
        assert [model.ask(PLAIN).text, model.ask(ASKED).text] == ["Hi.", '{"facts": ["cello"]}']
        assert len(endpoint.requests) == 4
        assert endpoint.requests[-1]["max_completion_tokens"] == 500

    def test_an_asker_without_patience_is_answered_at_once(self, endpoint: ModelServer, waits: list[float]) -> None:
        endpoint.script = [says(503)] * 99
        with pytest.raises(LlmError, match="answered 503"):
            OpenAILlm("m", base_url=endpoint.url).ask(Prompt("s", "t", timeout=0.4))
        assert (len(endpoint.requests), waits) == (1, [])

    def test_a_refusal_that_repeats_the_prompt_is_not_shown(self, endpoint: ModelServer) -> None:
        endpoint.script = [says(422, {"detail": [{"loc": ["body"], "input": "Anna plays the cello."}]})]
        with pytest.raises(LlmError, match="no reason that can be shown") as caught:
            OpenAILlm("m", base_url=endpoint.url).ask(PLAIN)
        assert "cello" not in str(caught.value)

    @pytest.mark.parametrize(
        "body",
        [b"<html>", b"\xff\xfe", b"", b"[" * 100_000, [], {}, {"choices": []}, {"choices": [{"message": "x"}]}],
        ids=lambda body: repr(body)[:20],
    )
    def test_garbage_is_a_typed_error(self, body: Any, endpoint: ModelServer) -> None:
        endpoint.script = [says(200, body)]
        with pytest.raises(LlmError, match="gave something that is not an answer"):
            OpenAILlm("m", base_url=endpoint.url).ask(PLAIN)

    @pytest.mark.parametrize(
        ("message", "why"),
        [({"content": None}, "empty answer$"), ({"content": " \n"}, "empty answer$"), ({"refusal": "no"}, "declined")],
    )
    def test_an_empty_answer_is_a_typed_error(self, message: Any, why: str, endpoint: ModelServer) -> None:
        endpoint.script = [says(200, {"choices": [{"message": message}]})]
        with pytest.raises(LlmError, match=why):
            OpenAILlm("m", base_url=endpoint.url).ask(PLAIN)

    def test_odd_texts_arrive_as_valid_unicode(self, endpoint: ModelServer) -> None:
        OpenAILlm("m", base_url=endpoint.url).ask(Prompt("s", "a\ud800\0 \ud83d\ude00"))
        assert endpoint.requests[0]["messages"][1]["content"] == "a\ufffd\0 😀"

    def test_a_price_that_was_given_counts(self, endpoint: ModelServer) -> None:
        priced = load_llm(f"openai:m@{endpoint.url}?price=1000000/2000000")
        assert priced
        assert priced.ask(PLAIN).cost == 11 + 2 * 7


class TestAnthropic:
    def test_a_plain_question(self, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", endpoint.root)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-2")
        model = load_llm("anthropic:claude")
        assert model
        assert (model.name, model.ask(PLAIN)) == ("anthropic:claude", Reply("Hi.", 11, 7, 0.0))
        (request,) = endpoint.requests
        assert request["path"] == "/v1/messages"
        assert request["system"] == "Be kind."
        assert request["messages"] == [{"role": "user", "content": "Hello"}]
        assert endpoint.headers[0]["x-api-key"] == "sk-2"
        assert endpoint.headers[0]["anthropic-version"]

    def test_a_structured_answer_is_a_tool_it_must_call(self, endpoint: ModelServer) -> None:
        assert json.loads(AnthropicLlm("m", base_url=endpoint.url).ask(ASKED).text) == {"facts": ["cello"]}
        (request,) = endpoint.requests
        assert request["tools"][0]["input_schema"] == SCHEMA
        assert request["tool_choice"] == {"type": "tool", "name": "facts"}

    def test_a_server_without_tools_is_asked_in_words_and_remembered(self, endpoint: ModelServer) -> None:
        endpoint.script = [refuses("tools")] * 3
        model = AnthropicLlm("m", base_url=endpoint.root)
        assert [model.ask(ASKED).text, model.ask(ASKED).text] == ["Hi.", "Hi."]
        assert ["tools" in request for request in endpoint.requests] == [True, False, False]
        assert json.dumps(SCHEMA) in endpoint.requests[-1]["system"]

    def test_its_public_endpoint_needs_a_key(self) -> None:
        with pytest.raises(LlmError, match="set ANTHROPIC_API_KEY"):
            load_llm("anthropic:m")


class TestLoad:
    @pytest.mark.parametrize("spec", [None, "none", "auto"])
    def test_none(self, spec: Any) -> None:
        assert load_llm(spec) is None

    def test_the_environment_names_one(self, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM", f" {endpoint.url}?model=big ")
        monkeypatch.setenv("EUNOE_LLM_FAST", f"openai:small@{endpoint.url}")
        models = Models()
        assert models.names == "openai:big, openai:small (fast)"
        assert endpoint.requests == []

    def test_an_address_alone_takes_the_first_model_that_is_listed(self, endpoint: ModelServer) -> None:
        model = load_llm(endpoint.url)
        assert model
        assert [model.ask(PLAIN).text, model.ask(PLAIN).text] == ["Hi.", "Hi."]
        assert [request["path"] for request in endpoint.requests].count("/v1/models") == 1
        assert endpoint.requests[-1]["model"] == "first"
        assert model.name == endpoint.url

    def test_a_server_that_lists_none_is_a_typed_error(self, endpoint: ModelServer) -> None:
        endpoint.models = says(200, {"data": []})
        model = load_llm(endpoint.url)
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
            (ScriptedLlm, "an object of type type is not"),
        ],
    )
    def test_a_bad_spec_is_refused_when_a_memory_is_opened(self, spec: Any, why: str, tmp_path: Path) -> None:
        with pytest.raises(LlmError, match=why) as caught:
            eunoe.open(tmp_path / "memory.db", embedder="none", llm=spec)
        assert "secret" not in str(caught.value)

    def test_a_missing_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("eunoe.llm.find_spec", lambda name: None)
        with pytest.raises(LlmError, match=r"needs pydantic-ai: pip install 'eunoe\[llm\]'"):
            load_llm("groq:llama")


class TestPrice:
    def test_the_environment_may_give_it(self, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM_PRICE", "2/10")
        assert OpenAILlm("m", base_url=endpoint.url).ask(PLAIN).cost == pytest.approx((2 * 11 + 10 * 7) / 1e6)

    @pytest.mark.parametrize("text", ["1", "1/2/3", "-1/2", "nan/1", "a/b", "/"])
    def test_what_is_no_price_is_refused(self, text: str) -> None:
        with pytest.raises(LlmError, match="must be written IN/OUT"):
            configured_price(text)

    def test_the_price_list_is_used_where_it_is_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("genai_prices", reason="comes with the extra llm")
        assert call_cost(None, "openai", "gpt-4o-mini", 1_000_000, 0) > 0
        assert call_cost(None, "openai", "no-such-model", 1_000_000, 0) == 0
        monkeypatch.setattr(contract, "find_spec", lambda name: None)
        assert call_cost(None, "openai", "gpt-4o-mini", 1_000_000, 0) == 0


ROOMY = Prompt("List facts.", "Anna plays the cello.", SCHEMA, "facts", 1000, "extraction")
FACTS = {"facts": ["cello"]}
PRICE = "1000000/2000000"

CONTEXT_REFUSALS = [
    (400, {"error": {"message": "Too much.", "code": "context_length_exceeded"}}),
    (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in"
            }
        },
    ),
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8"}}),
    (
        400,
        {"error": {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"}},
    ),
    (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}),
    (500, {"error": "the input length exceeds the context length"}),
    (400, {"error": {"message": "The input token count (1200000) exceeds the maximum number of tokens allowed"}}),
    (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"}),
    (400, b"Input is too long for requested model"),
    (413, {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
    (413, b"<html>413 Request Entity Too Large</html>"),
]


def chat(content: Any, ending: str | None = "stop", tokens: int = 0, **message: Any) -> Answer:
    """An OpenAI answer."""
    usage = {"prompt_tokens": 11, "completion_tokens": tokens} if tokens else {}
    choice = {"message": {"content": content, **message}, "finish_reason": ending}
    return says(200, {"choices": [choice], "usage": usage})


def messages(content: Any, ending: str, tokens: int = 7) -> Answer:
    """An Anthropic answer."""
    usage = {"input_tokens": 11, "output_tokens": tokens}
    return says(200, {"content": content, "stop_reason": ending, "usage": usage})


def limits(endpoint: ModelServer, field: str = "max_tokens") -> list[int]:
    return [request[field] for request in endpoint.requests]


class TestEndings:
    @pytest.mark.parametrize("content", ['{"facts": ["cello"]}', '{"facts": ["cel', "", None])
    @pytest.mark.parametrize("prompt", [PLAIN, ROOMY], ids=["plain", "structured"])
    def test_an_answer_that_used_up_its_tokens_is_none(
        self, content: str | None, prompt: Prompt, endpoint: ModelServer
    ) -> None:
        endpoint.script = [chat(content, "length", 7)]
        with pytest.raises(CutAnswerError) as caught:
            OpenAILlm("m", base_url=endpoint.url, price=PRICE).ask(prompt)
        assert caught.value.reply == Reply(content or "", 11, 7, 11 + 2 * 7)

    @pytest.mark.parametrize(
        "answer",
        [chat("", "content_filter", 7), chat("I cann", "content_filter", 7), chat(None, "stop", 7, refusal="No.")],
    )
    def test_a_filter_or_a_refusal_declines(self, answer: Answer, endpoint: ModelServer) -> None:
        endpoint.script = [answer]
        with pytest.raises(DeclinedError, match="declined") as caught:
            OpenAILlm("m", base_url=endpoint.url).ask(PLAIN)
        assert caught.value.reply
        assert caught.value.reply.output_tokens == 7

    @pytest.mark.parametrize(
        "message",
        [
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            "Output blocked by content filtering policy",
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy",
        ],
    )
    def test_a_filter_before_the_model_declines_at_once(self, message: str, endpoint: ModelServer) -> None:
        endpoint.script = [says(400, {"error": {"message": message}})]
        with pytest.raises(DeclinedError):
            OpenAILlm("m", base_url=endpoint.url).ask(ROOMY)
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize(("status", "body"), CONTEXT_REFUSALS, ids=lambda part: str(part)[:60])
    @pytest.mark.parametrize("kind", [OpenAILlm, AnthropicLlm])
    def test_a_prompt_that_does_not_fit_is_told_apart(
        self, kind: Any, status: int, body: Any, endpoint: ModelServer
    ) -> None:
        endpoint.script = [says(status, body)] * 8
        with pytest.raises(PromptTooLongError):
            kind("m", base_url=endpoint.url).ask(ROOMY)

    def test_words_of_the_prompt_in_a_refusal_prove_nothing(self, endpoint: ModelServer) -> None:
        echo = {"detail": [{"loc": ["body"], "input": "the context length of flagged content filter max_tokens"}]}
        endpoint.script = [says(422, echo)] * 3
        with pytest.raises(LlmError) as caught:
            OpenAILlm("m", base_url=endpoint.url).ask(ROOMY)
        assert type(caught.value) is LlmError

    @pytest.mark.parametrize(
        ("ending", "error"),
        [
            ("max_tokens", CutAnswerError),
            ("model_context_window_exceeded", CutAnswerError),
            ("refusal", DeclinedError),
        ],
    )
    @pytest.mark.parametrize("content", [[], [{"type": "tool_use", "name": "facts", "input": {}}]])
    def test_anthropic(self, content: Any, ending: str, error: type[AnswerError], endpoint: ModelServer) -> None:
        endpoint.script = [messages(content, ending)]
        with pytest.raises(error) as caught:
            AnthropicLlm("m", base_url=endpoint.url).ask(ROOMY)
        assert caught.value.reply
        assert (caught.value.reply.input_tokens, caught.value.reply.output_tokens) == (11, 7)

    @pytest.mark.parametrize(
        ("details", "error"),
        [
            ({"finish_reason": "length"}, CutAnswerError),
            ({"finish_reason": "MAX_TOKENS"}, CutAnswerError),
            ({"stop_reason": "max_tokens"}, CutAnswerError),
            ({"done_reason": "length"}, CutAnswerError),
            ({"finish_reason": "SAFETY"}, DeclinedError),
            ({"finish_reason": "content_filter"}, DeclinedError),
        ],
    )
    def test_langchain(self, details: Any, error: type[AnswerError]) -> None:
        from langchain_core.language_models import FakeMessagesListChatModel
        from langchain_core.messages import AIMessage

        usage: Any = {"input_tokens": 8, "output_tokens": 2, "total_tokens": 10}
        answer = AIMessage("Half an ans", usage_metadata=usage, response_metadata=details)
        model = load_llm(FakeMessagesListChatModel(responses=[answer]))
        assert model
        with pytest.raises(error) as caught:
            model.ask(PLAIN)
        assert caught.value.reply == Reply("Half an ans", 8, 2)

    @pytest.mark.parametrize(("ending", "error"), [("length", CutAnswerError), ("content_filter", DeclinedError)])
    def test_pydantic_ai(self, ending: Any, error: type[AnswerError]) -> None:
        pytest.importorskip("pydantic_ai", reason="needs the extra llm")
        from pydantic_ai.messages import ModelResponse, TextPart
        from pydantic_ai.models.function import FunctionModel

        answer = ModelResponse([TextPart("Half an ans")], finish_reason=ending)
        model = load_llm(FunctionModel(lambda messages, info: answer))
        assert model
        with pytest.raises(error) as caught:
            model.ask(PLAIN)
        assert caught.value.reply
        assert caught.value.reply.output_tokens > 0

    @pytest.mark.parametrize(
        ("message", "error"),
        [
            ("Error code: 400 - {'error': {'code': 'context_length_exceeded'}}", PromptTooLongError),
            ("Content filter triggered", DeclinedError),
            ("Connection reset", LlmError),
        ],
    )
    def test_what_a_function_raises_is_told_apart(self, message: str, error: type[LlmError]) -> None:
        def fails(text: str) -> str:
            raise RuntimeError(message)

        model = load_llm(fails)
        assert model
        with pytest.raises(LlmError) as caught:
            model.ask(PLAIN)
        assert type(caught.value) is error


class TestRoom:
    """An answer that was cut off is asked for again with more room, for every operation."""

    @pytest.mark.parametrize("operation", ["extraction", "consolidation", "graph", "query", "chat"])
    def test_more_room_until_it_is_whole(self, operation: str, endpoint: ModelServer) -> None:
        endpoint.script = [chat("Half", "length", 1000), chat("Half of", "length", 2000), chat("Whole.", "stop", 3000)]
        models = Models(f"openai:m@{endpoint.url}?price={PRICE}")
        assert models.slow
        assert models.slow.ask(Prompt("s", "t", max_tokens=1000, operation=operation)).text == "Whole."
        assert limits(endpoint) == [1000, 2000, 4000]
        (usage,) = models.drain()
        assert (usage.calls, usage.failures, usage.input_tokens, usage.output_tokens) == (3, 2, 33, 6000)
        assert usage.cost == 33 + 2 * 6000

    @pytest.mark.parametrize(("first", "asked"), [(1000, [1000, 2000, 4000]), (12_000, [12_000, 24_000, 32_000])])
    def test_room_has_an_end(self, first: int, asked: list[int]) -> None:
        llm = ScriptedLlm(lambda prompt: CutAnswerError("cut", Reply("Half", 5, prompt.max_tokens)))
        models = Models(llm)
        assert models.slow
        with pytest.raises(CutAnswerError):
            models.slow.ask(Prompt("s", "t", max_tokens=first))
        assert [prompt.max_tokens for prompt in llm.prompts] == asked
        assert asked[-1] <= MAX_ROOM_TOKENS
        (usage,) = models.drain()
        assert (usage.calls, usage.failures, usage.output_tokens) == (3, 3, sum(asked))

    def test_no_second_try_where_more_room_is_of_no_use(self) -> None:
        """The answer ended far before its limit: the model's own, or its context, cut it off."""
        llm = ScriptedLlm(lambda prompt: CutAnswerError("cut", Reply("Half", 5, 300)))
        slow = Models(llm).slow
        assert slow
        with pytest.raises(CutAnswerError):
            slow.ask(PLAIN)
        assert len(llm.prompts) == 1

    def test_a_model_that_fails_with_more_room_was_cut(self) -> None:
        slow = Models(ScriptedLlm([CutAnswerError("cut"), LlmError("max_tokens is too large")])).slow
        assert slow
        with pytest.raises(CutAnswerError):
            slow.ask(PLAIN)

    def test_the_time_of_a_question_is_for_all_its_tries(self) -> None:
        llm = ScriptedLlm(lambda prompt: CutAnswerError("cut"))
        slow = Models(llm).slow
        assert slow
        with pytest.raises(CutAnswerError):
            slow.ask(Prompt("s", "t", timeout=60.0))
        given = [prompt.timeout or 0.0 for prompt in llm.prompts]
        assert given == sorted(given, reverse=True)
        assert len(set(given)) == 3

    @pytest.mark.parametrize(
        "refusal",
        [
            "max_tokens is too large: 16000. This model supports at most 4096 completion tokens",
            "max_tokens: 16000 > 4096, which is the maximum allowed number of output tokens for this model",
            "Invalid max_tokens value, the valid range of max_tokens is [1, 4096]",
        ],
    )
    @pytest.mark.parametrize("kind", [OpenAILlm, AnthropicLlm])
    def test_a_server_that_gives_less_room_is_asked_for_less_from_then_on(
        self, kind: Any, refusal: str, endpoint: ModelServer
    ) -> None:
        def narrow(server: ModelServer, body: dict[str, Any]) -> HttpReply:
            if body["max_tokens"] > 4096:
                return 400, json.dumps({"error": {"message": refusal}}).encode(), {}
            return server.good(server, body)

        endpoint.script = [narrow] * 4
        model = kind("m", base_url=endpoint.url)
        model.ask(Prompt("s", "t", max_tokens=16_000))
        model.ask(Prompt("s", "t", max_tokens=16_000))
        assert limits(endpoint) == [16_000, 8000, 4000, 4000]

    def test_room_that_only_this_prompt_lacks_is_learned_for_it_alone(self, endpoint: ModelServer) -> None:
        refusal = (
            "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is 8192 "
            "tokens and your request has 6000 input tokens (4000 > 8192 - 6000)."
        )
        endpoint.script = [says(400, {"message": refusal})]
        model = OpenAILlm("m", base_url=endpoint.url)
        model._limit_field = "max_completion_tokens"
        model.ask(Prompt("s", "t", max_tokens=4000))
        model.ask(Prompt("s", "t", max_tokens=4000))
        assert limits(endpoint, "max_completion_tokens") == [4000, 2000, 4000]


class TestThinking:
    @pytest.mark.parametrize(
        "answer",
        [
            chat("", "length", 1000, reasoning_content="Hmm ..."),
            chat("<think>Hmm ...", "length", 1000),
            says(
                200,
                {
                    "choices": [{"message": {"content": ""}, "finish_reason": "length"}],
                    "usage": {"completion_tokens": 1000, "completion_tokens_details": {"reasoning_tokens": 1000}},
                },
            ),
        ],
        ids=["field", "tag", "usage"],
    )
    def test_a_model_that_thinks_first_gets_room_for_it(self, answer: Answer, endpoint: ModelServer) -> None:
        endpoint.script = [answer]
        slow = Models(f"openai:m@{endpoint.url}").slow
        assert slow
        assert slow.ask(ROOMY).text == json.dumps(FACTS)
        slow.ask(ROOMY)
        assert limits(endpoint) == [1000, 10_000, 9000]

    @pytest.mark.parametrize("spec", ["openai:m@{url}?effort=low", "{url}?model=m&effort=LOW", "openai:m@{url}"])
    def test_its_effort_can_be_set(self, spec: str, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM_EFFORT", "low" if "effort" not in spec else "high")
        model = load_llm(spec.format(url=endpoint.url))
        assert model
        model.ask(ROOMY)
        assert endpoint.requests[0]["reasoning_effort"] == "low"
        assert limits(endpoint) == [9000]

    def test_a_public_model_takes_an_effort_too(self, monkeypatch: pytest.MonkeyPatch, endpoint: ModelServer) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        model = load_llm("openai:m?effort=minimal")
        assert model
        assert model.name == "openai:m"
        model.ask(PLAIN)
        assert endpoint.requests[0]["reasoning_effort"] == "minimal"

    def test_a_server_that_knows_no_effort_is_not_told_again(self, endpoint: ModelServer) -> None:
        def picky(server: ModelServer, body: dict[str, Any]) -> HttpReply:
            if "reasoning_effort" in body:
                return 400, b'{"error": {"message": "Unrecognized request argument: reasoning_effort"}}', {}
            return server.good(server, body)

        endpoint.script = [picky] * 3
        model = OpenAILlm("m", base_url=endpoint.url, effort="low")
        assert [model.ask(PLAIN).text, model.ask(PLAIN).text] == ["Hi.", "Hi."]
        assert ["reasoning_effort" in request for request in endpoint.requests] == [True, False, False]

    @pytest.mark.parametrize("effort", ["very low", "1", "é"])
    def test_what_is_no_effort_is_refused(self, effort: str, endpoint: ModelServer) -> None:
        with pytest.raises(LlmError, match="effort"):
            OpenAILlm("m", base_url=endpoint.url, effort=effort)


class TestBilled:
    @pytest.mark.parametrize(
        "answer",
        [
            chat("", "stop", 7),
            chat("x", "content_filter", 7),
            chat(None, "stop", 7, refusal="No."),
            says(200, {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}),
        ],
        ids=["empty", "filtered", "refused", "no choice"],
    )
    def test_what_a_failed_answer_took_is_counted(self, answer: Answer, endpoint: ModelServer) -> None:
        endpoint.script = [answer]
        models = Models(f"openai:m@{endpoint.url}?price={PRICE}")
        assert models.slow
        with pytest.raises(LlmError):
            models.slow.ask(PLAIN)
        (usage,) = models.drain()
        counted = (usage.calls, usage.failures, usage.input_tokens, usage.output_tokens, usage.cost)
        assert counted == (1, 1, 11, 7, 11 + 2 * 7)

    def test_a_model_that_counts_nothing_is_counted_by_its_words(self) -> None:
        models = Models(ScriptedLlm([DeclinedError("no", Reply("I would rather not say."))]))
        assert models.slow
        with pytest.raises(DeclinedError):
            models.slow.ask(PLAIN)
        (usage,) = models.drain()
        assert usage.input_tokens > 1
        assert usage.output_tokens > 3

    def test_what_never_reached_the_model_is_not_billed(self, endpoint: ModelServer) -> None:
        endpoint.script = [says(400, {"error": {"code": "context_length_exceeded", "message": "Too long"}})]
        models = Models(f"openai:m@{endpoint.url}")
        assert models.slow
        with pytest.raises(PromptTooLongError):
            models.slow.ask(PLAIN)
        (usage,) = models.drain()
        assert (usage.failures, usage.input_tokens, usage.output_tokens) == (1, 0, 0)


class TestArguments:
    """A structured answer may come as the arguments of a tool, as an object or as JSON in a text."""

    @pytest.mark.parametrize("arguments", [FACTS, json.dumps(FACTS), json.dumps(json.dumps(FACTS))])
    def test_of_an_openai_tool(self, arguments: Any, endpoint: ModelServer) -> None:
        endpoint.script = [chat(None, "tool_calls", 7, tool_calls=[{"function": {"arguments": arguments}}])]
        assert ask_structured(OpenAILlm("m", base_url=endpoint.url), ROOMY, dict, attempts=1) == FACTS

    @pytest.mark.parametrize(
        "given", [FACTS, json.dumps(FACTS), json.dumps(json.dumps(FACTS)), {"facts": json.dumps(FACTS["facts"])}]
    )
    def test_of_an_anthropic_tool(self, given: Any, endpoint: ModelServer) -> None:
        endpoint.script = [messages([{"type": "tool_use", "name": "facts", "input": given}], "tool_use")]
        assert ask_structured(AnthropicLlm("m", base_url=endpoint.url), ROOMY, dict, attempts=1) == FACTS

    @pytest.mark.parametrize(
        "text",
        [
            json.dumps({"name": "facts", "arguments": FACTS}),
            json.dumps({"name": "facts", "arguments": json.dumps(FACTS)}),
            json.dumps({"name": "facts", "parameters": FACTS}),
            json.dumps(json.dumps({"name": "facts", "arguments": json.dumps(FACTS)})),
        ],
    )
    def test_of_a_call_that_was_written_as_words(self, text: str) -> None:
        assert ask_structured(ScriptedLlm([text]), ROOMY, dict, attempts=1) == FACTS

    @pytest.mark.parametrize("text", ["[1, 2] is a list", "{not json", "plain"])
    def test_words_stay_words(self, text: str) -> None:
        schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        answer = ask_structured(ScriptedLlm([{"query": text}]), Prompt("s", "t", schema), dict, attempts=1)
        assert answer == {"query": text}
