"""What is wrong with a workflow is found before it runs, all at once; the page lists all that there is."""

from pathlib import Path
from typing import Any

import pytest
from tests.apps.discussion.workflow.conftest import Write

from eunoe.apps.discussion.settings import AuthorSettings, ChunkSettings, DiscussionSettings, UserSettings
from eunoe.apps.discussion.workflow import Environment, ModelMap, Workflow
from eunoe.apps.discussion.workflow.check import check_workflow
from eunoe.apps.discussion.workflow.node import NODE_TYPES
from eunoe.apps.discussion.workflow.texts import BRACKETED, COUNT_KEYS, VALUES
from eunoe.llm.contract import ScriptedLlm

MODELS = ModelMap(
    endpoints={"Thinker": "openai:x@http://127.0.0.1:1/v1", "Nonsense": "gibberish"}, default=ScriptedLlm([])
)


ENVIRONMENT = Environment(models=MODELS)


def problems(node: dict[str, Any], environment: Environment = ENVIRONMENT, **variables: Any) -> list[str]:
    report = check_workflow(Workflow.of({"nodes": [node], **variables}), environment)
    return [problem.split("): ", 1)[1] for problem in report.problems]


def say(text: str) -> dict[str, Any]:
    return {"type": "StaticResponse", "content": text}


def test_all_problems_are_told_at_once(write: Write) -> None:
    write(
        "b",
        [{"type": "CustomWorkflow", "workflowName": "a"}, {"type": "Standard", "endpointName": "E", "prompt": "{u}"}],
    )
    main = write(
        "a", [{"type": "Telepathy"}, {"type": "CustomWorkflow", "workflowName": "b"}, say("{x}"), {"type": ""}]
    )
    found = "\n".join(check_workflow(main, ENVIRONMENT).problems)
    for part in ("a -> b -> a", "'E' is not mapped", "{u} is no", "{x} is no", "'Telepathy' is not", 'has no "type"'):
        assert part in found
    assert len(found.splitlines()) == 6


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        ({"type": "Standard", "endpointName": "Other"}, "the endpoint 'Other' is not mapped"),
        ({"type": "Standard", "preset": "Hot"}, "the preset 'Hot' is not mapped"),
        ({"type": "Standard", "endpointName": "{where}"}, "the endpoint 'Else' is not mapped"),
        ({"type": "Standard", "endpointName": "Nonsense"}, "'gibberish' is not a language model"),
        ({"type": "StaticResponse"}, "content is missing"),
        (
            {"type": "StaticResponse", "content": "", "nMessagesToIncludeInVariable": 2.0},
            "nMessagesToIncludeInVariable must",
        ),
        ({"type": "Standard", "minMessagesInVariable": "few"}, "minMessagesInVariable must be a whole number"),
        ({"type": "StaticResponse", "content": {"a": 1}}, "content must be text"),
        ({"type": "StringConcatenator", "strings": "abc"}, "strings must be a list"),
        ({"type": "CustomWorkflow", "workflowName": 5}, "no folder to find the workflow '5' in"),
        ({"type": "Standard", "endpointName": 5}, "the endpoint '5' is not mapped"),
        (say("{agent1Output}"), "content: {agent1Output} has no value yet"),
        (say("{agent9Output}"), "content: {agent9Output} has no value"),
        ({**say("x"), "returnToUser": "true"}, "returnToUser must be true or false"),
        ({**say("{{ nothing }}"), "jinja2": True}, "content: {{ nothing }} has no value; put {% raw %}"),
        ({**say("{% for %}"), "jinja2": True}, "content: its template failed"),
        ({"type": "StringConcatenator", "strings": ["a", "{u}"]}, "strings: {u} is no placeholder"),
        ({"type": "PythonModule", "module_path": "x.py"}, "the node type 'PythonModule' is not supported"),
        ({"type": "CustomWorkflow", "workflowName": "x"}, "no folder to find the workflow 'x' in"),
        (
            {"type": "ConditionalCustomWorkflow", "conditionalKey": "x", "conditionalWorkflows": []},
            "conditionalWorkflows must be",
        ),
    ],
)
def test_each_problem(node: dict[str, Any], problem: str) -> None:
    found = problems(node, where="Else")
    assert len(found) == 1
    assert found[0].startswith(problem)


@pytest.mark.parametrize(
    "node",
    [
        {"type": "Standard", "endpointName": "Thinker", "prompt": '{"a": 1} {agent1Input} {where} {{x}}'},
        {**say("{{ where }} {{ messages }} {{ agent1Input }} {% set z = 1 %}{{ z }}"), "jinja2": True},
        {"type": "WorkflowLock", "workflowLockId": "{where}"},
    ],
)
def test_what_is_right_has_none(node: dict[str, Any]) -> None:
    assert problems(node, where="Thinker") == []


def test_a_node_needs_a_model() -> None:
    assert "no language model" in problems({"type": "Standard", "prompt": "x"}, Environment())[0]
    assert (
        problems({"type": "Standard", "prompt": "x"}, Environment(models=ModelMap(endpoints={"*": "openai:x"}))) == []
    )


def test_a_called_workflow_gets_so_many_inputs(write: Write) -> None:
    write("sub", [say("{agent1Input}{agent2Input}")])
    main = write("main", [{"type": "CustomWorkflow", "workflowName": "sub", "scoped_variables": ["x"]}])
    assert "{agent2Input} has no value: it is called with 1" in check_workflow(main).problems[0]


def test_every_route_is_followed(write: Write, tmp_path: Path) -> None:
    write("one", [say("{u}")])
    routes = {"a": "one", "b": "{agent1Input}", "Default": "gone"}
    node = {"type": "ConditionalCustomWorkflow", "conditionalKey": "x", "conditionalWorkflows": routes}
    report = check_workflow(write("main", [node]))
    assert len(report.problems) == 2
    assert "known only when it runs" in report.notes[0]
    assert report.workflows == [str(tmp_path / "workflows" / name) for name in ("main.json", "one.json")]


def test_notes_tell_what_is_not_read() -> None:
    nodes = [{**say("x"), "addUserTurnTemplate": True, "isResponder": True}, {**say("x"), "returnToUser": True}]
    report = check_workflow(Workflow.of({"nodes": nodes, "my name": 1, "Discussion_Id": 2, "agent1Input": 3}))
    assert report.problems == []
    for part in ("addUserTurnTemplate", "my name", "takes the place", "agent1Input", "several nodes"):
        assert part in "\n".join(report.notes)


@pytest.mark.parametrize(
    ("ids", "problems"),
    [(("agent1", "agent2"), 0), (("a", "agent1"), 1), (("agent2", "agent1"), 2), (("agent9", "agentX"), 0)],
)
def test_two_nodes_that_are_called_agent_n_are_found(ids: tuple[str, ...], problems: int) -> None:
    found = check_workflow(Workflow.of([{**say("x"), "id": id} for id in ids])).problems
    assert (len(found), all("called by its place" in problem for problem in found)) == (problems, True)


@pytest.mark.parametrize(
    ("nodes", "notes"),
    [
        ([{"type": "RecentMemory"}, {"type": "FullChatSummary"}], 1),
        ([{"type": "RecentMemory", "update_first": True}, {"type": "FullChatSummary"}], 0),
        ([{"type": "RecentMemory"}, {"type": "QualityMemory"}], 0),
    ],
)
def test_memories_that_are_read_and_never_made_are_noted(nodes: list[dict[str, Any]], notes: int) -> None:
    report = check_workflow(Workflow.of(nodes))
    assert (report.problems, sum("only read: add QualityMemory" in note for note in report.notes)) == ([], notes)


def test_deep_nesting_is_no_crash() -> None:
    nested: Any = "{u}"
    for _ in range(5000):
        nested = [nested]
    found = problems({"type": "StringConcatenator", "strings": nested})
    assert [each.split(",")[0].split(";")[0] for each in found] == [
        "strings must be a list of texts",
        "strings: {u} is no placeholder",
    ]


def test_ids_are_unique() -> None:
    report = check_workflow(Workflow.of([{**say("x"), "id": "a"}, {**say("x"), "id": "a"}]))
    assert "id 'a'" in report.problems[0]


def test_workflows_and_models_of_the_settings_are_checked(write: Write) -> None:
    author = AuthorSettings(workflow="gone", endpoint="Nowhere")
    settings = DiscussionSettings(chunk_memory=ChunkSettings(author=author))
    report = check_workflow(write("main", [say("x")]), Environment(settings=settings))
    assert ["'Nowhere' is not mapped" in report.problems[0], "'gone'" in report.problems[1]] == [True, True]


def test_many_calls_of_one_workflow_are_checked_once(write: Write) -> None:
    for number in range(15):
        write(f"w{number}", [{"type": "CustomWorkflow", "workflowName": f"w{number + 1}"}] * 4)
    write("w15", [say("x")])
    report = check_workflow(write("w0", [{"type": "CustomWorkflow", "workflowName": "w1"}] * 4))
    assert (report.problems, len(report.workflows)) == ([], 16)


def test_workflows_that_the_settings_of_a_user_name_are_read(write: Write) -> None:
    main = write("main", [{"type": "RecentMemory"}])
    write("own", [{"type": "RecentMemory"}])
    write("wrong", [say("{unknown}")])

    def first(**names: str) -> str:
        return check_workflow(main, Environment(user_settings=UserSettings(**names))).problems[0]

    assert "there is no workflow 'gone'" in first(recent_memory_workflow="gone")
    assert "calls itself: main -> own -> own" in first(recent_memory_workflow="own")
    assert "calls itself: main -> main" in first(recent_memory_workflow="main")
    assert "{unknown} is no placeholder" in first(chat_summary_workflow="wrong")


DOCS = Path(__file__).parents[4] / "docs" / "discussions"


PAGE, NODES = ((DOCS / name).read_text(encoding="utf-8") for name in ("workflows.md", "nodes.md"))


@pytest.mark.parametrize("name", [*VALUES, *BRACKETED, *COUNT_KEYS])
def test_every_placeholder_is_listed(name: str) -> None:
    short = name.removeprefix("chat_user_prompt").removeprefix("templated_user_prompt")
    assert f"`{{{name}}}`" in PAGE or f"`{short}`" in PAGE or f"`[{name}]`" in PAGE or f"`{name}`" in PAGE


def test_every_node_type_is_listed_with_its_keys() -> None:
    own = [each for each in NODE_TYPES.values() if each.function.__module__.endswith("workflow.nodes")]
    pages = f"{PAGE}\n{NODES}".replace("\\*", "*")
    rows = {
        each.name: line for each in own for line in reversed(pages.splitlines()) if line.startswith(f"| `{each.name}` ")
    }
    for each in own:
        assert [key for key in each.required if f"`{key}`*" not in rows[each.name]] == []
