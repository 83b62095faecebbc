"""Placeholders and templates in the texts of nodes."""

import sys
from datetime import datetime
from typing import Any

import pytest

from eunoe.apps.discussion.workflow import Environment, Workflow, run_workflow
from eunoe.apps.discussion.workflow.texts import _jinja, render_template, template_names
from eunoe.errors import MissingPackageError, WorkflowError

CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
    {"role": "user", "content": [{"type": "text", "text": "three"}]},
]


NOW = datetime(2024, 5, 3, 14, 7)


def render(text: str, inputs: Any = (), **fields: Any) -> str:
    workflow = Workflow.of({"nodes": [{"type": "StaticResponse", "content": text, **fields}], "name": "Anna", "n": 3})
    environment = Environment(now=lambda: NOW)
    return run_workflow(workflow, messages=CHAT, inputs=inputs, environment=environment).text


VALUES = {
    "chat_user_prompt_last_one": "three",
    "chat_user_prompt_last_two": "two\nthree",
    "chat_user_prompt_last_twenty": "one\ntwo\nthree",
    "templated_user_prompt_last_two": "assistant: two\nuser: three",
    "chat_user_prompt_n_messages": "one\ntwo\nthree",
    "chat_user_prompt_estimated_token_limit": "one\ntwo\nthree",
    "chat_user_prompt_min_n_max_tokens": "one\ntwo\nthree",
    "templated_user_prompt_n_messages": "user: one\nassistant: two\nuser: three",
    "chat_system_prompt": "Be kind.",
    "Discussion_Id": "",
    "YYYY_MM_DD": "2024_05_03",
    "todays_date_pretty": "May 3, 2024",
    "todays_date_iso": "2024-05-03",
    "current_time_12h": "02:07 PM",
    "current_time_24h": "14:07",
    "current_day_of_week": "Friday",
    "current_day_of_month": "3",
    "current_month_full": "May",
    "time_context_summary": "",
    "name": "Anna",
    "n": "3",
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_chat_date_and_workflow(name: str) -> None:
    assert render(f"<{{{name}}}>") == f"<{VALUES[name]}>"


def test_templates_have_the_same_values() -> None:
    source = "|".join(f"{{{{ {name} }}}}" for name in VALUES)
    assert render(source, jinja2=True) == "|".join(VALUES.values())


@pytest.mark.parametrize(
    ("name", "fields", "value"),
    [
        ("n_messages", {"nMessagesToIncludeInVariable": 1}, "three"),
        ("n_messages", {"nMessagesToIncludeInVariable": 0}, ""),
        ("n_messages", {"nMessagesToIncludeInVariable": " 1 "}, "three"),
        ("n_messages", {"nMessagesToIncludeInVariable": None}, "one\ntwo\nthree"),
        ("estimated_token_limit", {"estimatedTokensToIncludeInVariable": 2}, "three"),
        ("min_n_max_tokens", {"minMessagesInVariable": 2, "maxEstimatedTokensInVariable": 1}, "two\nthree"),
    ],
)
def test_a_node_says_how_much_of_the_chat(name: str, fields: dict[str, Any], value: str) -> None:
    assert render(f"{{chat_user_prompt_{name}}}", **fields) == value


def test_how_much_of_the_chat_may_be_an_input() -> None:
    assert render("{chat_user_prompt_n_messages}", ["2"], nMessagesToIncludeInVariable="{agent1Input}") == "two\nthree"


@pytest.mark.parametrize("count", [2.0, -1, True, "many", "-1", "", [], "{chat_user_prompt_n_messages}"])
def test_a_number_that_is_none_is_refused(count: Any) -> None:
    with pytest.raises(WorkflowError, match="nMessagesToIncludeInVariable must be"):
        render("{chat_user_prompt_n_messages}", nMessagesToIncludeInVariable=count)


def test_what_is_put_in_is_not_read_again() -> None:
    assert render("{agent1Input}!", ["{name} {{x}} [TextChunk] {"]) == "{name} {{x}} [TextChunk] {!"


@pytest.mark.parametrize(
    "text", ['{"a": 1}', "{ name }", "{}", "{1}", "{a b}", "}{", "{", "if (x) { y }", "[x] [Name]"]
)
def test_braces_around_no_name_are_braces(text: str) -> None:
    assert render(text) == text


def test_double_braces_are_braces() -> None:
    assert render('{{name}} {"{name}": {{"x"}}}') == '{name} {"Anna": {{"x"}}}'
    assert render("{{{name}}} {{{{name}}}}") == "{{Anna}} {{{Anna}}}"


@pytest.mark.parametrize("text", ["{unknown}", "{agent1Input}", "{agent1Output}", "{agent7Output}", "[TextChunk]"])
def test_an_unknown_one_names_the_node(text: str) -> None:
    with pytest.raises(WorkflowError, match=r"the workflow: node 1 \(StaticResponse\): .*"):
        render(text)


def test_an_unknown_one_in_a_template_too() -> None:
    with pytest.raises(WorkflowError, match="'unknown' is undefined"):
        render("{{ unknown }}", jinja2=True)
    assert render("{{ agent1Input | default('nothing') }}", jinja2=True) == "nothing"


def test_named_inputs_stand_in_brackets() -> None:
    text = render("[TextChunk]|{agent1Input}|{agent2Input}", {"TextChunk": "a [Memory_file]", "Memory_file": "b"})
    assert text == "a [Memory_file]|a [Memory_file]|b"


def test_named_inputs_stand_in_brackets_of_templates_too() -> None:
    content = "{{ x }}: [TextChunk]{% if x %} [Chat_Summary]{% endif %}"
    document = {"nodes": [{"type": "StaticResponse", "jinja2": True, "content": content}], "x": "[TextChunk]"}
    inputs = {"TextChunk": "{{ x }} [Chat_Summary]", "Chat_Summary": "s"}
    assert run_workflow(Workflow.of(document), inputs=inputs).text == "[TextChunk]: {{ x }} [Chat_Summary] s"
    with pytest.raises(WorkflowError, match=r"\[TextChunk\] has no value here"):
        run_workflow(Workflow.of(document))


def test_outputs_are_known_by_number_and_by_id() -> None:
    nodes = [
        {"type": "StaticResponse", "content": "A{name}"},
        {"id": "topics", "type": "StaticResponse", "content": "{agent1Output}B"},
        {"type": "StaticResponse", "content": "{agent2Output} {topicsOutput}"},
    ]
    assert run_workflow(Workflow.of({"nodes": nodes, "name": "{x}"})).text == "A{x}B A{x}B"


def test_an_output_of_a_later_node_is_not_there_yet() -> None:
    nodes = [{"type": "StaticResponse", "content": "{agent2Output}"}, {"type": "StaticResponse", "content": "x"}]
    with pytest.raises(WorkflowError, match="has no value yet: node 2"):
        run_workflow(Workflow.of(nodes))


def test_a_template_has_loops_and_messages() -> None:
    source = "{% for m in messages if m.role == 'user' %}{{ m.content | upper }};{% endfor %}{{ name }}\n"
    messages = [{"role": "user", "content": "hi {{ 7*7 }}"}, {"role": "assistant", "content": "no"}]
    assert render_template(source, {"messages": messages, "name": "Änna"}) == "HI {{ 7*7 }};Änna\n"


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ name | attr('__class__') }}",
        "{{ '{0.__class__}'.format(name) }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}{{ os }}",
        "{{ messages.append(1) }}",
        "{{ '{x.__class__}'.format_map({'x': name}) }}",
        "{{ (1).__class__ }}",
    ],
)
def test_no_way_out(source: str) -> None:
    with pytest.raises(WorkflowError, match="its template failed"):
        render_template(source, {"name": "x", "messages": []})


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}",
        "{% for i in range(999999) %}{% endfor %}",
        "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% for",
    ],
)
def test_a_template_that_is_too_much_is_an_error(source: str) -> None:
    with pytest.raises(WorkflowError, match="template"):
        render_template(source, {})


def test_names_are_found() -> None:
    assert template_names("{{ a }}{% for b in c %}{{ b }}{% endfor %}{{ range(3) }}") == {"a", "c"}


def test_without_jinja_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2.sandbox", None)
    _jinja.cache_clear()
    with pytest.raises(MissingPackageError, match=r"eunoe\[discussion\]"):
        render_template("{{ 1 }}", {})
