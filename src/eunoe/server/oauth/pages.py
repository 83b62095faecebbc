"""The pages that a person sees who lets a client in: no script, every word of others escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib import resources
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from eunoe.model.arguments import Right
from eunoe.server.keys import Key
from eunoe.server.oauth.requests import AuthorizationRequest

STYLE: Final = resources.files("eunoe.server.oauth").joinpath("pages.css").read_text()
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="/oauth/pages.css">
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
