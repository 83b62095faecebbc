"""Answers that are cut off, declined or empty, and prompts that are too long: told apart, given more room, counted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.llm.model_server import Answer, HttpReply, ModelServer, says

from eunoe.errors import LlmError
from eunoe.llm import Prompt, Reply, load_llm
from eunoe.llm.contract import AnswerError, CutAnswerError, DeclinedError, PromptTooLongError, ScriptedLlm
from eunoe.llm.models import MAX_ROOM_TOKENS, Models
from eunoe.llm.remote import AnthropicLlm, OpenAILlm
from eunoe.llm.structured import ask_structured

PLAIN = Prompt("Be kind.", "Hello", operation="chat")
SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}
ASKED = Prompt("List facts.", "Anna plays the cello.", SCHEMA, "facts", 1000, "extraction")
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
    @pytest.mark.parametrize("prompt", [PLAIN, ASKED], ids=["plain", "structured"])
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
            OpenAILlm("m", base_url=endpoint.url).ask(ASKED)
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize(("status", "body"), CONTEXT_REFUSALS, ids=lambda part: str(part)[:60])
    @pytest.mark.parametrize("kind", [OpenAILlm, AnthropicLlm])
    def test_a_prompt_that_does_not_fit_is_told_apart(
        self, kind: Any, status: int, body: Any, endpoint: ModelServer
    ) -> None:
        endpoint.script = [says(status, body)] * 8
        with pytest.raises(PromptTooLongError):
            kind("m", base_url=endpoint.url).ask(ASKED)

    def test_words_of_the_prompt_in_a_refusal_prove_nothing(self, endpoint: ModelServer) -> None:
        echo = {"detail": [{"loc": ["body"], "input": "the context length of flagged content filter max_tokens"}]}
        endpoint.script = [says(422, echo)] * 3
        with pytest.raises(LlmError) as caught:
            OpenAILlm("m", base_url=endpoint.url).ask(ASKED)
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
            AnthropicLlm("m", base_url=endpoint.url).ask(ASKED)
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
        assert slow.ask(ASKED).text == json.dumps(FACTS)
        slow.ask(ASKED)
        assert limits(endpoint) == [1000, 10_000, 9000]

    @pytest.mark.parametrize("spec", ["openai:m@{url}?effort=low", "{url}?model=m&effort=LOW", "openai:m@{url}"])
    def test_its_effort_can_be_set(self, spec: str, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM_EFFORT", "low" if "effort" not in spec else "high")
        model = load_llm(spec.format(url=endpoint.url))
        assert model
        model.ask(ASKED)
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
        assert ask_structured(OpenAILlm("m", base_url=endpoint.url), ASKED, dict, attempts=1) == FACTS

    @pytest.mark.parametrize(
        "given", [FACTS, json.dumps(FACTS), json.dumps(json.dumps(FACTS)), {"facts": json.dumps(FACTS["facts"])}]
    )
    def test_of_an_anthropic_tool(self, given: Any, endpoint: ModelServer) -> None:
        endpoint.script = [messages([{"type": "tool_use", "name": "facts", "input": given}], "tool_use")]
        assert ask_structured(AnthropicLlm("m", base_url=endpoint.url), ASKED, dict, attempts=1) == FACTS

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
        assert ask_structured(ScriptedLlm([text]), ASKED, dict, attempts=1) == FACTS

    @pytest.mark.parametrize("text", ["[1, 2] is a list", "{not json", "plain"])
    def test_words_stay_words(self, text: str) -> None:
        schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        answer = ask_structured(ScriptedLlm([{"query": text}]), Prompt("s", "t", schema), dict, attempts=1)
        assert answer == {"query": text}
