"""Templates cannot reach out of their sandbox, and cannot stall."""

import pytest

from eunoe.apps.discussion.workflow import templates
from eunoe.apps.discussion.workflow.templates import render_template, template_names
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
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{{ 'a' * 10000000000 }}",
        "{{ '%1000000000d' | format(1) }}{{ '%1000000000d' | format(1) }}",
        "{{ 7 ** 100000000 }}",
        "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(90) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}",
        "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% for",
    ],
)
def test_no_template_stalls_or_takes_all_memory(source: str) -> None:
    with pytest.raises(WorkflowError, match="template"):
        render_template(source, {}, seconds=1)


def test_names_are_found_and_constants_take_no_memory() -> None:
    assert template_names("{{ a }}{% for b in c %}{{ b }}{% endfor %}{{ range(3) }}") == {"a", "c"}
    assert template_names("{{ 'a' * 10000000000 }}") == set()


def test_without_jinja_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"eunoe\[discussion\]"):
        render_template("{{ 1 }}", {})
