"""`eunoe graph` on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname
from xml.etree import ElementTree as Xml

import pytest
from tests.cli.conftest import Cli, Result

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


def test_without_a_name_the_best_connected_are_listed(cli: Cli) -> None:
    result = cli("graph", ATLAS, "--limit", "1")
    assert result.code == 0
    assert "Nordwind" in result.out
    assert "Felix Cole" not in result.out


def test_names_without_a_connection_are_listed_last(cli: Cli, store: Path, tmp_path: Path) -> None:
    with eunoe.open(store, embedder="none") as memory:
        memory.remember("project=lone", "Greta Lindqvist was alone.")
        memory.remember(ATLAS, "Greta Lindqvist was alone.")
    assert "Greta Lindqvist" in cli("graph", "project=lone").out
    names = [entity["name"] for entity in cli("graph", ATLAS, "--json").json["entities"]]
    assert names[-1] == "Greta Lindqvist"
    assert "Greta Lindqvist" not in cli("graph", ATLAS, "--limit", "4").out


def test_no_escape_sequence_reaches_the_terminal(cli: Cli) -> None:
    result = cli("graph", ATLAS, "Bergen")
    assert result.code == 0
    assert "\x1b[31m" not in result.out


def test_json_holds_names_links_and_passages(cli: Cli) -> None:
    graph = cli("graph", ATLAS, "Anna Berg", "--depth", "2", "--json").json
    assert graph["entity"] == "anna berg"
    assert {entity["name"]: entity["distance"] for entity in graph["entities"]}["Bergen"] == 2
    assert [passage["id"] for passage in graph["passages"]] == ["first"]
    assert {"a", "b", "weight"} == set(graph["links"][0])


def test_files_are_written(cli: Cli, tmp_path: Path) -> None:
    files = tmp_path / "near.graphml", tmp_path / "near.svg"
    result = cli("graph", ATLAS, "Nordwind", "--graphml", files[0], "--picture", files[1], "--json")
    assert (result.code, result.json["entity"]) == (0, "nordwind")
    assert [Xml.parse(file).getroot().tag.rpartition("}")[2] for file in files] == ["graphml", "svg"]


def test_relations_are_printed_and_drawn(cli: Cli, store: Path, tmp_path: Path) -> None:
    assert "founded" not in cli("graph", ATLAS, "Bergen").out
    with eunoe.open(store, embedder="none") as memory:
        triples = [["Dora Ek", "sails to", "Bergen"]]
        memory.remember(ATLAS, "Dora Ek sails to Bergen.", metadata={"triples": triples})
        memory.graph.extract(ATLAS, ask=False)
    result = cli("graph", ATLAS, "Dora Ek", "--picture", tmp_path / "dora.svg")
    assert "Dora Ek sails to Bergen" in [" ".join(line.split()) for line in result.out.splitlines()]
    texts = [text.text for text in Xml.parse(tmp_path / "dora.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:2] == ["Around Dora Ek", "project=atlas · 2 names · 1 relation"]
    assert "sails to" in texts
    (relation,) = cli("graph", ATLAS, "Dora Ek", "--json").json["relations"]
    assert relation == {"subject": "dora ek", "relation": "sails to", "object": "bergen", "passages": 1}


@pytest.mark.parametrize("named", [True, False])
def test_the_picture_is_opened_in_a_browser(store: Path, tmp_path: Path, named: bool) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{tmp_path}/address"\n', encoding="utf-8")
    browser.chmod(0o700)
    (tmp_path / "temporary").mkdir()
    environment = os.environ | {
        "BROWSER": str(browser),
        "EUNOE_STORE": str(store),
        "TMPDIR": str(tmp_path / "temporary"),
    }
    arguments = ["graph", ATLAS, "Nordwind", "--open", *(["--picture", str(tmp_path / "near.svg")] if named else [])]
    done = subprocess.run(
        [sys.executable, "-m", "eunoe", *arguments], env=environment, capture_output=True, text=True, check=True
    )
    address = (tmp_path / "address").read_text(encoding="utf-8")
    assert address.startswith("file:///")
    file = Path(url2pathname(urlsplit(address).path))
    assert file.parent == (tmp_path if named else tmp_path / "temporary")
    assert f"written to {file}" in done.stderr
    assert file.stat().st_mode & 0o077 == 0
    assert Xml.parse(file).getroot().tag.endswith("svg")


def test_without_a_browser_the_file_is_named(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    result = cli("graph", ATLAS, "Nordwind", "--open", "--picture", tmp_path / "near.svg")
    assert result.code == 0
    assert f"open {tmp_path / 'near.svg'} in one" in result.err


@pytest.mark.parametrize(
    ("args", "code", "reason"),
    [
        (["Nobody Known"], 1, "no passage that names"),
        (["Nordwnid"], 1, "did you mean Nordwind?"),
        (["--depth", "99"], 1, "depth is 99"),
        (["--picture", "near.png"], 2, "near.svg"),
        (["--graphml", "no/such/folder/x.xml"], 1, "no/such/folder/x.xml"),
        (["--extract"], 1, "EUNOE_LLM"),
    ],
)
def test_mistakes_are_one_line(cli: Cli, args: list[str], code: int, reason: str) -> None:
    result = cli("graph", ATLAS, *args)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert reason in result.err


def test_an_empty_scope_has_no_names(cli: Cli) -> None:
    hint = "project=nothing holds nothing: `eunoe scopes` lists the scopes that do"
    assert cli("graph", "project=nothing") == Result(0, "", f"no names found\n{hint}\n")


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
