"""What goes wrong in OAuth, by the names that its standards give."""

from __future__ import annotations

from typing import Literal

from eunoe.errors import EunoeError

Code = Literal[
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "invalid_scope",
    "invalid_target",
    "invalid_redirect_uri",
    "invalid_client_metadata",
    "unsupported_grant_type",
    "unsupported_response_type",
    "access_denied",
    "temporarily_unavailable",
]


class OAuthError(EunoeError):
    """A request of a client that cannot be granted."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.code: Code = code
