"""`eunoe graph` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

import eunoe
from eunoe.cli.app import run
from eunoe.errors import LlmError
from eunoe.llm.scripted import ScriptedLlm

ATLAS = "project=atlas"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "memory.db"
    monkeypatch.setenv("EUNOE_STORE", str(path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("EUNOE_LLM", raising=False)
    with eunoe.open(path, embedder="none") as memory:
        memory.remember(ATLAS, "Anna Berg founded Nordwind with Felix Cole.", id="first")
        memory.remember(ATLAS, "Nordwind is a company in Bergen. \x1b[31mred", id="second")
    return path


def test_the_neighbourhood_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", ATLAS, "felix cole"]) == 0
    out = capsys.readouterr().out
    assert "Felix Cole: in 1 passage" in out
    assert "Nordwind" in out
    assert "founded" in out
    assert "first" in out
    assert "Bergen" not in out


def test_without_a_name_the_best_connected_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", ATLAS, "--limit", "1"]) == 0
    out = capsys.readouterr().out
    assert "Nordwind" in out
    assert "Felix Cole" not in out


def test_no_escape_sequence_reaches_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", ATLAS, "Bergen"]) == 0
    assert "\x1b[31m" not in capsys.readouterr().out


def test_json_holds_names_links_and_passages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", ATLAS, "Anna Berg", "--depth", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["entity"] == "anna berg"
    assert {entity["name"]: entity["distance"] for entity in found["entities"]}["Bergen"] == 2
    assert [passage["id"] for passage in found["passages"]] == ["first"]
    assert {"a", "b", "weight"} == set(found["links"][0])


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = tmp_path / "near.graphml", tmp_path / "near.svg"
    assert run(["graph", ATLAS, "Nordwind", "--graphml", str(files[0]), "--picture", str(files[1]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entity"] == "nordwind"
    assert [Xml.parse(file).getroot().tag.rpartition("}")[2] for file in files] == ["graphml", "svg"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["graph", ATLAS, "Nobody Known"], 1, "no passage that names"),
        (["graph", ATLAS, "--depth", "99"], 1, "depth is 99"),
        (["graph", ATLAS, "--picture", "near.png"], 2, "near.svg"),
        (["graph", ATLAS, "--graphml", "no/such/folder/x.xml"], 1, "no/such/folder/x.xml"),
    ],
)
def test_mistakes_are_told_in_one_line(
    args: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(args) == code
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_an_empty_scope_has_no_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "project=nothing"]) == 0
    assert capsys.readouterr().err == "no names found\n"


def test_the_model_reads_what_is_due_first(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"number": 1, "entities": ["company"], "triples": []}
    model = ScriptedLlm([{"passages": [entry, entry | {"number": 2}]}, LlmError("the server is down")])
    monkeypatch.setattr("eunoe.llm.models.load", lambda *_: model)
    assert run(["graph", ATLAS, "company", "--read"]) == 0
    out, err = capsys.readouterr()
    assert "2 passages read: 1 name, 0 triples" in err
    assert "Bergen" in out
    with eunoe.open(embedder="none") as memory:
        memory.remember(ATLAS, "Dora Ek joined.")
    assert run(["graph", ATLAS, "--read", "--json"]) == 1
    out, err = capsys.readouterr()
    assert "1 still due" in err
    assert "the server is down" in err
    assert json.loads(out)["entities"]


def test_reading_without_a_model_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", ATLAS, "--read"]) == 1
    assert "EUNOE_LLM" in capsys.readouterr().err
