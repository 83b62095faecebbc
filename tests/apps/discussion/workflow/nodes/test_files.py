"""Nodes that read and write files, and never leave their folder."""

import os
from pathlib import Path
from typing import Any

import pytest

from eunoe.apps.discussion.workflow import Environment, Workflow, run_workflow
from eunoe.apps.discussion.workflow.nodes.files import MAX_BYTES
from eunoe.errors import WorkflowError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "notes.txt").write_text("one---two", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to(tmp_path)
    return folder


def run(folder: Path | None, type: str, **fields: Any) -> str:
    return run_workflow(Workflow.of([{"type": type, **fields}]), environment=Environment(files=folder)).text


def test_a_file_is_read_with_another_delimiter(folder: Path) -> None:
    assert run(folder, "GetCustomFile", filepath="notes.txt") == "one---two"
    fields = {"delimiter": "---", "customReturnDelimiter": "\n"}
    assert run(folder, "GetCustomFile", filepath=str(folder / "notes.txt"), **fields) == "one\ntwo"


def test_a_missing_file_is_empty_with_a_note(folder: Path) -> None:
    result = run_workflow(
        Workflow.of([{"type": "GetCustomFile", "filepath": "gone.txt"}]), environment=Environment(files=folder)
    )
    assert result.text == ""
    assert "there is no file" in result.notes[0]


def test_a_file_is_written_whole(folder: Path) -> None:
    run(folder, "SaveCustomFile", filepath="new/{YYYY_MM_DD}.txt", content="héllo {{x}}")
    assert [path.read_text(encoding="utf-8") for path in (folder / "new").iterdir()] == ["héllo {x}"]
    run(folder, "SaveCustomFile", filepath="notes.txt", content="")
    assert (folder / "notes.txt").read_text() == ""


@pytest.mark.parametrize("path", ["../secret.txt", "link.txt", "up/secret.txt", "/etc/passwd", "a/../../x", "\0", ""])
def test_no_path_leads_out_of_the_folder(folder: Path, path: str) -> None:
    for type, fields in (("GetCustomFile", {}), ("SaveCustomFile", {"content": "x"})):
        with pytest.raises(WorkflowError, match=type):
            run(folder, type, filepath=path, **fields)
    assert (folder.parent / "secret.txt").read_text() == "secret"
    assert not (folder.parent / "x").exists()


def test_a_pipe_or_a_folder_is_no_file(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for path, reason in (("pipe", "is no file"), (".", "is a folder")):
        with pytest.raises(WorkflowError, match=reason):
            run(folder, "GetCustomFile", filepath=path)
    with pytest.raises(WorkflowError, match="is a folder"):
        run(folder, "SaveCustomFile", filepath=".", content="x")


def test_what_is_no_text_or_too_long_is_refused(folder: Path) -> None:
    (folder / "picture").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkflowError, match="no text in UTF-8"):
        run(folder, "GetCustomFile", filepath="picture")
    os.truncate(folder / "picture", MAX_BYTES + 1)
    with pytest.raises(WorkflowError, match="longer than"):
        run(folder, "GetCustomFile", filepath="picture")


def test_without_a_folder_nothing_is_read_or_written() -> None:
    with pytest.raises(WorkflowError, match="--files"):
        run(None, "GetCustomFile", filepath="notes.txt")


def test_a_file_keeps_its_mode_and_a_new_one_has_that_of_every_new_file(folder: Path) -> None:
    (folder / "plain").touch()
    (folder / "notes.txt").chmod(0o640)
    for name in ("notes.txt", "new.txt"):
        run(folder, "SaveCustomFile", filepath=name, content="x")
    modes = [(folder / name).stat().st_mode & 0o777 for name in ("notes.txt", "new.txt")]
    assert modes == [0o640, (folder / "plain").stat().st_mode & 0o777]
    assert not list(folder.glob(".*"))


def test_folders_may_be_texts(folder: Path) -> None:
    environment = Environment(files=str(folder))  # type: ignore[arg-type]
    nodes = Workflow.of([{"type": "GetCustomFile", "filepath": "notes.txt"}])
    assert run_workflow(nodes, environment=environment).text == "one---two"
