"""Templates cannot reach out of their sandbox."""

import sys

import pytest

from eunoe.apps.discussion.workflow.texts import _jinja, render_template, template_names
from eunoe.errors import MissingPackageError, WorkflowError


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
