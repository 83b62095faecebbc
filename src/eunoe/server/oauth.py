"""The parts of OAuth, put together for one server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from eunoe.errors import EunoeError
from eunoe.model.arguments import Right, to_micros, utc_now
from eunoe.server.keys import Key, Keys
from eunoe.server.state import ServerState

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


_MAX_CLIENTS: Final = 1000
_MAX_NAME_CHARACTERS: Final = 100
_MAX_URI_CHARACTERS: Final = 1000
_MAX_URIS: Final = 10
_UNUSED: Final = timedelta(days=1)
"""So long one is kept that nobody let in."""
_IDLE: Final = timedelta(days=90)
_LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_APP_SCHEMES: Final = frozenset({"claude", "cursor", "vscode", "vscode-insiders", "windsurf", "zed"})
_DOMAIN_SCHEME: Final = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")
"""The scheme of an application on the same device, as RFC 8252 wants it: com.example.app."""


@dataclass(frozen=True, slots=True)
class Client:
    """An application, as it describes itself."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


class Clients:
    """The clients of one server. Their number is bounded; those that nobody uses go."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def register(self, name: object, redirect_uris: object) -> Client:
        client = Client(secrets.token_urlsafe(16), _check_name(name), _check_redirect_uris(redirect_uris))
        with self._state.write() as db:
            _clean(db)
            row = (client.id, client.name, json.dumps(client.redirect_uris), to_micros(utc_now()), None)
            db.execute("INSERT INTO oauth_client VALUES (?, ?, ?, ?, ?)", row)
        return client

    def find(self, id: str) -> Client | None:
        with self._state.read() as db:
            row = db.execute("SELECT id, name, redirect_uris FROM oauth_client WHERE id = ?", (id,)).fetchone()
        return Client(row["id"], row["name"], tuple(json.loads(row["redirect_uris"]))) if row else None


def _clean(db: sqlite3.Connection) -> None:
    """Make room: what nobody let in goes after a day, or as soon as there are too many."""
    now = utc_now()
    lonely = "NOT EXISTS (SELECT 1 FROM oauth_grant WHERE client = oauth_client.id)"
    times = (to_micros(now - _UNUSED), to_micros(now - _IDLE))
    db.execute(f"DELETE FROM oauth_client WHERE {lonely} AND created < ? AND (used IS NULL OR used < ?)", times)
    count = db.execute("SELECT count(*) FROM oauth_client").fetchone()[0]
    oldest = f"SELECT id FROM oauth_client WHERE {lonely} ORDER BY created LIMIT ?"
    db.execute(f"DELETE FROM oauth_client WHERE id IN ({oldest})", (max(0, count - _MAX_CLIENTS + 1),))
    if db.execute("SELECT count(*) FROM oauth_client").fetchone()[0] >= _MAX_CLIENTS:
        raise OAuthError("temporarily_unavailable", "there are too many clients: revoke some of their keys")


def _check_name(name: object) -> str:
    shown = name.strip() if isinstance(name, str) else ""
    if len(shown) > _MAX_NAME_CHARACTERS or not shown.isprintable():
        raise OAuthError("invalid_client_metadata", f"client_name: at most {_MAX_NAME_CHARACTERS} printable characters")
    return shown or "An application without a name"


def _check_redirect_uris(uris: Any) -> tuple[str, ...]:
    if not isinstance(uris, Sequence) or isinstance(uris, str) or not 0 < len(uris) <= _MAX_URIS:
        raise OAuthError("invalid_redirect_uri", f"redirect_uris: a list of one to {_MAX_URIS} addresses")
    for uri in uris:
        if not isinstance(uri, str) or len(uri) > _MAX_URI_CHARACTERS or not _is_safe(uri):
            raise OAuthError(
                "invalid_redirect_uri", "redirect_uris: https, http on loopback, or the scheme of an application"
            )
    return tuple(uris)


def _is_safe(uri: str) -> bool:
    """Whether a browser may be sent there with a code: it must run no script, and nobody on the way may read it."""
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not uri.isascii() or not uri.isprintable() or set(uri) & set(" \"'<>\\;,") or "#" in uri:
        return False
    if not host or parts.username is not None:
        return False
    if parts.scheme == "http":
        return host in _LOOPBACK_HOSTS
    return parts.scheme in ("https", *_APP_SCHEMES) or bool(_DOMAIN_SCHEME.fullmatch(parts.scheme))


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


ACCESS_PREFIX: Final = "euna_"
_PREFIXES: Final = {"access": ACCESS_PREFIX, "refresh": "eunr_", "code": "eunc_"}
_SECRET_BYTES: Final = 32
_SECOND: Final = 1_000_000
_CODE_SECONDS: Final = 120
ACCESS_SECONDS: Final = 3600
_REFRESH_SECONDS: Final = 30 * 24 * 3600
"""From the last use on: a client that is not used for so long has to ask again."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a client gets for a code or a refresh token."""

    access: str
    refresh: str
    rights: tuple[Right, ...]


class Grants:
    """The grants of one server. Each ends with its key."""

    def __init__(self, state: ServerState, keys: Keys, resources: Resources, owner_token: str) -> None:
        self._state = state
        self._keys = keys
        self._resources = resources
        self._secret = hmac.digest(owner_token.encode(), b"oauth grant", "sha256")

    def create_code(self, request: AuthorizationRequest, rights: tuple[Right, ...]) -> str:
        """Note that a person agreed, and return the code that the client exchanges for tokens."""
        code, id, now = _secret("code"), secrets.token_hex(8), _now()
        with self._state.write() as db:
            _clean_grants(db, now)
            ends = now + _CODE_SECONDS * _SECOND
            grant = (id, request.client, request.key, json.dumps(rights), request.resource, now, ends)
            db.execute("INSERT INTO oauth_grant VALUES (?, ?, ?, ?, ?, ?, ?)", grant)
            proof = (self._hash(code), id, request.redirect_uri, request.challenge, ends)
            db.execute("INSERT INTO oauth_code VALUES (?, ?, ?, ?, ?, 0)", proof)
            db.execute("UPDATE oauth_client SET used = ? WHERE id = ?", (now, request.client))
        return code

    def redeem_code(self, code: str, client: str, redirect_uri: str, verifier: str, resource: str) -> Tokens:
        """Exchange a code for tokens, once."""
        tokens = None
        with self._state.write() as db:
            row = self._find(db, "oauth_code", code, client)
            is_same = hmac.compare_digest(_challenge(verifier), row["challenge"])
            if row["is_used"]:
                db.execute("DELETE FROM oauth_grant WHERE id = ?", (row["grant_id"],))
            elif is_same and row["redirect_uri"] == redirect_uri and row["expires"] > _now():
                self._check_resource(row, resource)
                tokens = self._issue(db, row, tuple(json.loads(row["grant_rights"])))
            db.execute("UPDATE oauth_code SET is_used = 1 WHERE hash = ?", (row["hash"],))
        if tokens is None:
            raise _refused()
        return tokens

    def refresh(self, token: str, client: str, rights: tuple[Right, ...] | None, resource: str) -> Tokens:
        """Exchange a refresh token for new tokens, once. Used again it was stolen from somebody: the grant ends."""
        tokens = None
        with self._state.write() as db:
            row = self._find(db, "oauth_token", token, client, "refresh")
            if row["is_used"]:
                db.execute("DELETE FROM oauth_grant WHERE id = ?", (row["grant_id"],))
            elif row["expires"] > _now():
                self._check_resource(row, resource)
                granted = tuple(json.loads(row["grant_rights"]))
                if not set(rights or granted) <= set(granted):
                    raise OAuthError("invalid_scope", "more was asked for than was granted")
                db.execute("UPDATE oauth_token SET is_used = 1 WHERE hash = ?", (row["hash"],))
                tokens = self._issue(db, row, rights or granted)
        if tokens is None:
            raise _refused()
        return tokens

    def find_key(self, token: str, path: str) -> Key | None:
        """What an access token may do for a path: no more than its key, and no more than was granted."""
        with self._state.read() as db:
            row = db.execute(f"{_SELECT.format('oauth_token')} AND kind = 'access'", (self._hash(token),)).fetchone()
        if row is None or row["expires"] <= _now() or not self._resources.covers(row["resource"], path):
            return None
        key = self._keys.find(row["key"])
        rights = [right for right in json.loads(row["rights"]) if key and right in key.rights]
        return replace(key, rights=tuple(rights)) if key and rights else None

    def revoke(self, token: str, client: str) -> str:
        """End the grant that a token belongs to; return the id of its key, or nothing."""
        with self._state.write() as db:
            row = db.execute(_SELECT.format("oauth_token"), (self._hash(token),)).fetchone()
            if row is None or row["client"] != client:
                return ""
            db.execute("DELETE FROM oauth_grant WHERE id = ?", (row["grant_id"],))
        return str(row["key"])

    def _find(self, db: sqlite3.Connection, table: str, secret: str, client: str, kind: str = "") -> sqlite3.Row:
        row: sqlite3.Row | None = db.execute(_SELECT.format(table), (self._hash(secret),)).fetchone()
        if row is None or row["client"] != client or (kind and row["kind"] != kind):
            raise _refused()
        return row

    def _check_resource(self, row: sqlite3.Row, resource: str) -> None:
        if resource and self._resources.check(resource) != row["resource"]:
            raise OAuthError("invalid_target", "another resource was asked for than was granted")

    def _issue(self, db: sqlite3.Connection, row: sqlite3.Row, rights: tuple[Right, ...]) -> Tokens:
        access, refresh, now = _secret("access"), _secret("refresh"), _now()
        ends = now + _REFRESH_SECONDS * _SECOND
        _clean_grants(db, now)
        for kind, text, expires in (("access", access, now + ACCESS_SECONDS * _SECOND), ("refresh", refresh, ends)):
            values = (self._hash(text), row["grant_id"], kind, json.dumps(rights), expires)
            db.execute("INSERT INTO oauth_token VALUES (?, ?, ?, ?, ?, 0)", values)
        db.execute("UPDATE oauth_grant SET expires = ? WHERE id = ?", (ends, row["grant_id"]))
        db.execute("UPDATE oauth_client SET used = ? WHERE id = ?", (now, row["client"]))
        return Tokens(access, refresh, rights)

    def _hash(self, secret: str) -> bytes:
        """Made with the owner's token, so that a new token ends all grants."""
        return hmac.new(self._secret, secret.encode(errors="replace"), hashlib.sha256).digest()


_SELECT: Final = """
SELECT each.*, oauth_grant.client, oauth_grant.key, oauth_grant.resource, oauth_grant.rights AS grant_rights
FROM {} AS each JOIN oauth_grant ON oauth_grant.id = each.grant_id WHERE each.hash = ?
"""


def _clean_grants(db: sqlite3.Connection, now: int) -> None:
    for table in ("oauth_token", "oauth_grant"):
        db.execute(f"DELETE FROM {table} WHERE expires < ?", (now,))


def _refused() -> OAuthError:
    return OAuthError("invalid_grant", "the code or token is unknown, was used before or has ended")


def _secret(kind: Literal["access", "refresh", "code"]) -> str:
    return _PREFIXES[kind] + secrets.token_urlsafe(_SECRET_BYTES)


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode(errors="replace")).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _now() -> int:
    return to_micros(utc_now())


class OAuth:
    """What the routes of OAuth work with."""

    def __init__(self, state: ServerState, keys: Keys, owner_token: str, public_url: str) -> None:
        self.issuer = public_url
        self.resources = Resources(public_url)
        self.clients = Clients(state)
        self.grants = Grants(state, keys, self.resources, owner_token)
        self.seal = RequestSeal(owner_token)
