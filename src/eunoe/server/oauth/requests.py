"""Requests for authorization: what a client asks for, checked, and carried through the pages that a person sees."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

from eunoe.model.arguments import Right, to_micros, utc_now
from eunoe.server.oauth.clients import Client, Clients
from eunoe.server.oauth.errors import OAuthError
from eunoe.server.oauth.resources import Resources

RIGHTS: Final[tuple[Right, ...]] = ("read", "write", "forget")
"""What a client can be given. The right `admin` stays with keys: nobody who is let in can let in others."""
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_MAX_STATE_CHARACTERS: Final = 2000
_PATIENCE_MICROS: Final = 10 * 60 * 1_000_000
"""How long a page may be looked at."""
_IGNORED_SCOPES: Final = frozenset({"offline_access"})


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a client asks a person for. The key is empty until the person has shown one."""

    client: str
    client_name: str
    redirect_uri: str
    challenge: str
    resource: str
    rights: tuple[Right, ...]
    state: str = ""
    key: str = ""
    expires: int = 0


def find_client(parameters: Mapping[str, str], clients: Clients) -> tuple[Client, str]:
    """The client of a request and where its answer goes. Without both nobody may be sent anywhere."""
    client = clients.find(parameters.get("client_id", ""))
    if client is None:
        raise OAuthError("invalid_client", "the application is not registered here, or no longer: connect it anew")
    uri = parameters.get("redirect_uri", "")
    if uri not in client.redirect_uris:
        raise OAuthError("invalid_redirect_uri", "the application did not register the address it wants the answer at")
    return client, uri


def read_request(
    parameters: Mapping[str, str], client: Client, redirect_uri: str, resources: Resources
) -> AuthorizationRequest:
    if parameters.get("response_type") != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code")
    if parameters.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(
        parameters.get("code_challenge", "")
    ):
        raise OAuthError("invalid_request", "a code_challenge with the method S256 is needed")
    state = parameters.get("state", "")
    if len(state) > _MAX_STATE_CHARACTERS:
        raise OAuthError("invalid_request", f"state has more than {_MAX_STATE_CHARACTERS:,} characters")
    resource = resources.check(parameters.get("resource", ""))
    rights = read_rights(parameters.get("scope", ""))
    challenge = parameters["code_challenge"]
    return AuthorizationRequest(client.id, client.name, redirect_uri, challenge, resource, rights, state)


def read_rights(scope: str) -> tuple[Right, ...]:
    """The rights that an OAuth scope names; all that there are if it names none."""
    names = set(scope.split()) - _IGNORED_SCOPES
    if not names <= set(RIGHTS):
        raise OAuthError("invalid_scope", f"scope must be some of {' '.join(RIGHTS)}")
    return tuple(right for right in RIGHTS if right in names) or RIGHTS


class RequestSeal:
    """Signs requests, so that they can be carried by a page and nothing has to be kept until somebody agrees."""

    def __init__(self, owner_token: str) -> None:
        self._secret = hmac.digest(owner_token.encode(), b"oauth request", "sha256")

    def close(self, request: AuthorizationRequest) -> str:
        content = json.dumps(asdict(replace(request, expires=to_micros(utc_now()) + _PATIENCE_MICROS))).encode()
        return f"{base64.urlsafe_b64encode(content).decode()}.{self._sign(content)}"

    def open(self, text: str) -> AuthorizationRequest:
        encoded, _, signature = text.partition(".")
        try:
            content = base64.urlsafe_b64decode(encoded.encode())
        except ValueError:
            content = b""
        if not hmac.compare_digest(self._sign(content).encode(), signature.encode(errors="replace")):
            raise OAuthError("invalid_request", "the page was changed on its way: connect the application anew")
        values = json.loads(content)
        request = AuthorizationRequest(**values | {"rights": tuple(values["rights"])})
        if request.expires < to_micros(utc_now()):
            raise OAuthError("invalid_request", "the page is too old: connect the application anew")
        return request

    def _sign(self, content: bytes) -> str:
        return hmac.new(self._secret, content, hashlib.sha256).hexdigest()
