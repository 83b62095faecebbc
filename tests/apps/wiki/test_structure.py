"""Structures as models give them, and as they are written."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from eunoe.apps.wiki.agents import MAX_PAGES, WikiStructure


def structure(*pages: dict[str, Any]) -> WikiStructure:
    return WikiStructure.model_validate({"title": "Shop", "sections": [{"title": "All", "pages": list(pages)}]})


def tidy_ids(*pages: dict[str, Any]) -> list[str]:
    return [page.id for page in structure(*pages).tidy([])[0].pages()]


def test_files_that_are_not_there_are_left_out_and_told() -> None:
    page = {"id": "cart", "title": "Cart", "file_paths": ["./a.py", "b.py", "a.py", "../secret", "/etc/passwd"]}
    tidy, notes = structure(page).tidy(["a.py", "c.py"])
    assert [page.file_paths for page in tidy.pages()] == [["a.py"]]
    assert notes == ["page cart: 3 of its files are not in the repository, and were left out"]


@pytest.mark.parametrize(
    "text",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "a/b\\c",
        "..",
        "CON",
        "index",
        "nul",
        "\0",
        "\n",
        "💥",
        "x" * 500,
        ".git",
        "日本",
    ],
)
def test_whatever_a_page_is_called_its_id_is_a_plain_name(text: str) -> None:
    for page in ({"id": text, "title": "T"}, {"title": f"T{text}"}):
        (id,) = tidy_ids(page)
        assert re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?(?:-page)?", id)
        assert id not in ("index", "con", "nul")


def test_titles_take_one_line_without_control_characters() -> None:
    (page,) = structure({"title": "Cart\n## Not a heading\x1b[31m", "description": "One.\n\nTwo."}).pages()
    assert (page.title, page.description) == ("Cart ## Not a heading[31m", "One. Two.")


@pytest.mark.parametrize(
    "sections",
    [
        [],
        [{"title": "Empty", "pages": []}],
        [{"title": "All", "pages": [{"title": ""}]}],
        [{"title": "All", "pages": [{"title": " \n"}]}],
        [{"title": "All", "pages": [{"title": "T", "importance": "vital"}]}],
        [{"title": "All", "pages": [{"title": "T"}] * (MAX_PAGES + 1)}],
        "none",
    ],
)
def test_what_is_no_wiki_is_refused(sections: Any) -> None:
    with pytest.raises(ValidationError):
        WikiStructure.model_validate({"title": "Shop", "sections": sections})
