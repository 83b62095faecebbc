"""OAuth 2.1 for hosted assistants: a person lets a client use the memory as one of their keys may, or with less.

The MCP SDK reads what clients send, checks PKCE and asks `OAuth`. Codes and tokens are kept as hashes; one that is used
twice ends its grant.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import secrets
import sqlite3
from dataclasses import asdict, dataclass, replace
from typing import Final
from urllib.parse import urlencode, urlsplit

from mcp.server.auth.provider import (
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull as Client
from mcp.shared.auth import OAuthToken
from pydantic import AnyUrl

from eunoe.errors import InputError
from eunoe.model.arguments import Right, to_micros, utc_now
from eunoe.server.keys import Key, Keys
from eunoe.server.state import ServerState

RIGHTS: Final[tuple[Right, ...]] = ("read", "write", "forget")
"""What a client can be given. The right `admin` stays with keys: nobody who is let in can let in others."""
RESOURCES: Final = ("/mcp", "/v1", "")
"""The paths that a token can be for; the last is for both. MCP is meant if a client names none."""
ACCESS_PREFIX: Final = "euna_"
_SCOPES: Final = " ".join((*RIGHTS, "offline_access"))
_SECRET_BYTES: Final = 32
_SECOND: Final = 1_000_000
_DAY: Final = 24 * 3600 * _SECOND
_CODE_SECONDS: Final = 120
_ACCESS_SECONDS: Final = 3600
_REFRESH_SECONDS: Final = 30 * 24 * 3600
"""From the last use on: a client that is not used for so long has to ask again."""
_PATIENCE_SECONDS: Final = 600
"""How long a page may be looked at."""
_MAX_CLIENTS: Final = 1000
_UNUSED: Final = _DAY
"""So long a client is kept that nobody let in."""
_IDLE: Final = 90 * _DAY
_MAX_NAME_CHARACTERS: Final = 100
_MAX_URI_CHARACTERS: Final = 1000
_MAX_URIS: Final = 10
_LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_APP_SCHEMES: Final = frozenset({"claude", "cursor", "vscode", "vscode-insiders", "windsurf", "zed"})
_DOMAIN_SCHEME: Final = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")
"""The scheme of an application on the same device, as RFC 8252 wants it: com.example.app."""
_SELECT: Final = """
SELECT each.*, oauth_grant.client, oauth_grant.key, oauth_grant.resource, oauth_grant.rights AS grant_rights
FROM {} AS each JOIN oauth_grant ON oauth_grant.id = each.grant_id WHERE each.hash = ?
"""


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


class _Code(AuthorizationCode):
    grant: str


class _Refresh(RefreshToken):
    grant: str


class OAuth:
    """The clients and grants of one server. A grant ends with its key.

    Its coroutines are those of the SDK's `OAuthAuthorizationServerProvider` that are used here.
    """

    def __init__(self, state: ServerState, keys: Keys, owner_token: str, public_url: str) -> None:
        self.issuer = public_url
        self._state = state
        self._keys = keys
        self._grant_secret = hmac.digest(owner_token.encode(), b"oauth grant", "sha256")
        self._page_secret = hmac.digest(owner_token.encode(), b"oauth request", "sha256")

    async def get_client(self, client_id: str) -> Client | None:
        with self._state.read() as db:
            row = db.execute("SELECT * FROM oauth_client WHERE id = ?", (client_id,)).fetchone()
        if row is None:
            return None
        uris = [AnyUrl(uri) for uri in json.loads(row["redirect_uris"])]
        return Client(
            client_id=client_id,
            client_name=row["name"],
            redirect_uris=uris,
            token_endpoint_auth_method="none",
            scope=_SCOPES,
        )

    async def register_client(self, client_info: Client) -> None:
        """Keep a client. None has a secret, whatever it asks for: what it may do is proven by PKCE, code by code."""
        name, uris = (client_info.client_name or "").strip(), [*map(str, client_info.redirect_uris or ())]
        if len(name) > _MAX_NAME_CHARACTERS or not name.isprintable():
            what = f"client_name: at most {_MAX_NAME_CHARACTERS} printable characters"
            raise RegistrationError("invalid_client_metadata", what)
        if not 0 < len(uris) <= _MAX_URIS or not all(map(_is_safe, uris)):
            what = f"redirect_uris: up to {_MAX_URIS} of https, http on loopback, or the scheme of an application"
            raise RegistrationError("invalid_redirect_uri", what)
        client_info.client_secret = client_info.client_secret_expires_at = None
        client_info.token_endpoint_auth_method = "none"
        client_info.client_name = name or "An application without a name"
        with self._state.write() as db:
            if is_room := _make_room(db):
                row = (client_info.client_id, client_info.client_name, json.dumps(uris), _now(), None)
                db.execute("INSERT INTO oauth_client VALUES (?, ?, ?, ?, ?)", row)
        if not is_room:  # raised within the step its error would be changed, which it does not allow
            raise RegistrationError("invalid_client_metadata", "there are too many clients: revoke some of their keys")

    async def authorize(self, client: Client, params: AuthorizationParams) -> str:
        """Where the person is asked."""
        resource = (params.resource or self.issuer + RESOURCES[0]).rstrip("/")
        if resource not in [self.issuer + path for path in RESOURCES]:
            raise AuthorizeError("invalid_target", "the resource is not one of this server")
        if not params.redirect_uri_provided_explicitly:
            raise AuthorizeError("invalid_request", "redirect_uri is missing")
        request = AuthorizationRequest(
            client.client_id,
            client.client_name or "",
            str(params.redirect_uri),
            params.code_challenge,
            resource,
            tuple(right for right in RIGHTS if right in (params.scopes or ())) or RIGHTS,
            params.state or "",
        )
        return f"/oauth/login?{urlencode({'request': self.seal(request)})}"

    def seal(self, request: AuthorizationRequest) -> str:
        """Sign a request, so that pages can carry it and nothing has to be kept until somebody agrees."""
        content = json.dumps(asdict(replace(request, expires=_now() + _PATIENCE_SECONDS * _SECOND))).encode()
        encoded = base64.urlsafe_b64encode(content).decode()
        return f"{encoded}.{_digest(self._page_secret, encoded).hex()}"

    def unseal(self, text: str) -> AuthorizationRequest:
        encoded, _, signature = text.partition(".")
        expected = _digest(self._page_secret, encoded).hex()
        if not hmac.compare_digest(expected.encode(), signature.encode(errors="replace")):
            raise InputError("the page was changed on its way: connect the application anew")
        values = json.loads(base64.urlsafe_b64decode(encoded))
        request = AuthorizationRequest(**values | {"rights": tuple(values["rights"])})
        if request.expires < _now():
            raise InputError("the page is too old: connect the application anew")
        return request

    def grant(self, request: AuthorizationRequest, rights: tuple[Right, ...]) -> str:
        """Note that a person agreed, and return the code that the client exchanges for tokens."""
        code, id, now = f"eunc_{secrets.token_urlsafe(_SECRET_BYTES)}", secrets.token_hex(8), _now()
        ends = now + _CODE_SECONDS * _SECOND
        with self._state.write() as db:
            _clean(db, now)
            grant = (id, request.client, request.key, json.dumps(rights), request.resource, now, ends)
            db.execute("INSERT INTO oauth_grant VALUES (?, ?, ?, ?, ?, ?, ?)", grant)
            proof = (self._hash(code), id, request.redirect_uri, request.challenge, ends)
            db.execute("INSERT INTO oauth_code VALUES (?, ?, ?, ?, ?, 0)", proof)
            db.execute("UPDATE oauth_client SET used = ? WHERE id = ?", (now, request.client))
        return code

    async def load_authorization_code(self, client: Client, authorization_code: str) -> _Code | None:
        """A code is used up by asking for it, whether what comes with it is right or not."""
        with self._state.write() as db:
            row = self._find(db, "oauth_code", authorization_code)
            if row is None or row["client"] != client.client_id:
                return None
            if row["is_used"]:
                _end(db, row)
                return None
            db.execute("UPDATE oauth_code SET is_used = 1 WHERE hash = ?", (row["hash"],))
        return _Code(
            code=authorization_code,
            scopes=json.loads(row["grant_rights"]),
            expires_at=row["expires"] / _SECOND,
            client_id=client.client_id,
            code_challenge=row["challenge"],
            redirect_uri=AnyUrl(row["redirect_uri"]),
            redirect_uri_provided_explicitly=True,
            grant=row["grant_id"],
        )

    async def exchange_authorization_code(self, client: Client, authorization_code: _Code) -> OAuthToken:
        with self._state.write() as db:
            tokens = self._issue(db, authorization_code.grant, client.client_id, authorization_code.scopes)
        return _granted(tokens)

    async def load_refresh_token(self, client: Client, refresh_token: str) -> _Refresh | None:
        with self._state.read() as db:
            row = self._find(db, "oauth_token", refresh_token)
        if row is None or row["kind"] != "refresh" or row["client"] != client.client_id or row["expires"] <= _now():
            return None
        rights = json.loads(row["grant_rights"])
        return _Refresh(token=refresh_token, client_id=client.client_id, scopes=rights, grant=row["grant_id"])

    async def exchange_refresh_token(self, client: Client, refresh_token: _Refresh, scopes: list[str]) -> OAuthToken:
        """New tokens, once. Used again it was stolen from somebody: the grant ends."""
        tokens = None
        with self._state.write() as db:
            row = self._find(db, "oauth_token", refresh_token.token)
            if row is not None and row["is_used"]:
                _end(db, row)
            elif row is not None:
                db.execute("UPDATE oauth_token SET is_used = 1 WHERE hash = ?", (row["hash"],))
                tokens = self._issue(db, refresh_token.grant, client.client_id, scopes)
        return _granted(tokens)

    def find_key(self, token: str, path: str) -> Key | None:
        """What an access token may do for a path: no more than its key, and no more than was granted."""
        with self._state.read() as db:
            row = self._find(db, "oauth_token", token)
        if row is None or row["kind"] != "access" or row["expires"] <= _now():
            return None
        paths = [each for each in RESOURCES[:2] if row["resource"] in (self.issuer, self.issuer + each)]
        if not any(path == each or path.startswith(f"{each}/") for each in paths):
            return None
        key = self._keys.find(row["key"])
        rights = [right for right in json.loads(row["rights"]) if key and right in key.rights]
        return replace(key, rights=tuple(rights)) if key and rights else None

    def revoke(self, token: str, client: str) -> Key | None:
        """End the grant that a token belongs to; return its key."""
        with self._state.write() as db:
            row = self._find(db, "oauth_token", token)
            if row is None or row["client"] != client:
                return None
            _end(db, row)
        return self._keys.find(row["key"])

    def _find(self, db: sqlite3.Connection, table: str, secret: str) -> sqlite3.Row | None:
        row: sqlite3.Row | None = db.execute(_SELECT.format(table), (self._hash(secret),)).fetchone()
        return row

    def _issue(self, db: sqlite3.Connection, grant: str, client: str, rights: list[str]) -> OAuthToken | None:
        now = _now()
        access, refresh = (prefix + secrets.token_urlsafe(_SECRET_BYTES) for prefix in (ACCESS_PREFIX, "eunr_"))
        ends = now + _REFRESH_SECONDS * _SECOND
        _clean(db, now)
        if not db.execute("UPDATE oauth_grant SET expires = ? WHERE id = ?", (ends, grant)).rowcount:
            return None
        if not db.execute("UPDATE oauth_grant SET expires = ? WHERE id = ?", (ends, grant)).rowcount:
            return None
        for kind, text, expires in (("access", access, now + _ACCESS_SECONDS * _SECOND), ("refresh", refresh, ends)):
            values = (self._hash(text), grant, kind, json.dumps(rights), expires)
            db.execute("INSERT INTO oauth_token VALUES (?, ?, ?, ?, ?, 0)", values)
        db.execute("UPDATE oauth_client SET used = ? WHERE id = ?", (now, client))
        return OAuthToken(
            access_token=access, expires_in=_ACCESS_SECONDS, refresh_token=refresh, scope=" ".join(rights)
        )

    def _hash(self, secret: str) -> bytes:
        """Made with the owner's token, so that a new token ends all grants."""
        return _digest(self._grant_secret, secret)


def _granted(tokens: OAuthToken | None) -> OAuthToken:
    if tokens is None:
        raise TokenError("invalid_grant", "the code or token was used before or has ended")
    return tokens


def _is_safe(uri: str) -> bool:
    """Whether a browser may be sent there with a code: it must run no script, and nobody on the way may read it."""
    parts = urlsplit(uri)
    if len(uri) > _MAX_URI_CHARACTERS or not uri.isascii() or set(uri) & set(" \"'<>\\;,#"):
        return False
    if not parts.hostname or parts.username is not None:
        return False
    if parts.scheme == "http":
        return parts.hostname in _LOOPBACK_HOSTS
    return parts.scheme in ("https", *_APP_SCHEMES) or bool(_DOMAIN_SCHEME.fullmatch(parts.scheme))


def _make_room(db: sqlite3.Connection) -> bool:
    """Whether there is room for a client. What nobody let in goes after a day, or as soon as there are too many."""
    now = _now()
    lonely = "NOT EXISTS (SELECT 1 FROM oauth_grant WHERE client = oauth_client.id)"
    times = (now - _UNUSED, now - _IDLE)
    db.execute(f"DELETE FROM oauth_client WHERE {lonely} AND created < ? AND (used IS NULL OR used < ?)", times)
    count = db.execute("SELECT count(*) FROM oauth_client").fetchone()[0]
    oldest = f"SELECT id FROM oauth_client WHERE {lonely} ORDER BY created LIMIT ?"
    gone = db.execute(f"DELETE FROM oauth_client WHERE id IN ({oldest})", (max(0, count - _MAX_CLIENTS + 1),)).rowcount
    return bool(count - gone < _MAX_CLIENTS)


def _clean(db: sqlite3.Connection, now: int) -> None:
    for table in ("oauth_token", "oauth_grant"):
        db.execute(f"DELETE FROM {table} WHERE expires < ?", (now,))


def _end(db: sqlite3.Connection, row: sqlite3.Row) -> None:
    db.execute("DELETE FROM oauth_grant WHERE id = ?", (row["grant_id"],))


def _digest(secret: bytes, text: str) -> bytes:
    return hmac.digest(secret, text.encode(errors="replace"), "sha256")


def _now() -> int:
    return to_micros(utc_now())
