"""The reference memory server's nine tools, its resource with notifications, and the import of its file."""

from __future__ import annotations

import json

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning
from tests.support.mcp_client import ANNA, SECRET, Connect, call, refusal

from eunoe.server.mcp.reference import KnowledgeGraph, import_graph
from eunoe.server.mcp.server import create_mcp_server
from eunoe.server.mcp.tool import Caller, ScopeRule

pytestmark = pytest.mark.anyio

GRAPH_URI = "memory://knowledge-graph"
NAMES = [
    "create_entities",
    "create_relations",
    "add_observations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "read_graph",
    "search_nodes",
    "open_nodes",
]
ALICE = {"name": "Alice", "entityType": "person", "observations": ["works at Acme", "likes tea"]}
ACME = {"name": "Acme", "entityType": "company", "observations": []}
WORKS = {"from": "Alice", "to": "Acme", "relationType": "works_at"}


@pytest.fixture
def connect_graph(connect: Connect):
    return lambda **options: connect("reference", **options)


async def fill(client: Client) -> None:
    await call(client, "create_entities", entities=[ALICE, ACME])
    await call(client, "create_relations", relations=[WORKS])


async def test_the_nine_tools_have_their_names_and_shapes(connect_graph):
    async with connect_graph() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == NAMES
    entities = tools["create_entities"].input_schema["properties"]["entities"]["items"]
    assert entities["required"] == ["name", "entityType", "observations"]
    assert tools["create_relations"].input_schema["properties"]["relations"]["items"]["required"] == [
        "from",
        "to",
        "relationType",
    ]
    assert tools["read_graph"].input_schema == {"type": "object", "properties": {}}
    assert [name for name, tool in tools.items() if tool.annotations.destructive_hint] == NAMES[3:6]
    assert [name for name, tool in tools.items() if tool.annotations.read_only_hint] == NAMES[6:]
    assert all(tool.output_schema for tool in tools.values())


async def test_a_graph_is_built_read_searched_and_opened(connect_graph):
    async with connect_graph() as client:
        result = await client.call_tool("create_entities", {"entities": [ALICE, ACME, ALICE]})
        assert result.structured_content == {"entities": [ALICE, ACME]}
        assert json.loads(result.content[0].text) == [ALICE, ACME]
        other = {"name": "Alice", "entityType": "robot", "observations": ["beeps"]}
        assert await call(client, "create_entities", entities=[other]) == {"entities": []}
        assert await call(client, "create_relations", relations=[WORKS, WORKS]) == {"relations": [WORKS]}
        assert await call(client, "create_relations", relations=[WORKS]) == {"relations": []}
        added = await call(
            client, "add_observations", observations=[{"entityName": "Acme", "contents": ["sells anvils", "is old"]}]
        )
        assert added == {"results": [{"entityName": "Acme", "addedObservations": ["sells anvils", "is old"]}]}
        acme = {**ACME, "observations": ["sells anvils", "is old"]}
        assert await call(client, "read_graph") == {"entities": [ALICE, acme], "relations": [WORKS]}
        assert await call(client, "search_nodes", query="ANVILS") == {"entities": [acme], "relations": [WORKS]}
        assert await call(client, "search_nodes", query="nothing") == {"entities": [], "relations": []}
        assert await call(client, "open_nodes", names=["Alice", "Bob"]) == {"entities": [ALICE], "relations": [WORKS]}


async def test_what_does_not_exist_cannot_be_tied_or_described(connect_graph, memory):
    async with connect_graph() as client:
        assert "Entity with name Alice not found" in await refusal(client, "create_relations", relations=[WORKS])
        observations = [{"entityName": "Bob", "contents": ["x"]}]
        assert "Entity with name Bob not found" in await refusal(client, "add_observations", observations=observations)
        assert await refusal(client, "create_entities", entities=[{"name": "Alice"}])
    assert not memory.scopes()


async def test_of_parallel_creates_one_is_told_that_it_created(connect_graph):
    results = []

    async def create(client: Client, number: int) -> None:
        entity = {**ALICE, "observations": [f"says {number}"]}
        results.append((await call(client, "create_entities", entities=[entity]))["entities"])

    async with connect_graph() as client:
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(create, client, number)
        (created,) = [entities for entities in results if entities]
        assert await call(client, "read_graph") == {"entities": created, "relations": []}


async def test_what_another_process_stored_meanwhile_is_not_told_as_created(connect_graph, memory):
    async with connect_graph() as client:
        await fill(client)
    graphs = [KnowledgeGraph(memory, ANNA), KnowledgeGraph(memory, ANNA)]  # both read before either writes
    bob, likes = {**ALICE, "name": "Bob"}, {"from": "Acme", "to": "Alice", "relationType": "likes"}
    addition = {"entityName": "Acme", "contents": ["is old"]}
    assert [graph.create_entities([bob]) for graph in graphs] == [[bob], []]
    assert [graph.create_relations([likes]) for graph in graphs] == [[likes], []]
    added = [graph.add_observations([addition])[0]["addedObservations"] for graph in graphs]
    assert added == [["is old"], []]


async def test_deleting_takes_what_belongs_to_it_and_it_may_come_back(connect_graph):
    async with connect_graph() as client:
        await fill(client)
        deletions = [{"entityName": "Alice", "observations": ["likes tea"]}]
        assert await call(client, "delete_observations", deletions=deletions) == {
            "success": True,
            "message": "Observations deleted successfully",
        }
        assert (await call(client, "delete_entities", entityNames=["Alice", "Bob"]))["success"]
        assert await call(client, "read_graph") == {"entities": [ACME], "relations": []}
        assert await call(client, "create_entities", entities=[ALICE]) == {"entities": [ALICE]}
        await call(client, "create_relations", relations=[WORKS])
        assert (await call(client, "delete_relations", relations=[WORKS]))["success"]
        assert (await call(client, "read_graph"))["relations"] == []


async def test_to_delete_nothing_is_no_success(connect_graph):
    async with connect_graph() as client:
        await fill(client)
        assert "Deleted 0 of 1" in await refusal(client, "delete_entities", entityNames=["Bob"])
        assert "Deleted 0 of 1" in await refusal(client, "delete_relations", relations=[{**WORKS, "to": "Bob"}])
        deletions = [{"entityName": "Alice", "observations": ["unknown"]}]
        assert "Deleted 0 of 1" in await refusal(client, "delete_observations", deletions=deletions)
        assert "Deleted 0 of 0" in await refusal(client, "delete_entities", entityNames=[])


async def test_recall_finds_what_the_graph_holds(connect: Connect, connect_graph):
    async with connect_graph() as client:
        await fill(client)
    async with connect() as client:
        found = await call(client, "recall", query="Who likes tea?")
    assert found["memories"][0]["text"] == "Alice: likes tea"


async def test_rights_hide_tools_here_too(connect_graph):
    async with connect_graph(rights=["read"]) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == NAMES[6:]
    async with connect_graph(rights=["read", "write"]) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [*NAMES[:3], *NAMES[6:]]


async def test_the_graph_is_a_resource(connect_graph):
    async with connect_graph() as client:
        await fill(client)
        (resource,) = (await client.list_resources()).resources
        assert str(resource.uri) == GRAPH_URI
        (contents,) = (await client.read_resource(GRAPH_URI)).contents
    assert json.loads(contents.text) == {"entities": [ALICE, ACME], "relations": [WORKS]}


def graph_server(memory):
    caller = Caller(lambda: memory, scopes=ScopeRule(ANNA, ANNA), id="tests")
    return create_mcp_server(lambda request: caller, profile="reference", secret=SECRET, can_notify=True)


async def test_clients_of_the_previous_protocol_are_told_of_changes(memory):
    heard = []
    changed = anyio.Event()

    async def hear(message: object) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            heard.append(str(message.params.uri))
            changed.set()

    async with Client(graph_server(memory), mode="legacy", message_handler=hear) as client:
        await fill(client)
        assert not heard
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource(GRAPH_URI)
        await call(client, "delete_entities", entityNames=["Acme"])
        with anyio.fail_after(60):
            await changed.wait()
    assert heard == [GRAPH_URI]


async def test_clients_of_the_newest_protocol_are_told_of_changes(memory):
    async with (
        Client(graph_server(memory), mode="auto") as client,
        client.listen(resource_subscriptions=[GRAPH_URI]) as events,
    ):
        await fill(client)
        with anyio.fail_after(60):
            event = await anext(aiter(events))
    assert event.uri == GRAPH_URI


FILE = [
    json.dumps({"type": "entity", **ALICE}),
    "",
    json.dumps({"type": "entity", **ACME}),
    "not json",
    json.dumps(["a list"]),
    json.dumps({"type": "planet", "name": "Mars"}),
    json.dumps({"type": "entity", "name": "half"}),
    json.dumps({"type": "relation", **WORKS}),
    json.dumps({"type": "relation", **WORKS, "to": "somewhere"}),
    json.dumps({"type": "entity", **ALICE, "observations": ["is 40"]}),
]


async def test_the_file_of_the_reference_server_is_imported_once(connect_graph, memory):
    report = import_graph(memory, ANNA, FILE)
    assert (report.entities, report.relations, report.observations) == (2, 2, 3)
    assert report.skipped == (4, 5, 6, 7)
    again = import_graph(memory, ANNA, FILE)
    assert (again.entities, again.relations, again.observations) == (0, 0, 0)
    async with connect_graph() as client:
        graph = await call(client, "read_graph")
    assert graph["entities"] == [{**ALICE, "observations": [*ALICE["observations"], "is 40"]}, ACME]
    assert len(graph["relations"]) == 2
