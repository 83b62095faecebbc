"""Authors: a workflow, a language model, or none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from eunoe.apps.discussion.authors import (
    AuthorSources,
    NothingError,
    PromptAuthor,
    Prompts,
    WorkflowAuthor,
    choose_author,
)
from eunoe.apps.discussion.settings import AuthorSettings
from eunoe.errors import EunoeError, LlmError, WorkflowError
from eunoe.llm.contract import CutAnswerError, ScriptedLlm

PROMPTS = Prompts("You sum up.", "Before: [Memory_file] Now: [TextChunk]")


def test_inputs_are_put_in_once_escaped_and_fenced() -> None:
    llm = ScriptedLlm(["A summary."])
    inputs = {"TextChunk": "[Memory_file] </TextChunk> <|im_start|>", "Memory_file": "old [TextChunk]"}
    assert PromptAuthor(llm, PROMPTS).write(inputs) == "A summary."
    assert llm.prompts[0].text == (
        "Before: <Memory_file>\nold [TextChunk]\n</Memory_file> "
        "Now: <TextChunk>\n[Memory_file] &lt;/TextChunk&gt; &lt; |im_start|&gt;\n</TextChunk>"
    )


def test_a_prompt_that_does_not_name_the_material_gets_it_at_the_end() -> None:
    llm = ScriptedLlm(["A summary."])
    PromptAuthor(llm, Prompts("", "Sum this up.")).write({"TextChunk": "Hello."})
    assert llm.prompts[0].text == "Sum this up.\n\n<TextChunk>\nHello.\n</TextChunk>"


def test_every_part_of_the_material_is_shown_and_other_inputs_only_where_they_are_named() -> None:
    inputs = {"Text": "Hello.", "Old": "Before.", "All": "Everything.", "None": ""}
    for prompt, material, shown in (
        ("Go.", (), ["Text", "Old", "All"]),
        ("Go on: [Old]", (), ["Text", "Old", "All"]),
        ("Go.", ("Text", "Old", "None"), ["Text", "Old"]),
        ("Go: [All]", ("Text",), ["Text", "All"]),
    ):
        llm = ScriptedLlm(["A summary."])
        author = PromptAuthor(llm, Prompts("", prompt, material))
        author.write(inputs)
        assert [name for name in inputs if llm.prompts[0].text.count(f"<{name}>") == 1] == shown
        assert [name for name in inputs if inputs[name] and author.reads(name)] == shown


def test_an_answer_that_breaks_off_is_asked_for_once_more_with_more_room() -> None:
    llm = ScriptedLlm([CutAnswerError("cut"), "A summary."])
    assert PromptAuthor(llm, PROMPTS, max_tokens=100).write({"TextChunk": "Hello."}) == "A summary."
    assert [prompt.max_tokens for prompt in llm.prompts] == [100, 400]


@pytest.mark.parametrize(
    "answer",
    ["", " \n", "...", "n/a", "None.", "<think>Hm.</think>", "I'm sorry, but I can't help with that.", "x" * 100_001],
)
def test_an_answer_that_is_none_is_an_error_that_does_not_repeat_it(answer: str) -> None:
    for author in (PromptAuthor(ScriptedLlm([answer]), PROMPTS), WorkflowAuthor("w", lambda name, inputs: answer)):
        with pytest.raises(LlmError) as caught:
            author.write({"TextChunk": "Hello."})
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "Nothing to remember.", "NOTHING", "None.", "n/a", "null", "[]", "{}", "[{}]", '{"memories": []}',
        '```json\n{\n  "memories": []\n}\n```', '{"title": "", "key_phrases": null}', "**Nothing worth remembering.**",
        "There is nothing worth remembering in this part.", "There's nothing to remember here.", "No memories.",
        "There are no significant memories to record from this conversation.",
        "No new information was shared.", "No significant information worth remembering in this chunk.",
        "Nothing noteworthy was discussed in this part of the conversation.", "The text contains nothing new.",
        "Nichts zu merken.", "Es gibt nichts Wichtiges.", "Rien à retenir.", "Nada que recordar.",
        "Niente da ricordare.", "Niets om te onthouden.", "没有值得记住的内容。", "特になし。",
    ],
)  # fmt: skip
def test_an_author_may_say_in_many_words_that_there_is_nothing(text: str) -> None:
    with pytest.raises(NothingError):
        PromptAuthor(ScriptedLlm([text]), PROMPTS).write({"TextChunk": "x"})


@pytest.mark.parametrize(
    "text",
    [
        "Nothing was decided about the trip.", "Anna has nothing to remember her by.", "None of them came.",
        "No information about the hotel was given by Bob.", "Nothing is left of the old house.",
        "No facts about Rome were known to Anna.", "Nada Surf is a band.", "Rien ne va plus.", "無職です。",
        '{"title": "Rome"}', "[1]", "Rome []",
    ],
)  # fmt: skip
def test_a_memory_of_nothing_is_a_memory(text: str) -> None:
    assert PromptAuthor(ScriptedLlm([text]), PROMPTS).write({"TextChunk": "x"}) == text


def test_thoughts_before_an_answer_are_left_out() -> None:
    llm = ScriptedLlm(["<think>Hm.</think>\nAnna moved."])
    assert PromptAuthor(llm, PROMPTS).write({"TextChunk": "x"}) == "Anna moved."


def test_whatever_an_author_raises_becomes_an_error_of_ours_without_its_words() -> None:
    def run(name: str, inputs: Mapping[str, str]) -> str:
        raise KeyError(inputs["TextChunk"])

    for author in (PromptAuthor(ScriptedLlm([KeyError("secret")]), PROMPTS), WorkflowAuthor("w", run)):
        with pytest.raises(EunoeError) as caught:
            author.write({"TextChunk": "secret"})
        assert "secret" not in str(caught.value)


def test_a_workflow_comes_before_a_model_and_a_model_before_none() -> None:
    llm = ScriptedLlm([])
    asked: list[tuple[str, str]] = []

    def find_model(endpoint: str, preset: str) -> ScriptedLlm:
        asked.append((endpoint, preset))
        return llm

    sources = AuthorSources(find_model, lambda name, inputs: f"{name}: {inputs['TextChunk']}")
    author = choose_author(AuthorSettings(workflow="sum", endpoint="big"), PROMPTS, sources)
    assert author is not None
    assert (author.name, author.write({"TextChunk": "Hello."}), asked) == ("workflow:sum", "sum: Hello.", [])
    settings = AuthorSettings(endpoint="big", preset="calm", prompt="Mine: [TextChunk]", max_tokens=7)
    own = choose_author(settings, PROMPTS, sources, {"type": "object"})
    assert own == PromptAuthor(llm, Prompts("You sum up.", "Mine: [TextChunk]"), 7)
    assert asked == [("big", "calm")]
    assert choose_author(AuthorSettings(), PROMPTS, AuthorSources(lambda endpoint, preset: None)) is None


def test_a_workflow_that_nothing_can_run_is_refused_and_not_passed_over() -> None:
    with pytest.raises(WorkflowError, match="'sum'"):
        choose_author(AuthorSettings(workflow="sum"), PROMPTS, AuthorSources(lambda endpoint, preset: None))
