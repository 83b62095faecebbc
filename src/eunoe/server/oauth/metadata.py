"""How clients find their way: the documents of RFC 8414 and RFC 9728."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from eunoe.server.oauth.errors import OAuthError
from eunoe.server.oauth.requests import RIGHTS
from eunoe.server.problems import problem
from eunoe.server.routes.common import ServicesParam

router = APIRouter(prefix="/.well-known", include_in_schema=False)


@router.get("/oauth-authorization-server")
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


@router.get("/oauth-protected-resource")
@router.get("/oauth-protected-resource/{path}")
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
