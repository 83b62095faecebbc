"""Pages as they are written: with a title, with links that lead somewhere, and the way to the table of contents."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote, unquote

from eunoe.apps.wiki.agents import WikiPage, WikiStructure, slug
from eunoe.errors import ConflictError, InputError, MissingPackageError
from eunoe.files import locked, remove_dead_parts, write_file
from eunoe.model.arguments import utc_now
from eunoe.text.normalize import replace_surrogates

STATE_FILE: Final = ".eunoe-wiki.json"
INDEX_FILE: Final = "index.md"
_FORMAT: Final = 1
_FILE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,99}\.md")
_FILE_MODE: Final = 0o644


@dataclass(slots=True)
class WikiState:
    """How far the wiki in a folder has come."""

    repository_id: str
    is_complete: bool = False
    forced_since: str = ""
    """When the forced run began that this is; empty if it is none."""
    structure: WikiStructure | None = None
    pages: dict[str, str] = field(default_factory=dict)
    """By the id of a page, the digest of what this run wrote for it, noted before it is written."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """By the name of a file, the digests of all that it may hold if nobody else has changed it."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        values: dict[str, Any] = json.loads(text)
        if values.pop("format") != _FORMAT:
            raise ValueError("another format")
        structure = values.pop("structure")
        state = cls(**values, structure=WikiStructure.model_validate(structure) if structure else None)
        names = [*state.files, *(page_file(id) for id in state.pages)]
        if not all(map(_FILE_NAME.fullmatch, names)) or not isinstance(state.repository_id, str):
            raise ValueError("names that no wiki has")
        if state.forced_since:
            datetime.fromisoformat(state.forced_since)
        return state

    def to_json(self) -> str:
        values = {
            name: getattr(self, name) for name in ("repository_id", "is_complete", "forced_since", "pages", "files")
        }
        structure = self.structure.model_dump() if self.structure else None
        return json.dumps({"format": _FORMAT, **values, "structure": structure}, indent=1)


class OutputFolder:
    """The folder into which one wiki is written."""

    def __init__(self, path: str | os.PathLike[str], repository_id: str) -> None:
        self.path = Path(path).expanduser().resolve()
        self._lock = threading.Lock()
        self.state = WikiState(repository_id)

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Hold the folder, so that no other process writes into it meanwhile. The end of this process releases it."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file: name a folder for the wiki")
        is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path):
            self._load()
            remove_dead_parts(self.path)
            try:
                yield self
            finally:
                if is_new and not any(self.path.iterdir()):
                    self.path.rmdir()

    def begin(self, *, force: bool) -> WikiStructure | None:
        """Take up the run that did not come to its end, or begin a new one and return the structure before it.

        A forced run takes up only a forced one, and knows nothing of the one before.
        """
        state, before = self.state, None
        if state.is_complete or (force and not state.forced_since):
            before = None if force else state.structure
            self.state = WikiState(state.repository_id, files=state.files)
        if not force:
            self.state.forced_since = ""
        elif not self.state.forced_since:
            self.state.forced_since = utc_now().isoformat()
        self.check([INDEX_FILE])
        return before

    def plan(self, structure: WikiStructure) -> None:
        """Keep the structure of this run. Raise ConflictError if a page of it may not be written."""
        self.state.structure = structure
        self.save()
        self.check(page_file(page.id) for page in structure.pages())

    def check(self, names: Iterable[str]) -> None:
        """Raise ConflictError if a file with such a name is not as it was written here."""
        foreign = [name for name in names if not self._is_own(name)]
        if foreign:
            raise ConflictError(
                f"{', '.join(foreign)} in {self.path} was not written by Eunoe, or was changed since: "
                "move it away, or choose another folder"
            )

    def has_page(self, id: str) -> bool:
        """Return whether this run has written a page."""
        return self.state.pages.get(id, "") == self._digest(page_file(id))

    def write_page(self, id: str, text: str) -> None:
        """Write a page, whole or not at all."""
        self._write(page_file(id), text, id)

    def write_index(self, text: str) -> None:
        """Write the table of contents."""
        self._write(INDEX_FILE, text)

    def finish(self) -> list[str]:
        """Mark the wiki as complete, remove pages that it no longer has, and return those that had to stay."""
        structure = self.state.structure
        assert structure is not None
        current = {INDEX_FILE, *(page_file(page.id) for page in structure.pages())}
        kept = []
        for name in [name for name in self.state.files if name not in current]:
            if self._is_own(name):
                (self.path / name).unlink(missing_ok=True)
            else:
                kept.append(name)
            del self.state.files[name]
        self.state.is_complete, self.state.forced_since = True, ""
        self.save()
        return kept

    def save(self) -> None:
        """Write the state, whole or not at all."""
        write_file(self.path / STATE_FILE, self.state.to_json().encode(), mode=_FILE_MODE)

    def _write(self, name: str, text: str, page: str = "") -> None:
        content = replace_surrogates(text).encode()
        digest = sha256(content).hexdigest()
        with self._lock:
            self.check([name])
            # The digest is kept first: after a kill the file is known as ours, and a page that is whole as made.
            self.state.files[name] = [known for known in [self._digest(name), digest] if known]
            if page:
                self.state.pages[page] = digest
            self.save()
            write_file(self.path / name, content, mode=_FILE_MODE)

    def _load(self) -> None:
        path = self.path / STATE_FILE
        if not path.exists():
            return
        try:
            state = WikiState.from_json(path.read_text(encoding="utf-8"))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise InputError(f"{path} is not the state of a wiki ({type(error).__name__}): move it away") from None
        if state.repository_id != self.state.repository_id:
            raise InputError(
                f"{self.path} holds the wiki of repository {state.repository_id}, not of "
                f"{self.state.repository_id}: choose another folder, or give that id"
            )
        self.state = state

    def _is_own(self, name: str) -> bool:
        path = self.path / name
        return not os.path.lexists(path) or self._digest(name) in self.state.files.get(name, ())

    def _digest(self, name: str) -> str | None:
        """The digest of a file; None if there is none. A link or a folder is no file that was written here."""
        path = self.path / name
        if path.is_symlink() or not path.is_file():
            return None
        return sha256(path.read_bytes()).hexdigest()


def page_file(id: str) -> str:
    """Return the name of a page's file."""
    return f"{id}.md"


try:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline, autolink, html_inline, image, link
    from markdown_it.token import Token
except ImportError as error:
    raise MissingPackageError("eunoe.apps.wiki needs markdown-it-py: pip install 'eunoe[wiki]'") from error

FindTarget = Callable[[str], str]
"""From the target of a link as it was written to one that leads somewhere; empty if there is none."""
Rule = Callable[[StateInline, bool], bool]

_MAX_BRACKETS: Final = 300
"""In one paragraph. With more the parser takes long, and no prose has so many."""
_MAX_NESTING: Final = 100
_MAX_PASSES: Final = 5
"""What was HTML may hold links, which are seen when it has become text."""
_UNSAFE_TAG: Final = re.compile(r"<(?!/?(?:br|details|summary|sub|sup|kbd)\s*/?>)")
"""The beginning of any tag but some that only shape a text."""


class Edit(NamedTuple):
    """A stretch of a text, and what comes in its place."""

    start: int
    end: int
    text: str


def make_safe(text: str, find: FindTarget) -> str:
    """Put right where links lead, and make text of those that lead nowhere and of HTML. Code stays as it is.

    A block of code that never ends is ended.

    >>> make_safe("[a](a) and [b](b), `[b](b)`", lambda target: "a.md" if target == "a" else "")
    '[a](a.md) and b, `[b](b)`'
    """
    parser, places = _parser(), set[str]()

    def find_once(target: str) -> str:
        if target not in places:
            places.add(target := find(target))
        return target

    for _ in range(_MAX_PASSES):
        before, text = text, _Pass(text, find_once, parser).text()
        if text == before:
            return text
    return _UNSAFE_TAG.sub("&lt;", text.replace("[", "&#91;"))


class _Pass:
    """One reading of a text, which changes its lines."""

    def __init__(self, text: str, find: FindTarget, parser: MarkdownIt) -> None:
        self._lines = text.split("\n")
        self._find = find
        self._parser = parser
        self._env: dict[str, Any] = {}
        self._tokens = parser.parse(text, self._env)

    def text(self) -> str:
        for token in self._tokens:
            if token.type == "inline":
                self._change_prose(token)
            elif token.type == "html_block":
                self._change_lines(token, lambda line: _UNSAFE_TAG.sub("&lt;", line))
        self._change_references()
        return "\n".join(self._lines + self._end_of_code())

    def _change_prose(self, token: Token) -> None:
        if token.content.count("[") > _MAX_BRACKETS:
            self._change_lines(token, _as_words)
            return
        new = _apply(token.content, self._edits(token.content))
        if new == token.content:
            return
        start, _ = token.map or (0, 0)
        for number, (old_line, new_line) in enumerate(zip(token.content.split("\n"), new.split("\n"), strict=True)):
            line = self._lines[start + number]
            is_there = old_line in line  # a cell of a table is written in another way where it holds a bar
            self._lines[start + number] = line.replace(old_line, new_line, 1) if is_there else _as_words(line)

    def _edits(self, content: str) -> list[Edit]:
        edits: list[Edit] = []
        env = {**self._env, "edits": edits, "find": self._find}
        self._parser.inline.tokenize(StateInline(content, self._parser, env, []))
        return edits

    def _change_lines(self, token: Token, change: Callable[[str], str]) -> None:
        start, end = token.map or (0, 0)
        self._lines[start:end] = map(change, self._lines[start:end])

    def _change_references(self) -> None:
        for label, reference in self._env.get("references", {}).items():
            start, end = reference["map"]
            target = self._find(reference["href"])
            if target != reference["href"]:
                indent = self._lines[start].partition("[")[0]
                rest = [""] * (end - start - 1)
                self._lines[start:end] = [f"{indent}[{label.lower()}]: {target or '#'}", *rest]

    def _end_of_code(self) -> list[str]:
        last = self._tokens[-1] if self._tokens else None
        if last is None or last.type != "fence" or last.level or not last.map:
            return []
        end = self._lines[last.map[1] - 1].strip()
        is_ended = last.map[1] - last.map[0] > 1 and end.startswith(last.markup) and not end.strip(last.markup[0])
        return [] if is_ended else [last.markup]


def _parser() -> MarkdownIt:
    """A parser that notes for each link what is to be changed. It reads prose only when that is asked of it."""
    parser = MarkdownIt("commonmark").enable("table").disable(["emphasis"])
    parser.core.ruler.disable("inline")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # all are looked at here
    parser.options["maxNesting"] = _MAX_NESTING
    ruler = parser.inline.ruler
    ruler.at("link", _noted(link, "[", "href"))
    ruler.at("image", _noted(image, "![", "src"))
    ruler.at("autolink", _noted_tag(autolink))
    ruler.at("html_inline", _noted_tag(html_inline))
    return parser


def _noted(rule: Rule, opening: str, attribute: str) -> Rule:
    """A rule for links in brackets. Those that name a reference are changed where that is defined."""

    def read(state: StateInline, silent: bool) -> bool:
        start, count, edits = state.pos, len(state.tokens), len(state.env["edits"])
        if not rule(state, silent):
            return False
        if silent:
            return True
        if opening == "![":  # its label was read apart, with other places
            del state.env["edits"][edits:]
        target = str(next(token for token in state.tokens[count:] if attribute in token.attrs).attrs[attribute])
        end = state.pos
        label_end = state.md.helpers.parseLinkLabel(state, start + len(opening) - 1, opening == "[")
        if state.src[label_end : label_end + 2] == "](":
            state.env["edits"] += _link_edits(state, start, label_end, end, opening, target)
        return True

    return read


def _link_edits(state: StateInline, start: int, label_end: int, end: int, opening: str, target: str) -> list[Edit]:
    place = state.env["find"](target)
    if place and place == target:
        return []
    breaks = "\n" * state.src.count("\n", label_end, end)
    if place:
        return [Edit(label_end, end, f"]({place}){breaks}")]
    return [Edit(start, start + len(opening), ""), Edit(label_end, end, breaks)]


def _noted_tag(rule: Rule) -> Rule:
    """A rule for what stands between angle brackets: addresses and HTML."""

    def read(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            target = next((str(token.attrs["href"]) for token in state.tokens[count:] if "href" in token.attrs), "")
            is_safe = state.env["find"](target) == target if target else not _UNSAFE_TAG.match(state.src, start)
            state.env["edits"] += [] if is_safe else [Edit(start, start + 1, "&lt;")]
        return True

    return read


def _apply(text: str, edits: list[Edit]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _as_words(line: str) -> str:
    """A line in which nothing is a link or a tag."""
    return line.replace("[", "&#91;").replace("<", "&lt;")


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
