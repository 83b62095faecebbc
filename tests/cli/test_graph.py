"""`eunoe graph` on the command line."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from tests.cli.conftest import Cli

import eunoe
from eunoe.errors import LlmError
from eunoe.llm.contract import ScriptedLlm

ATLAS = "project=atlas"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "100")
    path = tmp_path / "memory.db"
    with eunoe.open(path, embedder="none") as memory:
        memory.remember(ATLAS, "Anna Berg founded Nordwind with Felix Cole.", id="first")
        memory.remember(ATLAS, "Nordwind is a company in Bergen. \x1b[31mred", id="second")
    return path


def test_the_neighbourhood_is_printed(cli: Cli) -> None:
    result = cli("graph", ATLAS, "felix cole")
    assert result.code == 0
    assert "Felix Cole: in 1 passage" in result.out
    assert "Nordwind" in result.out
    assert "founded" in result.out
    assert "first" in result.out
    assert "Bergen" not in result.out


def test_names_without_a_connection_are_listed_last(cli: Cli, store: Path, tmp_path: Path) -> None:
    with eunoe.open(store, embedder="none") as memory:
        memory.remember("project=lone", "Greta Lindqvist was alone.")
        memory.remember(ATLAS, "Greta Lindqvist was alone.")
    assert "Greta Lindqvist" in cli("graph", "project=lone").out
    names = [entity["name"] for entity in cli("graph", ATLAS, "--json").json["entities"]]
    assert names[-1] == "Greta Lindqvist"
    assert "Greta Lindqvist" not in cli("graph", ATLAS, "--limit", "4").out


def test_json_holds_names_links_and_passages(cli: Cli) -> None:
    graph = cli("graph", ATLAS, "Anna Berg", "--depth", "2", "--json").json
    assert graph["entity"] == "anna berg"
    assert {entity["name"]: entity["distance"] for entity in graph["entities"]}["Bergen"] == 2
    assert [passage["id"] for passage in graph["passages"]] == ["first"]
    assert {"a", "b", "weight"} == set(graph["links"][0])


def test_a_file_is_written(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "near.graphml"
    result = cli("graph", ATLAS, "Nordwind", "--graphml", file, "--json")
    assert (result.code, result.json["entity"]) == (0, "nordwind")
    assert Xml.parse(file).getroot().tag.rpartition("}")[2] == "graphml"


def test_relations_are_printed(cli: Cli, store: Path) -> None:
    assert "founded" not in cli("graph", ATLAS, "Bergen").out
    with eunoe.open(store, embedder="none") as memory:
        triples = [["Dora Ek", "sails to", "Bergen"]]
        memory.remember(ATLAS, "Dora Ek sails to Bergen.", metadata={"triples": triples})
        memory.graph.extract(ATLAS, ask=False)
    result = cli("graph", ATLAS, "Dora Ek")
    assert "Dora Ek sails to Bergen" in [" ".join(line.split()) for line in result.out.splitlines()]
    (relation,) = cli("graph", ATLAS, "Dora Ek", "--json").json["relations"]
    assert relation == {"subject": "dora ek", "relation": "sails to", "object": "bergen", "passages": 1}


@pytest.mark.parametrize(
    ("args", "code", "reason"),
    [
        (["Nobody Known"], 1, "no passage that names"),
        (["Nordwnid"], 1, "did you mean Nordwind?"),
        (["--depth", "99"], 1, "depth is 99"),
        (["--graphml", "no/such/folder/x.xml"], 1, "no/such/folder/x.xml"),
        (["--extract"], 1, "EUNOE_LLM"),
    ],
)
def test_mistakes_are_one_line(cli: Cli, args: list[str], code: int, reason: str) -> None:
    result = cli("graph", ATLAS, *args)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert reason in result.err


def test_the_model_reads_what_is_due_first(cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"number": 1, "entities": ["company"], "triples": []}
    model = ScriptedLlm([{"passages": [entry, entry | {"number": 2}]}, LlmError("the server is down")])
    monkeypatch.setattr("eunoe.llm.models.load_llm", lambda *_: model)
    result = cli("graph", ATLAS, "company", "--extract")
    assert result.code == 0
    assert "2 passages read: 1 name, 0 triples" in result.err
    assert "Bergen" in result.out
    with eunoe.open(store, embedder="none") as memory:
        memory.remember(ATLAS, "Dora Ek joined.")
    result = cli("graph", ATLAS, "--extract", "--json")
    assert result.code == 1
    assert "1 still due" in result.err
    assert "the server is down" in result.err
    assert result.json["entities"]
