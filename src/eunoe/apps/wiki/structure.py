"""What a wiki consists of: sections, and the pages in them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from typing import Annotated, Any, Final, Literal

from eunoe.errors import MissingPackageError

try:
    from pydantic import BaseModel, BeforeValidator, Field, model_validator
except ImportError as error:
    raise MissingPackageError("eunoe.apps.wiki needs LangChain and LangGraph: pip install 'eunoe[wiki]'") from error

MAX_PAGES: Final = 100
"""Each page is the work of an agent, and is paid for."""
_MAX_TITLE_CHARACTERS: Final = 120
_MAX_DESCRIPTION_CHARACTERS: Final = 1000
_MAX_SLUG_CHARACTERS: Final = 60
_NO_FILE_NAMES: Final = frozenset(
    {"index", "con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
)
"""The table of contents, and what Windows keeps for devices."""


def _one_line(most: int) -> BeforeValidator:
    def shorten(text: Any) -> Any:
        return "".join(c for c in " ".join(text.split()) if c.isprintable())[:most] if isinstance(text, str) else text

    return BeforeValidator(shorten)


Title = Annotated[str, _one_line(_MAX_TITLE_CHARACTERS), Field(min_length=1)]
Description = Annotated[str, _one_line(_MAX_DESCRIPTION_CHARACTERS)]


class WikiPage(BaseModel):
    """One page: what it is about, and the files that it describes."""

    id: Annotated[str, _one_line(_MAX_TITLE_CHARACTERS)] = Field(
        default="", description="Short and unique, such as `data-model`."
    )
    title: Title
    description: Description = Field(default="", description="What the page tells, in one or two sentences.")
    importance: Literal["high", "medium", "low"] = "medium"
    file_paths: list[str] = Field(
        default_factory=list, description="The files it describes, relative to the root of the repository."
    )


class WikiSection(BaseModel):
    """Pages that belong together."""

    title: Title
    pages: list[WikiPage] = Field(default_factory=list)


class WikiStructure(BaseModel):
    """The structure of a wiki: its title, and its pages in sections."""

    title: Title
    description: Description = ""
    sections: list[WikiSection]

    @model_validator(mode="after")
    def _check_number(self) -> WikiStructure:
        number = len(list(self.pages()))
        if not 0 < number <= MAX_PAGES:
            raise ValueError(f"a wiki has between 1 and {MAX_PAGES} pages in its sections; these have {number}")
        return self

    def pages(self) -> Iterator[WikiPage]:
        """Return all pages, in the order of the table of contents."""
        for section in self.sections:
            yield from section.pages

    def tidy(self, files: Collection[str]) -> tuple[WikiStructure, list[str]]:
        """Return the structure as it can be written, and what was put right.

        Every page has an id that no other has and that is good as a file's name. Files that the repository does not
        have, and sections without pages, are left out.
        """
        notes, ids = list[str](), set[str]()
        sections = [section for section in self.model_copy(deep=True).sections if section.pages]
        for page in (page for section in sections for page in section.pages):
            page.id = _unique_slug(page.id or page.title, ids)
            ids.add(page.id)
            known, missing = [], 0
            for path in dict.fromkeys(map(_plain_path, page.file_paths)):
                known += [path] * (path in files)
                missing += path not in files
            page.file_paths = known
            if missing:
                files_text = (
                    "1 of its files is not in the repository, and was"
                    if missing == 1
                    else (f"{missing} of its files are not in the repository, and were")
                )
                notes.append(f"page {page.id}: {files_text} left out")
        return self.model_copy(update={"sections": sections}), notes


def slug(text: str) -> str:
    """Return a text as a name for a file: small letters, digits and hyphens.

    >>> slug("Data model"), slug("../../etc/passwd"), slug("Überblick"), slug("CON"), slug("?")
    ('data-model', 'etc-passwd', 'uberblick', 'con-page', 'page')
    """
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-")[:_MAX_SLUG_CHARACTERS].strip("-") or "page"
    return f"{name}-page" if name in _NO_FILE_NAMES else name


def _unique_slug(text: str, others: Collection[str]) -> str:
    name = slug(text)
    number = 1
    while (f"{name}-{number}" if number > 1 else name) in others:
        number += 1
    return f"{name}-{number}" if number > 1 else name


def _plain_path(path: str) -> str:
    return path.strip().removeprefix("./").lstrip("/")
