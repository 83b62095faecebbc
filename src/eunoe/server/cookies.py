"""The cookie of the inspector's session: no script can read it, and no other site can send it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from eunoe.server.addresses import Addresses

_NAME = "eunoe_session"


def find_session_id(request: Request, addresses: Addresses) -> str:
    return request.cookies.get(_cookie_name(request, addresses), "")


def set_session_id(response: Response, request: Request, addresses: Addresses, id: str) -> None:
    """Set the cookie; an empty id removes it."""
    is_secure = addresses.is_secure(_host(request))
    name = _cookie_name(request, addresses)
    age = None if id else 0
    response.set_cookie(name, id, max_age=age, path="/", secure=is_secure, httponly=True, samesite="strict")


def _cookie_name(request: Request, addresses: Addresses) -> str:
    """Cookies know no ports: with the port in its name two servers on one machine do not overwrite each other's."""
    host = _host(request)
    if addresses.is_secure(host):
        return f"__Host-{_NAME}"
    port = host.rpartition(":")[2]
    return f"{_NAME}_{port}" if port.isdecimal() else _NAME


def _host(request: Request) -> str:
    return request.headers.get("host", "")
