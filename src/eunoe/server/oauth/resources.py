"""What an access token can be for: MCP, the HTTP routes, or both."""

from __future__ import annotations

from typing import Final

from eunoe.server.oauth.errors import OAuthError

_PATHS: Final = ("/mcp", "/v1")


class Resources:
    """The resources of one server, by their addresses."""

    def __init__(self, public_url: str) -> None:
        self.public_url = public_url

    @property
    def default(self) -> str:
        return f"{self.public_url}/mcp"

    def check(self, resource: str) -> str:
        """Return the resource that a client names; MCP if it names none."""
        named = resource.rstrip("/") if resource else self.default
        if named not in (self.public_url, *(f"{self.public_url}{path}" for path in _PATHS)):
            raise OAuthError("invalid_target", "the resource is not one of this server")
        return named

    def covers(self, resource: str, path: str) -> bool:
        """Whether a token for a resource is good for a path."""
        paths = [each for each in _PATHS if resource in (self.public_url, f"{self.public_url}{each}")]
        return any(path == each or path.startswith(f"{each}/") for each in paths)
