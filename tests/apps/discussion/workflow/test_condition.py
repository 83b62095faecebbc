"""Conditions of workflows."""

import pytest

from eunoe.apps.discussion.workflow import Workflow, run_workflow
from eunoe.apps.discussion.workflow.condition import parse_condition
from eunoe.errors import WorkflowError


def holds(condition: str, jinja2: bool = False, **variables: object) -> bool:
    document = {"nodes": [{"type": "Conditional", "condition": condition, "jinja2": jinja2}], **variables}
    return {"TRUE": True, "FALSE": False}[run_workflow(Workflow.of(document)).text]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("{a} == yes", True),
        ("{a} == 'yes'", True),
        ("'{a}' == \"yes\"", True),
        ("{a} != yes", False),
        ("{n} > 9", True),
        ("{n} >= 10.0 AND {n} <= 10", True),
        ("{n} < 9 OR {a} == yes", True),
        ("{n} < 9 AND {a} == yes OR {t} == TRUE", True),
        ("{n} < 9 AND ({a} == yes OR {t} == TRUE)", False),
        ("({a} == yes)", True),
        ("{t} == true", True),
        ("{t}", True),
        ("{empty}", False),
        ("{empty} == ''", True),
        ("{a} == hello world", False),
        ("{two} == hello world", True),
        ("{two} == 'hello  world'", False),
        ("{a} == 'it\\'s'", False),
        ("apple < banana", True),
        ("Nan == Nan", True),
        ("inf == infinity", False),
        ("1e1 == {n}", True),
        ("{salt} == salt and pepper", True),
        ("{salt} == salt or pepper", False),
    ],
)
def test_what_holds(condition: str, expected: bool) -> None:
    assert holds(condition, a="yes", n=10, t="True", empty="", two="hello world", salt="salt and pepper") is expected


def test_a_text_cannot_change_what_a_condition_means() -> None:
    assert not holds("{a} == yes", a="no OR yes == yes")
    assert not holds("'{a}' == yes", a="yes' OR '1' == '1")
    assert holds("{a} == {b}", a="x) OR (", b="x) OR (")
    assert not holds("{a} == 'x'", a="__import__('os')")


@pytest.mark.parametrize(
    "condition",
    ["", "==", "{a} ==", "({a}", "{a})", "{a} AND", "OR {a}", "{a} = b", "'open", "{a} == b == c", "(" * 99],
)
def test_what_cannot_be_read_is_an_error(condition: str) -> None:
    with pytest.raises(WorkflowError, match="cannot be read"):
        parse_condition(condition)


def test_a_template_as_condition() -> None:
    node = {"type": "Conditional", "jinja2": True, "condition": "{{ n > 3 and a == 'yes' }}"}
    assert run_workflow(Workflow.of({"nodes": [node], "a": "yes", "n": 4})).text == "TRUE"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("{{ a }} == no", False),
        ("{{ a }} == yes", True),
        ("{{ a }} == yes AND ({{ n + 1 }} > 10 OR {{ a }} == no)", True),
        ("x{{ a }}x == xyesx", True),
        ("'{{ two }}' == 'hello world'", True),
        ("{{ a == 'yes' }}", True),
        ("{{ a == 'no' }}", False),
        ("{% if a == 'no' %}true{% else %}false{% endif %}", False),
        ("{% if a == 'yes' %}more words{% endif %} == more words", True),
    ],
)
def test_the_texts_of_a_condition_may_be_templates(condition: str, expected: bool) -> None:
    assert holds(condition, jinja2=True, a="yes", n=10, two="hello world") is expected


def test_a_text_cannot_change_what_a_condition_with_templates_means() -> None:
    assert not holds("{{ a }} == yes", jinja2=True, a="no OR yes == yes")
    assert not holds("'{{ a }}' == yes", jinja2=True, a="yes' OR '1' == '1")
    assert not holds("{{ a }} == 1", jinja2=True, a="{{ 1 }}")
