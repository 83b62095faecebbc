"""Tickets out of files, as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.secret_samples import RANDOM

from eunoe.apps.tickets import Ticket, read_ticket
from eunoe.errors import InputError


def write_file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "title", "description"),
    [
        ("# Fix the login\n\nIt fails.\n", "Fix the login", "It fails."),
        ("\ufeff## Fix  the login ##\nIt fails.", "Fix the login", "It fails."),
        ("Fix the login\n=====\n\nIt fails.", "Fix the login", "It fails."),
        ("Seen today.\n\n# Fix the login\nIt fails.", "Fix the login", "Seen today.\n\nIt fails."),
        ("```sh\n# no heading\n```\n# Fix the login\n", "Fix the login", "```sh\n# no heading\n```"),
        (
            "---\ntitle: 'Fix the login'\nlabels:\n  - bug\n---\n# Details\nIt fails.",
            "Fix the login",
            "# Details\nIt fails.",
        ),
        ('+++\ntitle = "Fix the login"\n+++\nIt fails.', "Fix the login", "It fails."),
        ("---\nproject: shop\n---\n# Fix the login\n", "Fix the login", ""),
        ("# Fix the login\n\nIt fails.\n\n---\n\nOften.", "Fix the login", "It fails.\n\n---\n\nOften."),
    ],
)
def test_markdown(text: str, title: str, description: str, tmp_path: Path) -> None:
    ticket = read_ticket(write_file(tmp_path, "login.md", text))
    assert (ticket.id, ticket.title, ticket.description) == ("login", title, description)


def test_front_matter_names_id_and_project(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.md", '---\nid: 17\nProject: "shop"\n---\n# Title\n')
    assert (read_ticket(path).id, read_ticket(path).project) == ("17", "shop")
    assert read_ticket(path, "other").project == "other"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"id": 17, "title": "Title", "description": "Words", "project": "shop", "votes": [1]}'),
        ("a.toml", 'id = 17\ntitle = "Title"\ndescription = """\nWords\n"""\nproject = "shop"'),
    ],
)
def test_json_and_toml(name: str, text: str, tmp_path: Path) -> None:
    path = write_file(tmp_path, name, text)
    assert read_ticket(path) == Ticket("17", "Title", "Words", "shop", str(path.resolve()))


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.md", "no heading at all", "has no title"),
        ("a.md", "", "has no title"),
        ("a.json", "{", "is not JSON"),
        ("a.json", "[" * 100_000, "is not JSON"),
        ("a.json", "[]", "must hold a JSON object"),
        ("a.json", '{"title": ["x"]}', "title in .* must be text"),
        ("a.json", '{"title": 3}', "title in .* must be text, not int"),
        ("a.json", '{"title": "x", "description": false}', "description in .* must be text"),
        ("a.toml", "title", "is not TOML"),
        ("a.json", f'{{"title": "x", "id": "{"x" * 201}"}}', "at most 200 fit"),
        ("a.json", '{"title": "x\\u0007y"}', "must be one line of text"),
    ],
)
def test_what_is_no_ticket_is_refused_in_one_line(name: str, text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=why):
        read_ticket(write_file(tmp_path, name, text))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.md").write_bytes(b"# caf\xe9")
    for path, why in (
        (tmp_path / "latin.md", "not UTF-8"),
        (tmp_path, "is a folder"),
        (tmp_path / "x.md", "cannot read"),
    ):
        with pytest.raises(InputError, match=why):
            read_ticket(path)


def test_the_document_has_title_description_and_summary() -> None:
    assert Ticket("a", "Title", "Words").document("Summary") == "Ticket: Title. Words. Summary"
    assert Ticket("a", "Why?", "").document("Summary") == "Ticket: Why? Summary"


@pytest.mark.parametrize("front_matter", ["id: ghp_" + RANDOM[:36], 'id: "password=hunter2"'])
def test_a_secret_is_refused_as_an_id(tmp_path: Path, front_matter: str) -> None:
    """It would stand in names of folders and in every lesson."""
    file = tmp_path / "login.md"
    file.write_text(f"---\n{front_matter}\n---\n# Fix the login\n")
    with pytest.raises(InputError, match=r"the id of .*login\.md holds a secret: give it another") as caught:
        read_ticket(file)
    assert RANDOM[:36] not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "id", ["password-reset-2", "token refresh", "SHOP-1234", "3f2a9b1c4d5e6f708192a3b4c5d6e7f801234567"]
)
def test_an_ordinary_id_is_kept(tmp_path: Path, id: str) -> None:
    file = tmp_path / "login.md"
    file.write_text(f"---\nid: {id}\n---\n# Fix the login\n")
    assert read_ticket(file).id == id
