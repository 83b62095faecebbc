"""Structured answers: read, put right where that can mean one thing only, and asked for again."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.errors import InputError, LlmError
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.llm.structured import ask_structured, conform, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
    # Surrogates cannot be stored, and are tested on their own.
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)  # fmt: skip
SCRAPS = st.lists(st.sampled_from([*"{}[],:\"'“”‘\\ \n-+.019eEa", "<think>", "</think>", "```", "NaN", "True"])).map(
    "".join
)

REPAIRED = {
    '{"a": 1}': {"a": 1},
    ' \ufeff\n{"a": 1}\n': {"a": 1},
    '```json\n{"a": [1, 2]}\n```': {"a": [1, 2]},
    'Sure, see [note]:\n```\n{"a": 1}\n```\nAnything else?': {"a": 1},
    'As in [1], {x}: {"a": "b"}': {"a": "b"},
    '{"a": [1, 2,], "b": {"c": 3,},}': {"a": [1, 2], "b": {"c": 3}},
    "{'a': 'Anna's cat, Luna', 'b': None, 'c': True, 'd': False}": {
        "a": "Anna's cat, Luna",
        "b": None,
        "c": True,
        "d": False,
    },
    "{“a”: “she said ‘yes’”}": {"a": "she said ‘yes’"},
    '{"a": "“kept”"}': {"a": "“kept”"},
    '{"a": NaN, "b": Infinity, "c": -Infinity, "d": 1e999}': {"a": None, "b": None, "c": None, "d": None},
    "{a: 1, b_2: [+1, .5]}": {"a": 1, "b_2": [1, 0.5]},
    '{"a": "line\nbreak and \\_ odd \\escape"},': {"a": "line\nbreak and _ odd \x1bscape".replace("\x1b", "e")},
    '<think>Is it {"a": 2}?</think>{"a": 1}': {"a": 1},
    'so {"a": 2}, or rather\n</think>\n{"a": 1}': {"a": 1},
    '{"a": "he wrote </think> there"}': {"a": "he wrote </think> there"},
    '{"a": 1} <think>done</think>': {"a": 1},
    '{"a": [1, 2}': {"a": [1, 2]},
    '{"a": [1, 2]': {"a": [1, 2]},
    "[1, 2": [1, 2],
    '{"a": 12': {"a": 12},
    '{"a": True': {"a": True},
    '[{"s": 1}, {"s": 1': [{"s": 1}],
    '{"facts": [{"s": 1}, {"s": 2}, {"s": "unfin': {"facts": [{"s": 1}, {"s": 2}]},
    '{"facts": [{"s": 1}, {"s": 2}]': {"facts": [{"s": 1}, {"s": 2}]},
    '{"facts": ["one", "two", "thr': {"facts": ["one", "two"]},
    '```json\n["one", "two"\n```': ["one", "two"],
    '{"a": "\\ud800 \\ud83d\\ude00"}': {"a": "\ufffd 😀"},
    "12": 12,
    '"text"': "text",
}
BEYOND_REPAIR = [
    "",
    "I cannot help with that.",
    "{",
    '{"facts": [',
    '{"facts": [{"text": "a first item that never en',
    '{"a": "she said "yes" twice"}',
    '{"a": 1 "b": 2}',
    '{"a" 1}',
    '{"a":}',
    "[1,000]",
    '{"day": 2023-05-07}',
    '{"a": oops, "b": {"c": 1}}',
    '{"a": __import__("os").system("true")}',
    "[" * 100_000,
    '{"a":' * 100_000,
    "9" * 600_000,
]


@pytest.mark.parametrize(("text", "value"), REPAIRED.items())
def test_what_can_mean_one_thing_is_put_right(text: str, value: Any) -> None:
    assert read_json(text) == value


@pytest.mark.parametrize("text", BEYOND_REPAIR, ids=lambda text: text[:40])
def test_what_could_mean_several_things_is_an_error_without_its_words(text: str) -> None:
    with pytest.raises(LlmError) as caught:
        read_json(text)
    assert len(str(caught.value)) < 150
    assert not any(word in str(caught.value) for word in ("twice", "never", "oops", "cannot help"))


def test_an_error_names_the_place() -> None:
    with pytest.raises(LlmError, match=r"a comma or a closing bracket is missing \(line 2, character 8\)"):
        read_json('{"a": 1,\n"b": 2 "c": 3}')


@given(VALUES)
def test_what_is_json_is_read_as_it_is(value: Any) -> None:
    assert read_json(json.dumps(value)) == value


@given(st.text() | SCRAPS | st.tuples(SCRAPS, VALUES, SCRAPS).map(lambda t: t[0] + json.dumps(t[1]) + t[2]))
def test_reading_gives_what_json_can_hold_or_a_typed_error(text: str) -> None:
    try:
        value = read_json(text)
    except LlmError:
        return
    assert json.loads(json.dumps(value, allow_nan=False).encode()) == value


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.text("xyz ") | st.integers(0, 99), min_size=1)), st.data())
def test_of_a_list_that_breaks_off_only_whole_items_are_kept(items: list[Any], data: st.DataObject) -> None:
    text = json.dumps({"items": items})
    cut = text[: data.draw(st.integers(0, len(text)))]
    try:
        kept = read_json(cut).get("items", [])
    except LlmError:
        return
    assert kept == items[: len(kept)]


@pytest.mark.parametrize(
    "text",
    ["{" * 499_999, "[\\" * 240_000, "<think>" * 70_000, "['a\\' " * 70_000, "[a,\n" * 120_000, "[ " * 240_000],
    ids=lambda text: repr(text[:7]),
)  # fmt: skip
def test_long_nonsense_comes_to_an_end(text: str) -> None:
    with pytest.raises(LlmError):
        read_json(text)


@pytest.mark.parametrize("depth", [500, 1_000, 3_000, 6_000, 30_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a": ', "}"), ('["', '"]')])
def test_values_within_values_are_read_or_refused_at_any_depth(opening: str, closing: str, depth: int) -> None:
    for text in (opening * depth + "1" + closing * depth, json.dumps({"only": "[" * depth + "]" * depth})):
        with suppress(LlmError):
            read_json(text)


FACT = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "kind": {"enum": ["fact", "event"]},
        "sources": {"type": "array", "items": {"type": "integer"}},
        "certainty": {"type": "number"},
        "day": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "sure": {"type": "boolean"},
    },
    "required": ["text", "kind", "day"],
    "additionalProperties": False,
}
FACTS = {"type": "object", "properties": {"facts": {"type": "array", "items": FACT}}, "required": ["facts"]}


def fact(**changes: Any) -> dict[str, Any]:
    return {"text": "t", "kind": "fact", "day": None, **changes}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (fact(), fact()),
        ({"text": "t", "kind": "fact"}, fact()),
        (fact(kind=" Event "), fact(kind="event")),
        (fact(sources=["1", 2.0, 3]), fact(sources=[1, 2, 3])),
        (fact(certainty="0.7"), fact(certainty=0.7)),
        (fact(sure="True"), fact(sure=True)),
        (fact(sure=None), fact()),
        (fact(day="2023-05-07"), fact(day="2023-05-07")),
        (fact(extra={"x": 1}), fact()),
    ],
)
def test_what_can_only_mean_one_thing_conforms(given: Any, kept: Any) -> None:
    assert conform({"facts": [given]}, FACTS) == {"facts": [kept]}


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ([], "the answer must be an object, not a list"),
        ({}, "facts is missing"),
        ({"facts": {}}, "facts must be a list, not an object"),
        ({"facts": [fact(), "x"]}, r"facts\[1\] must be an object, not text"),
        ({"facts": [{"kind": "fact"}]}, r"facts\[0\].text is missing"),
        ({"facts": [fact(text=None)]}, r"facts\[0\].text must be text, not null"),
        ({"facts": [fact(kind="rumour")]}, r'facts\[0\].kind must be one of \["fact", "event"\]'),
        ({"facts": [fact(sources=[1, 1.5])]}, r"facts\[0\].sources\[1\] must be a whole number, not a number"),
        ({"facts": [fact(sources=[True])]}, r"facts\[0\].sources\[0\] must be a number, not true or false"),
        ({"facts": [fact(sources=[10**4000])]}, r"facts\[0\].sources\[0\] must be a number"),
        ({"facts": [fact(certainty="much")]}, r"facts\[0\].certainty must be a number, not text"),
        ({"facts": [fact(sure=1)]}, r"facts\[0\].sure must be true or false, not a number"),
        ({"facts": [fact(day=7)]}, r"facts\[0\].day must be text, not a number"),
    ],
)
def test_what_does_not_conform_is_named_with_its_place(given: Any, place: str) -> None:
    with pytest.raises(LlmError, match=f"^{place}"):
        conform(given, FACTS)


@given(VALUES)
def test_what_conforms_once_conforms_again(value: Any) -> None:
    try:
        kept = conform(value, FACTS)
    except LlmError:
        return
    assert conform(kept, FACTS) == kept


def test_other_properties_are_kept_or_checked_as_the_schema_says() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert conform({"a": "1"}, schema) == {"a": 1}
    assert conform({"a": "x"}, {"type": "object"}) == {"a": "x"}
    with pytest.raises(LlmError, match="a property of the answer must be a number"):
        conform({"a": "x"}, schema)


def test_a_list_of_types_takes_each_of_them() -> None:
    schema = {"type": ["integer", "null"]}
    assert [conform(value, schema) for value in (None, 3, "3")] == [None, 3, 3]
    with pytest.raises(LlmError, match="must be a number"):
        conform("x", schema)


PROMPT = Prompt("List the facts.", "Anna plays the cello.", FACTS)


def first_text(value: Any) -> str:
    if not value["facts"]:
        raise InputError("there is no fact")
    return value["facts"][0]["text"]


def test_a_good_answer_is_asked_for_once() -> None:
    llm = ScriptedLlm([{"facts": [fact(text="cello")]}])
    assert ask_structured(llm, PROMPT, first_text) == "cello"
    assert llm.prompts == [PROMPT]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("no idea", "holds no object"),
        ({"facts": [{"kind": "fact"}]}, "facts[0].text is missing"),
        ({"facts": []}, "there is no fact"),
    ],
)
def test_after_a_bad_answer_the_model_is_told_what_was_wrong(bad: Any, why: str) -> None:
    llm = ScriptedLlm([bad, {"facts": [fact(text="cello")]}])
    assert ask_structured(llm, PROMPT, first_text) == "cello"
    again = llm.prompts[1]
    assert again.system == PROMPT.system
    assert again.text.startswith(PROMPT.text)
    assert why in again.text
    assert json.dumps(bad if isinstance(bad, str) else json.dumps(bad), ensure_ascii=False) in again.text


def test_a_long_bad_answer_is_shown_shortened() -> None:
    llm = ScriptedLlm(["begin" + "x" * 100_000 + "finish", {"facts": [fact()]}])
    ask_structured(llm, PROMPT, first_text)
    assert len(llm.prompts[1].text) < 3000
    assert "begin" in llm.prompts[1].text
    assert "finish" in llm.prompts[1].text


def test_two_bad_answers_are_an_error_without_their_words() -> None:
    llm = ScriptedLlm(["Luna is a cat", "Luna {"])
    with pytest.raises(LlmError, match=r"scripted gave no usable answer in 2 attempts: .*breaks off") as caught:
        ask_structured(llm, PROMPT, first_text)
    assert "Luna" not in str(caught.value)
    assert len(llm.prompts) == 2


def test_a_model_that_fails_is_not_asked_again() -> None:
    llm = ScriptedLlm([LlmError("down"), {"facts": [fact()]}])
    with pytest.raises(LlmError, match=r"^down$"):
        ask_structured(llm, PROMPT, first_text)
    assert len(llm.prompts) == 1


def test_without_a_schema_only_the_check_counts() -> None:
    assert ask_structured(ScriptedLlm(["[1, 2]"]), Prompt("s", "t"), sum) == 3


def test_faults_of_our_own_are_not_taken_for_bad_answers() -> None:
    def broken(value: Any) -> None:
        raise AttributeError("a mistake")

    with pytest.raises(AttributeError):
        ask_structured(ScriptedLlm(["[]"]), Prompt("s", "t"), broken)
