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
from eunoe.llm.contract import ScriptedLlm, call_cost, configured_price
from eunoe.llm.models import Models
from eunoe.llm.remote import AnthropicLlm, OpenAILlm

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
