"""What all routes share: the caller, bodies, replies."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, WithJsonSchema
from pydantic_core import to_json
from starlette.responses import Response

from eunoe.server.access import Caller
from eunoe.server.services import Services
from eunoe.wire.encoding import json_value


async def _find_caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


async def _find_services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


CallerParam = Annotated[Caller, Depends(_find_caller)]
ServicesParam = Annotated[Services, Depends(_find_services)]
_SCOPE_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}],
    "examples": ["user=anna/session=s1", {"user": "anna"}],
}
ScopeField = Annotated[Any, WithJsonSchema(_SCOPE_SCHEMA)]
"""A scope as its text or as an object. The memory checks it, as it does for every caller."""
ScopesField = Annotated[Any, WithJsonSchema({"anyOf": [_SCOPE_SCHEMA, {"type": "array", "items": _SCOPE_SCHEMA}]})]
"""One scope or several."""


class Body(BaseModel):
    """What a request sends. A field that is not known is refused: a typing error must not be taken for a default."""

    model_config = ConfigDict(extra="forbid")

    def given(self, *without: str) -> dict[str, Any]:
        """The fields that the request has, as a verb takes them."""
        return {name: getattr(self, name) for name in self.model_fields_set if name not in without}


def reply(value: Any, status: int = 200) -> Response:
    """A value of the memory as JSON."""
    return Response(to_json(json_value(value)), status, media_type="application/json")
