"""The folder of a wiki: what is ours is replaced, nothing else is touched, and a kill costs one page at most."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eunoe.apps.wiki.agents import WikiStructure
from eunoe.apps.wiki.pages import STATE_FILE, OutputFolder
from eunoe.errors import ConflictError, InputError


def structure(*ids: str) -> WikiStructure:
    pages = [{"id": id, "title": id} for id in ids]
    return WikiStructure.model_validate({"title": "Shop", "sections": [{"title": "All", "pages": pages}]})


def write(path: Path, *ids: str, text: str = "text", force: bool = False, finish: bool = True) -> OutputFolder:
    with OutputFolder(path, "r1").opened() as folder:
        folder.begin(force=force)
        folder.plan(structure(*ids))
        for id in ids:
            folder.write_page(id, text)
        if finish:
            folder.write_index("index")
            folder.finish()
    return folder


def names(path: Path) -> set[str]:
    return {each.name for each in path.iterdir()} - {STATE_FILE}


@pytest.mark.parametrize("name", ["index.md", "a.md"])
def test_a_file_of_somebody_else_stays_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConflictError, match=name):
        write(tmp_path, "a")
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_link_or_a_folder_in_the_place_of_a_page_is_refused(tmp_path: Path, kind: str) -> None:
    out, other = tmp_path / "out", tmp_path / "other.md"
    write(out, "a")
    other.write_bytes((out / "a.md").read_bytes())
    (out / "a.md").unlink()
    (out / "a.md").symlink_to(other) if kind == "link" else (out / "a.md").mkdir()
    with pytest.raises(ConflictError, match=r"a\.md"):
        write(out, "a", text="new")
    assert other.read_text() == "text"


def test_a_page_that_somebody_changed_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    write(tmp_path, "a", "b")
    (tmp_path / "a.md").write_text("mine")
    with pytest.raises(ConflictError, match=r"a\.md .* changed"):
        write(tmp_path, "a")
    with OutputFolder(tmp_path, "r1").opened() as folder:
        folder.begin(force=True)
        folder.plan(structure("b"))
        folder.write_page("b", "new")
        assert folder.finish() == ["a.md"]
    assert (tmp_path / "a.md").read_text() == "mine"


def test_a_run_that_did_not_end_is_taken_up(tmp_path: Path) -> None:
    write(tmp_path, "a", "b", finish=False)
    (tmp_path / "b.md").unlink()
    with OutputFolder(tmp_path, "r1").opened() as folder:
        assert folder.begin(force=False) is None
        assert folder.state.structure == structure("a", "b")
        assert [folder.has_page(id) for id in ("a", "b")] == [True, False]


@pytest.mark.parametrize(("was", "now", "goes_on"), [(0, 1, False), (1, 1, True), (1, 0, True), (0, 0, True)])
def test_force_takes_up_only_what_was_forced(tmp_path: Path, was: int, now: int, goes_on: bool) -> None:
    write(tmp_path, "a", force=bool(was), finish=False)
    with OutputFolder(tmp_path, "r1").opened() as folder:
        folder.begin(force=bool(now))
        assert (folder.has_page("a"), folder.state.structure is not None) == (goes_on, goes_on)


def test_killed_between_the_note_and_the_page_it_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path, "a", finish=False)
    monkeypatch.setattr(
        "os.replace", lambda draft, path: None if str(path).endswith(".md") else Path(draft).rename(path)
    )
    folder.write_page("a", "new")
    monkeypatch.undo()
    assert (tmp_path / "a.md").read_text() == "text"
    with OutputFolder(tmp_path, "r1").opened() as again:
        again.begin(force=False)
        assert not again.has_page("a")
        again.write_page("a", "newer")
        assert again.has_page("a")
    assert names(tmp_path) == {"a.md"}


WRITER = """
import sys
from eunoe.apps.wiki.pages import OutputFolder
from eunoe.apps.wiki.agents import WikiStructure

pages = [{"id": f"page-{number}", "title": "T"} for number in range(20)]
with OutputFolder(sys.argv[1], "r1").opened() as folder:
    folder.begin(force=False)
    folder.plan(WikiStructure.model_validate({"title": "T", "sections": [{"title": "All", "pages": pages}]}))
    print("begun", flush=True)
    while True:
        for page in pages:
            folder.write_page(page["id"], f"{page['id']}\\n" * 2000)
            print(page["id"], flush=True)
"""


@pytest.mark.parametrize("pages", [3])
def test_killed_at_any_moment_pages_are_whole_and_the_next_run_knows_them(tmp_path: Path, pages: int) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        said = [process.stdout.readline().strip() for _ in range(pages + 1)]
        process.kill()  # while the next page is being written
        process.stdout.read()
    with OutputFolder(tmp_path, "r1").opened() as folder:
        folder.begin(force=False)
        assert folder.state.structure is not None
        ids = [page.id for page in folder.state.structure.pages()]
        made = [id for id in ids if folder.has_page(id)]
        assert set(said[1:]) <= set(made)
        assert {path.stem for path in tmp_path.glob("*.md")} == set(made)
        for id in ids:
            assert id not in made or (tmp_path / f"{id}.md").read_text() == f"{id}\n" * 2000
            folder.write_page(id, "again")
        folder.write_index("index")
        assert folder.finish() == []
    assert names(tmp_path) == {"index.md", *(f"{id}.md" for id in ids)}


def test_the_folder_of_another_repository_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a")
    with pytest.raises(InputError, match="repository r1"), OutputFolder(tmp_path, "r2").opened():
        pass


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"format": 2}', '{"format": 1, "x": 1}', "[" * 100_000, "\udcff"]
)
def test_a_state_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / STATE_FILE).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match="not the state of a wiki"):
        write(tmp_path, "a")


@pytest.mark.parametrize("name", ["../mine.md", "/etc/passwd", ".hidden.md", "a/b.md"])
def test_a_state_that_names_other_files_removes_none(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    write(out, "a")
    (tmp_path / "mine.md").write_text("text")
    state = json.loads((out / STATE_FILE).read_text())
    state["files"][name] = state["files"]["a.md"]
    (out / STATE_FILE).write_text(json.dumps(state))
    with pytest.raises(InputError, match="not the state of a wiki"):
        write(out, "b")
    assert (tmp_path / "mine.md").exists()
