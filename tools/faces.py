"""Write what follows from the verbs: python -m tools.faces, or with --check say what is not up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tools.typescript_types import TARGET, openapi_document, typescript_types

from eunoe.memory.groups import Admin, Corrections, Graph, Leases, Streams, Summaries
from eunoe.memory.verb import VERBS, Verb

ROOT = Path(__file__).parent.parent
FACES = ROOT / "src/eunoe/memory/faces.py"
HTTP = ROOT / "docs/http.md"
_GROUPS = (Streams, Summaries, Corrections, Leases, Graph, Admin)
_HEAD = '''"""The verbs awaited, bound to a scope, or both. Written from the verbs of `Memory`: run `make faces`."""

from __future__ import annotations

from eunoe.memory.groups import Admin, Corrections, Graph, Leases, Streams, Summaries
from eunoe.memory.memory import Memory
from eunoe.memory.twins import AsyncFace, AsyncGroup, AsyncRenewal, BoundMemory, Threads, awaited, bound
from eunoe.model.scope import ScopeLike
'''
_ASYNC_MEMORY = '''class AsyncMemory(AsyncFace):
    """Every verb of `Memory`, awaited.

    >>> import asyncio
    >>> async def main():
    ...     async with eunoe.open_async(":memory:") as memory:
    ...         await memory.remember({"user": "anna"}, "Anna is allergic to peanuts.")
    ...         hits = await memory.recall({"user": "anna"}, "What must Anna not eat?")
    ...         return hits[0].text
    >>> asyncio.run(main())
    'Anna is allergic to peanuts.'
    """

    def __init__(self, blocking: Memory, threads: Threads | None = None) -> None:
        super().__init__(blocking, threads)
'''
_AT = '''    def at(self, scope: ScopeLike | None = None, /, **keys: str | int) -> AsyncScopedMemory:
        """Bind the everyday verbs to a scope."""
        return AsyncScopedMemory(self, self._blocking.at(scope, **keys).scope)
'''


def python_faces() -> str:
    """The module with the async and the bound memories."""
    return "\n\n".join([_HEAD, *map(_async_group, _GROUPS), _async_memory(), _bound("Memory"), _bound("AsyncMemory")])


def _async_group(group: type) -> str:
    name = group.__name__
    base = "AsyncRenewal" if group is Leases else f"AsyncGroup[{name}]"
    lines = [
        f"    {each.function.__name__} = awaited({name}.{each.function.__name__})\n" for each in _verbs(name.lower())
    ]
    return f'class Async{name}({base}):\n    """`{name}`, awaited."""\n\n{"".join(lines)}'


def _async_memory() -> str:
    groups = [f"        self.{name} = Async{name.capitalize()}(blocking.{name}, self._threads)\n" for name in _names()]
    verbs = [f"    {each.name} = awaited(Memory.{each.name})\n" for each in _verbs("")]
    return f"{_ASYNC_MEMORY}{''.join(groups)}\n{_AT}\n{''.join(verbs)}"


def _bound(memory: str) -> str:
    name, kind = memory.replace("Memory", "ScopedMemory"), "an async memory" if memory != "Memory" else "a memory"
    verbs = [f"    {each.name} = bound({memory}.{each.name})\n" for each in _verbs("") if each.is_scoped]
    head = f'class {name}(BoundMemory[{memory}]):\n    """The everyday verbs of {kind}, bound to one scope."""\n\n'
    return f"{head}    __slots__ = ()\n\n{''.join(verbs)}"


def _names() -> list[str]:
    return [group.__name__.lower() for group in _GROUPS]


def _verbs(group: str) -> Iterator[Verb]:
    return (each for each in VERBS.values() if each.group == group)


def http_page() -> str:
    """The page about HTTP, with its table of verbs."""
    page = HTTP.read_text(encoding="utf-8")
    rows = [
        f"| `{verb.route}` | `{name}` | {verb.right} | {verb.summary.rstrip('.').replace('|', '/')} |\n"
        for name, verb in sorted(VERBS.items(), key=lambda each: each[1].group)
        if verb.route
    ]
    head = "| route | verb | right | |\n|---|---|---|---|\n"
    before, start, rest = page.partition("<!-- verbs: written by make faces -->\n")
    return before + start + head + "".join(rows) + "<!-- /verbs -->" + rest.partition("<!-- /verbs -->")[2]


def main() -> None:
    written = {FACES: python_faces(), HTTP: http_page(), TARGET: typescript_types(openapi_document())}
    stale = [path for path, text in written.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        sys.exit("".join(f"{path.relative_to(ROOT)} is not up to date: run make faces\n" for path in stale) or 0)
    for path in stale:
        path.write_text(written[path], encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
