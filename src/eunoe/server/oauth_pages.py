"""How clients find their way: the documents of RFC 8414 and RFC 9728."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from eunoe.model.arguments import Right
from eunoe.server.access import LoginError
from eunoe.server.audit import AuditTrail
from eunoe.server.common import ServicesParam
from eunoe.server.keys import Key
from eunoe.server.middleware import attempt_of, too_many
from eunoe.server.oauth import (
    ACCESS_SECONDS,
    RIGHTS,
    AuthorizationRequest,
    OAuth,
    OAuthError,
    Tokens,
    find_client,
    read_request,
    read_rights,
)
from eunoe.server.problems import problem
from eunoe.server.services import Services

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="/static/oauth.css">
</head>
<body>
<main>
<h1>{title}</h1>
{content}
</main>
</body>
</html>
"""
_LOGIN: Final = """<p>{client} asks for access to this memory. If you agree, the answer is sent to <b>{place}</b>.</p>
{error}<form method="post" action="/oauth/login">
<input type="hidden" name="request" value="{request}">
<label for="key">Your key</label>
<input id="key" name="key" type="password" autocomplete="off" required autofocus>
<p class="hint">It is shown to nobody, also not to the application.</p>
<button>Go on</button>
</form>
"""
_CONSENT: Final = """<p>{client} asks for access to this memory, as your key <b>{key}</b>.
The answer is sent to <b>{place}</b>.</p>
<dl>
<dt>Tenant</dt><dd>{tenant}</dd>
<dt>Scopes</dt><dd>{scopes}</dd>
<dt>For</dt><dd>{resource}</dd>
</dl>
<form method="post" action="/oauth/consent">
<input type="hidden" name="request" value="{request}">
<fieldset>
<legend>It may</legend>
{rights}
</fieldset>
<p class="hint">Access ends with the key, and after 30 days without use.</p>
<button name="decision" value="allow">Allow</button>
<button name="decision" value="deny" class="quiet">Refuse</button>
</form>
"""
_RIGHT_WORDS: Final[dict[Right, str]] = {
    "read": "read what is remembered",
    "write": "add and change memories",
    "forget": "forget memories for good",
}


def login_page(request: AuthorizationRequest, sealed: str, error: str = "") -> HTMLResponse:
    shown = f'<p class="error" role="alert">{escape(error)}</p>\n' if error else ""
    content = _LOGIN.format(client=_client(request), place=_place(request), request=escape(sealed), error=shown)
    return _page("Connect an application", content, request.redirect_uri, 401 if error else 200)


def consent_page(request: AuthorizationRequest, sealed: str, key: Key, rights: Iterable[Right]) -> HTMLResponse:
    content = _CONSENT.format(
        client=_client(request),
        key=escape(key.name),
        place=_place(request),
        tenant=escape(key.tenant) or "all of the store",
        scopes=escape(", ".join(map(str, key.scopes))) or "all",
        resource=escape(request.resource),
        request=escape(sealed),
        rights="\n".join(map(_right, rights)),
    )
    return _page("Allow access?", content, request.redirect_uri)


def error_page(detail: str, status: int = 400) -> HTMLResponse:
    """For where nobody may be sent on: the client is unknown, or the address is not its own."""
    return _page("This does not work", f'<p class="error" role="alert">{escape(detail)}</p>', "", status)


def _page(title: str, content: str, redirect_uri: str, status: int = 200) -> HTMLResponse:
    place = _form_target(redirect_uri)
    policy = f"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'{place}; frame-ancestors 'none'"
    # Browsers say where a form comes from only if they may send a referrer there.
    headers = {"Content-Security-Policy": policy, "Referrer-Policy": "same-origin"}
    return HTMLResponse(_PAGE.format(title=escape(title), content=content), status, headers)


def _form_target(redirect_uri: str) -> str:
    """Where the form leads in the end: browsers check redirects against the policy too."""
    parts = urlsplit(redirect_uri)
    if parts.scheme in ("http", "https"):
        return f" {parts.scheme}://{parts.netloc}"
    return f" {parts.scheme}:" if parts.scheme else ""


def _client(request: AuthorizationRequest) -> str:
    return f"<b>{escape(request.client_name)}</b>"


def _place(request: AuthorizationRequest) -> str:
    parts = urlsplit(request.redirect_uri)
    return escape(parts.netloc if parts.scheme == "https" else f"{parts.scheme}://{parts.netloc}")


def _right(right: Right) -> str:
    box = f'<input type="checkbox" name="right" value="{right}" checked>'
    return f"<label>{box} {_RIGHT_WORDS[right]}</label>"


router = APIRouter(prefix="/oauth", include_in_schema=False)
_MAX_FIELDS: Final = 50


async def _find_oauth(services: ServicesParam) -> OAuth:
    return services.require_oauth()


OAuthParam = Annotated[OAuth, Depends(_find_oauth)]


@router.post("/register")
async def register_client(request: Request, oauth: OAuthParam, services: ServicesParam) -> Response:
    allowance = services.registrations.take(attempt_of(request).address)
    if allowance.wait:
        return too_many(allowance)
    try:
        body = await request.json()
    except ValueError:
        body = None
    try:
        if not isinstance(body, dict):
            raise OAuthError("invalid_client_metadata", "the body is not a JSON object")
        client = oauth.clients.register(body.get("client_name"), body.get("redirect_uris"))
    except OAuthError as error:
        return _error(error)
    document = {
        "client_id": client.id,
        "client_name": client.name,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return JSONResponse(document, 201)


@router.get("/authorize")
async def authorize(request: Request, oauth: OAuthParam) -> Response:
    """Ask a person for their key, or send the client the reason why not."""
    try:
        parameters = _single(request.query_params.multi_items())
        client, uri = find_client(parameters, oauth.clients)
    except OAuthError as error:
        return error_page(str(error))
    try:
        wanted = read_request(parameters, client, uri, oauth.resources)
    except OAuthError as error:
        return _redirect(oauth, uri, parameters.get("state", ""), error=error.code, error_description=str(error))
    return login_page(wanted, oauth.seal.close(wanted))


@router.post("/login")
async def log_in(request: Request, oauth: OAuthParam, services: ServicesParam) -> Response:
    """Check the key of a person, and ask what the client may do with it."""
    try:
        form = await _read_form(request, services)
        wanted = oauth.seal.open(form.get("request", ""))
    except OAuthError as error:
        return error_page(str(error))
    try:
        key = services.logins.by_token(form.get("key", "").strip(), attempt_of(request)).key
    except LoginError as error:
        return _login_again(oauth, wanted, error)
    rights = [right for right in wanted.rights if right in key.rights]
    if not rights:
        return login_page(wanted, oauth.seal.close(wanted), "this key has none of the rights that are asked for")
    return consent_page(wanted, oauth.seal.close(replace(wanted, key=key.id)), key, rights)


@router.post("/consent")
async def consent(request: Request, oauth: OAuthParam, services: ServicesParam) -> Response:
    """Give the client a code if the person allows it."""
    try:
        form = await _read_form(request, services, repeated="right")
        wanted = oauth.seal.open(form.get("request", ""))
        key = services.keys.find(wanted.key) if wanted.key else None
        if key is None:
            raise OAuthError("invalid_request", "the key was not shown, or has ended: connect the application anew")
    except OAuthError as error:
        return error_page(str(error))
    chosen = form.get("right", "").split()
    rights = tuple(right for right in wanted.rights if right in chosen and right in key.rights)
    trail = AuditTrail(services.audit, key, "oauth", attempt_of(request).request_id)
    if form.get("decision") != "allow" or not rights:
        trail.note("grant_access", outcome="refused")
        return _redirect(oauth, wanted.redirect_uri, wanted.state, error="access_denied")
    trail.note("grant_access", count=1)
    return _redirect(oauth, wanted.redirect_uri, wanted.state, code=oauth.grants.create_code(wanted, rights))


@router.post("/token")
async def issue_tokens(request: Request, oauth: OAuthParam) -> Response:
    try:
        return _tokens(_exchange(_single(await _form_pairs(request)), oauth))
    except OAuthError as error:
        return _error(error)


@router.post("/revoke")
async def revoke_tokens(request: Request, oauth: OAuthParam, services: ServicesParam) -> Response:
    """End the grant of a token. A token that is unknown is none: that is told in the same way."""
    try:
        form = _single(await _form_pairs(request))
    except OAuthError as error:
        return _error(error)
    key_id = oauth.grants.revoke(form.get("token", ""), form.get("client_id", ""))
    key = services.keys.find(key_id) if key_id else None
    if key:
        AuditTrail(services.audit, key, "oauth", attempt_of(request).request_id).note("revoke_access", count=1)
    return JSONResponse({})


def _exchange(form: Mapping[str, str], oauth: OAuth) -> Tokens:
    client, resource, kind = form.get("client_id", ""), form.get("resource", ""), form.get("grant_type")
    if oauth.clients.find(client) is None:
        raise OAuthError("invalid_client", "the client is not registered: register it anew")
    if kind == "authorization_code":
        place, verifier = form.get("redirect_uri", ""), form.get("code_verifier", "")
        return oauth.grants.redeem_code(form.get("code", ""), client, place, verifier, resource)
    if kind == "refresh_token":
        rights = read_rights(form["scope"]) if form.get("scope") else None
        return oauth.grants.refresh(form.get("refresh_token", ""), client, rights, resource)
    raise OAuthError("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")


def _tokens(tokens: Tokens) -> Response:
    document = {
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": ACCESS_SECONDS,
        "refresh_token": tokens.refresh,
        "scope": " ".join(tokens.rights),
    }
    return JSONResponse(document, headers={"Pragma": "no-cache"})


def _error(error: OAuthError) -> Response:
    statuses = {"invalid_client": 401, "temporarily_unavailable": 503}
    return JSONResponse({"error": error.code, "error_description": str(error)}, statuses.get(error.code, 400))


def _redirect(oauth: OAuth, uri: str, state: str, **answer: str) -> Response:
    parameters = answer | ({"state": state} if state else {}) | {"iss": oauth.issuer}
    separator = "&" if urlsplit(uri).query else "?"
    return RedirectResponse(f"{uri}{separator}{urlencode(parameters)}", 303)


def _login_again(oauth: OAuth, wanted: AuthorizationRequest, error: LoginError) -> Response:
    page = login_page(wanted, oauth.seal.close(wanted), str(error))
    if error.allowance:
        page.status_code = 429
        page.headers["Retry-After"] = str(int(error.allowance.wait) + 1)
    return page


async def _read_form(request: Request, services: Services, repeated: str = "") -> dict[str, str]:
    """The fields of a form that a page of ours sent."""
    if not services.addresses.is_own_origin(request.headers.get("origin", ""), request.headers.get("host", "")):
        raise OAuthError("invalid_request", "the form did not come from a page of this server")
    return _single(await _form_pairs(request), repeated)


async def _form_pairs(request: Request) -> list[tuple[str, str]]:
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise OAuthError("invalid_request", "the body must be a form, application/x-www-form-urlencoded")
    try:
        return parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise OAuthError("invalid_request", "the form cannot be read") from None


def _single(pairs: list[tuple[str, str]], repeated: str = "") -> dict[str, str]:
    """Parameters, each once: of two it would be open which one counts. One of a form may be there several times."""
    names = [name for name, _ in pairs if name != repeated]
    if len(set(names)) != len(names):
        raise OAuthError("invalid_request", "a parameter is there twice")
    single = {name: value for name, value in pairs if name != repeated}
    return single | {repeated: " ".join(value for name, value in pairs if name == repeated)}


router_metadata = APIRouter(prefix="/.well-known", include_in_schema=False)


@router_metadata.get("/oauth-authorization-server")
async def describe_authorization_server(services: ServicesParam) -> Response:
    issuer = services.require_oauth().issuer
    document: dict[str, Any] = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "registration_endpoint": f"{issuer}/oauth/register",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "scopes_supported": list(RIGHTS),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
    return JSONResponse(document)


@router_metadata.get("/oauth-protected-resource")
@router_metadata.get("/oauth-protected-resource/{path}")
async def describe_resource(services: ServicesParam, path: str = "") -> Response:
    oauth = services.require_oauth()
    try:
        resource = oauth.resources.check(f"{oauth.issuer}/{path}")
    except OAuthError as error:
        return problem(404, "not_found", str(error))
    document = {
        "resource": resource,
        "authorization_servers": [oauth.issuer],
        "scopes_supported": list(RIGHTS),
        "bearer_methods_supported": ["header"],
        "resource_name": "Eunoe",
    }
    return JSONResponse(document)
