"""The routes of OAuth: those of clients are the MCP SDK's, the pages of a person run no script."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from html import escape
from typing import Any, Final
from urllib.parse import urlsplit

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import construct_redirect_uri
from mcp.server.auth.settings import ClientRegistrationOptions
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from eunoe.errors import InputError
from eunoe.model.arguments import Right
from eunoe.server.access import LoginError
from eunoe.server.audit import AuditTrail
from eunoe.server.keys import Key
from eunoe.server.middleware import attempt_of, too_many
from eunoe.server.oauth import (
    RESOURCES,
    RIGHTS,
    AuthorizationRequest,
    OAuth,
)
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


def oauth_routes(services: Services) -> list[Route]:
    """The routes of OAuth; none where it is off."""
    if services.oauth is None:
        return []
    routes = _Routes(services, services.oauth)
    described = [f"/.well-known/oauth-protected-resource{path}" for path in RESOURCES]
    return [
        Route("/oauth/register", routes.register_client, methods=["POST"]),
        Route("/oauth/authorize", routes.authorize),
        Route("/oauth/login", routes.show_login),
        Route("/oauth/login", routes.log_in, methods=["POST"]),
        Route("/oauth/consent", routes.consent, methods=["POST"]),
        Route("/oauth/token", routes.issue_tokens, methods=["POST"]),
        Route("/oauth/revoke", routes.revoke_tokens, methods=["POST"]),
        Route("/.well-known/oauth-authorization-server", routes.describe_authorization_server),
        *(Route(path, routes.describe_resource) for path in described),
    ]


class _Routes:
    def __init__(self, services: Services, oauth: OAuth) -> None:
        self._services = services
        self._oauth = oauth
        provider: Any = oauth  # without the methods of what is not used
        self._authorization = AuthorizationHandler(provider)
        self._registration = RegistrationHandler(provider, ClientRegistrationOptions(enabled=True))
        self._tokens = TokenHandler(provider, ClientAuthenticator(provider))

    async def register_client(self, request: Request) -> Response:
        allowance = self._services.registrations.take(attempt_of(request).address)
        return too_many(allowance) if allowance.wait else await self._registration.handle(request)

    async def authorize(self, request: Request) -> Response:
        """Ask a person for their key, or send the client the reason why not."""
        answer = await self._authorization.handle(request)
        place = answer.headers.get("location", "")
        if not place:  # nobody may be sent anywhere: the client is unknown, or the address is not its own
            return _error_page(json.loads(bytes(answer.body))["error_description"])
        if not place.startswith("/oauth/login?"):
            answer.headers["location"] = construct_redirect_uri(place, iss=self._oauth.issuer)
        return answer

    async def show_login(self, request: Request) -> Response:
        sealed = request.query_params.get("request", "")
        try:
            return _login_page(self._oauth.unseal(sealed), sealed)
        except InputError as error:
            return _error_page(str(error))

    async def log_in(self, request: Request) -> Response:
        """Check the key of a person, and ask what the client may do with it."""
        try:
            self._check_origin(request)
            form = await request.form()
            sealed = str(form.get("request", ""))
            wanted = self._oauth.unseal(sealed)
        except InputError as error:
            return _error_page(str(error))
        try:
            key = self._services.logins.by_token(str(form.get("key", "")).strip(), attempt_of(request)).key
        except LoginError as error:
            page = _login_page(wanted, sealed, str(error))
            if error.allowance:
                page.status_code = 429
                page.headers["Retry-After"] = str(int(error.allowance.wait) + 1)
            return page
        rights = [right for right in wanted.rights if right in key.rights]
        if not rights:
            return _login_page(wanted, sealed, "this key has none of the rights that are asked for")
        return _consent_page(wanted, self._oauth.seal(replace(wanted, key=key.id)), key, rights)

    async def consent(self, request: Request) -> Response:
        """Give the client a code if the person allows it."""
        try:
            self._check_origin(request)
            form = await request.form()
            wanted = self._oauth.unseal(str(form.get("request", "")))
            key = self._services.keys.find(wanted.key) if wanted.key else None
            if key is None:
                raise InputError("the key was not shown, or has ended: connect the application anew")
        except InputError as error:
            return _error_page(str(error))
        chosen = form.getlist("right")
        rights = tuple(right for right in wanted.rights if right in chosen and right in key.rights)
        trail = self._trail(key, request)
        if form.get("decision") == "allow" and rights:
            trail.note("grant_access", count=1)
            answer = {"code": self._oauth.grant(wanted, rights)}
        else:
            trail.note("grant_access", outcome="refused")
            answer = {"error": "access_denied"}
        answer |= {"state": wanted.state} if wanted.state else {}
        place = construct_redirect_uri(wanted.redirect_uri, **answer, iss=self._oauth.issuer)
        return RedirectResponse(place, 303)

    async def issue_tokens(self, request: Request) -> Response:
        answer: Response = await self._tokens.handle(request)
        return answer

    async def revoke_tokens(self, request: Request) -> Response:
        """End the grant of a token. A token that is unknown is none: that is told in the same way."""
        form = await request.form()
        key = self._oauth.revoke(str(form.get("token", "")), str(form.get("client_id", "")))
        if key:
            AuditTrail(self._services.audit, key, "oauth", attempt_of(request).request_id).note(
                "revoke_access", count=1
            )
        return JSONResponse({})

    async def describe_authorization_server(self, request: Request) -> Response:
        """The document of RFC 8414."""
        issuer = self._oauth.issuer
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

    async def describe_resource(self, request: Request) -> Response:
        """The document of RFC 9728."""
        path = request.url.path.removeprefix("/.well-known/oauth-protected-resource")
        document = {
            "resource": self._oauth.issuer + path,
            "authorization_servers": [self._oauth.issuer],
            "scopes_supported": list(RIGHTS),
            "bearer_methods_supported": ["header"],
            "resource_name": "Eunoe",
        }
        return JSONResponse(document)

    def _trail(self, key: Key, request: Request) -> AuditTrail:
        return AuditTrail(self._services.audit, key, "oauth", attempt_of(request).request_id)

    def _check_origin(self, request: Request) -> None:
        origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
        if not self._services.addresses.is_own_origin(origin, host):
            raise InputError("the form did not come from a page of this server")


def _login_page(request: AuthorizationRequest, sealed: str, error: str = "") -> HTMLResponse:
    shown = f'<p class="error" role="alert">{escape(error)}</p>\n' if error else ""
    content = _LOGIN.format(**_names(request), request=escape(sealed), error=shown)
    return _page("Connect an application", content, request.redirect_uri, 401 if error else 200)


def _consent_page(request: AuthorizationRequest, sealed: str, key: Key, rights: Iterable[Right]) -> HTMLResponse:
    box = '<label><input type="checkbox" name="right" value="{}" checked> {}</label>'
    content = _CONSENT.format(
        **_names(request),
        key=escape(key.name),
        tenant=escape(key.tenant) or "all of the store",
        scopes=escape(", ".join(map(str, key.scopes))) or "all",
        resource=escape(request.resource),
        request=escape(sealed),
        rights="\n".join(box.format(right, _RIGHT_WORDS[right]) for right in rights),
    )
    return _page("Allow access?", content, request.redirect_uri)


def _names(request: AuthorizationRequest) -> dict[str, str]:
    """Who asks, and where the answer goes."""
    parts = urlsplit(request.redirect_uri)
    place = parts.netloc if parts.scheme == "https" else f"{parts.scheme}://{parts.netloc}"
    return {"client": f"<b>{escape(request.client_name)}</b>", "place": escape(place)}


def _error_page(detail: str) -> HTMLResponse:
    """For where nobody may be sent on: the client is unknown, or the address is not its own."""
    return _page("This does not work", f'<p class="error" role="alert">{escape(detail)}</p>', "", 400)


def _page(title: str, content: str, redirect_uri: str, status: int = 200) -> HTMLResponse:
    parts, target = urlsplit(redirect_uri), ""
    if parts.scheme:  # where the form leads in the end: browsers check redirects against the policy too
        target = f" {parts.scheme}:" + (f"//{parts.netloc}" if parts.scheme in ("http", "https") else "")
    policy = (
        f"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'{target}; frame-ancestors 'none'"
    )
    # Browsers say where a form comes from only if they may send a referrer there.
    headers = {"Content-Security-Policy": policy, "Referrer-Policy": "same-origin"}
    return HTMLResponse(_PAGE.format(title=escape(title), content=content), status, headers)
