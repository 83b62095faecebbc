"""The files of the page: read once, and known to browsers by their hashes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Final

from starlette.responses import Response

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_CACHING: Final = "no-cache"
"""Kept, but asked about each time: an update is seen at once."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page."""

    content: bytes
    media_type: str
    etag: str

    def response(self, known_etags: str = "") -> Response:
        """The file, or that it is still the one the browser has."""
        headers = {"Cache-Control": _CACHING, "ETag": self.etag}
        if self.etag in known_etags:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.media_type, headers=headers)


@cache
def page_files() -> dict[str, PageFile]:
    """Every file by its path below `static/`. No other path can be asked for."""
    return dict(_read(resources.files("eunoe.server.inspector") / "static", PurePosixPath()))


def _read(folder: Traversable, below: PurePosixPath) -> list[tuple[str, PageFile]]:
    found: list[tuple[str, PageFile]] = []
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        path = below / entry.name
        if entry.is_dir():
            found += _read(entry, path)
        elif media_type := _TYPES.get(path.suffix):
            content = entry.read_bytes()
            found.append((str(path), PageFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:20]}"')))
    return found
