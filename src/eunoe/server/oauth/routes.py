"""The routes of OAuth: registration, the pages of a person, tokens and their end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from eunoe.server.audit import AuditTrail
from eunoe.server.logins import LoginError
from eunoe.server.middleware.authentication import attempt_of
from eunoe.server.middleware.rate_limit import too_many
from eunoe.server.oauth import pages
from eunoe.server.oauth.errors import OAuthError
from eunoe.server.oauth.grants import ACCESS_SECONDS, Tokens
from eunoe.server.oauth.requests import AuthorizationRequest, find_client, read_request, read_rights
from eunoe.server.oauth.service import OAuth
from eunoe.server.routes.common import ServicesParam
from eunoe.server.services import Services

router = APIRouter(prefix="/oauth", include_in_schema=False)
_MAX_FIELDS: Final = 50


async def _find_oauth(services: ServicesParam) -> OAuth:
    return services.require_oauth()


OAuthParam = Annotated[OAuth, Depends(_find_oauth)]


@router.post("/register")
async def register_client(request: Request, oauth: OAuthParam) -> Response:
    allowance = oauth.registrations.take(attempt_of(request).address)
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


@router.get("/pages.css")
async def style() -> Response:
    return Response(pages.STYLE, media_type="text/css")


@router.get("/authorize")
async def authorize(request: Request, oauth: OAuthParam) -> Response:
    """Ask a person for their key, or send the client the reason why not."""
    try:
        parameters = _single(request.query_params.multi_items())
        client, uri = find_client(parameters, oauth.clients)
    except OAuthError as error:
        return pages.error_page(str(error))
    try:
        wanted = read_request(parameters, client, uri, oauth.resources)
    except OAuthError as error:
        return _redirect(oauth, uri, parameters.get("state", ""), error=error.code, error_description=str(error))
    return pages.login_page(wanted, oauth.seal.close(wanted))


@router.post("/login")
async def log_in(request: Request, oauth: OAuthParam, services: ServicesParam) -> Response:
    """Check the key of a person, and ask what the client may do with it."""
    try:
        form = await _read_form(request, services)
        wanted = oauth.seal.open(form.get("request", ""))
    except OAuthError as error:
        return pages.error_page(str(error))
    try:
        key = services.logins.by_token(form.get("key", "").strip(), attempt_of(request)).key
    except LoginError as error:
        return _login_again(oauth, wanted, error)
    rights = [right for right in wanted.rights if right in key.rights]
    if not rights:
        return pages.login_page(wanted, oauth.seal.close(wanted), "this key has none of the rights that are asked for")
    return pages.consent_page(wanted, oauth.seal.close(replace(wanted, key=key.id)), key, rights)


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
        return pages.error_page(str(error))
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
    page = pages.login_page(wanted, oauth.seal.close(wanted), str(error))
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
