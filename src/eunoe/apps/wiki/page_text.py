"""Pages as they are written: with a title, with links that lead somewhere, and the way to the table of contents."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import quote, unquote

from eunoe.apps.wiki.markdown import make_safe
from eunoe.apps.wiki.output import INDEX_FILE, page_file
from eunoe.apps.wiki.structure import WikiPage, WikiStructure, slug

_FENCE: Final = re.compile(r" *(`{3,}|~{3,})\s*([^`\s]*)")
_WEB_ADDRESS: Final = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_MARKS: Final = re.compile(r"([\\`*_\[\]<>|#])")


class LinkTargets:
    """Where the links of a wiki may lead: to its pages, to files of the repository that it stands in, to the web."""

    def __init__(self, structure: WikiStructure, files: Collection[str], root: Path, out: Path) -> None:
        self._ids = {page.id for page in structure.pages()}
        self._by_title = {slug(page.title): page.id for page in structure.pages()}
        self._files = files
        # From a wiki that stands elsewhere, a path to the repository would hold on this machine alone.
        self._way = PurePosixPath(os.path.relpath(root, out).replace(os.sep, "/")) if out.is_relative_to(root) else None

    def find(self, target: str) -> str:
        """Return where a link leads, as seen from a page."""
        if _WEB_ADDRESS.match(target) or target.startswith("#"):
            return target
        path, _, anchor = target.partition("#")
        path = unquote(path).strip()
        place = self._page(path) or self.file(path)
        return f"{place}#{anchor}" if place and anchor else place

    def file(self, path: str) -> str:
        """Return the way to a file of the repository; empty if there is none."""
        name = os.path.normpath(path.lstrip("/")).replace(os.sep, "/") if path else ""
        return quote((self._way / name).as_posix()) if self._way is not None and name in self._files else ""

    def _page(self, path: str) -> str:
        name = path.removeprefix("./")
        if name in (INDEX_FILE, "index"):
            return INDEX_FILE
        id = name.removesuffix(".md")
        if id not in self._ids:
            id = slug(id) if slug(id) in self._ids else self._by_title.get(slug(id), "")
            id = "" if "/" in path and path in self._files else id
        return page_file(id) if id else ""


def render_page(page: WikiPage, text: str, targets: LinkTargets) -> str:
    """Return a page as it is written, from what its agent wrote."""
    body = make_safe(_without_outer_fence(text.strip()), targets.find)
    if not re.match(r"#\s", body):
        body = f"# {plain(page.title)}\n\n{body}"
    files = [f"- {_file_entry(path, targets)}" for path in page.file_paths]
    parts = [body, *(["## Files", "\n".join(files)] if files else []), "---", f"[Contents]({INDEX_FILE})"]
    return "\n\n".join(parts) + "\n"


def render_index(structure: WikiStructure, is_there: Callable[[str], bool]) -> str:
    """Return the table of contents. A page that is not there yet is named without a link."""
    parts = [f"# {plain(structure.title)}", *([plain(structure.description)] if structure.description else [])]
    for section in structure.sections:
        lines = [_entry(page, is_there(page.id)) for page in section.pages]
        parts += [f"## {plain(section.title)}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """Return a text with the signs that Markdown would read otherwise made harmless.

    >>> plain("[x](y) *now*")
    '\\\\[x\\\\](y) \\\\*now\\\\*'
    """
    return _MARKS.sub(r"\\\1", text)


def _entry(page: WikiPage, is_there: bool) -> str:
    title = f"[{plain(page.title)}]({page_file(page.id)})" if is_there else f"{plain(page.title)} (not written yet)"
    return f"- {title}: {plain(page.description)}" if page.description else f"- {title}"


def _file_entry(path: str, targets: LinkTargets) -> str:
    way = targets.file(path)
    return f"[{plain(path)}]({way})" if way else f"`{path}`"


def _without_outer_fence(text: str) -> str:
    """Many models put the whole page into a block of code."""
    lines = text.splitlines()
    first = _FENCE.fullmatch(lines[0].rstrip()) if lines else None
    if first and first[2].lower() in ("markdown", "md") and lines[-1].strip() == first[1]:
        return "\n".join(lines[1:-1]).strip()
    return text
