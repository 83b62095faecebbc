"""What all routes share: the caller, bodies, replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import to_json
from starlette.responses import Response

from eunoe.model.json import json_value
from eunoe.server.access import Caller
from eunoe.server.middleware import unescape_segment
from eunoe.server.services import Services

T = TypeVar("T")


async def _find_caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


async def _find_services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


CallerParam = Annotated[Caller, Depends(_find_caller)]
ServicesParam = Annotated[Services, Depends(_find_services)]
IdParam = Annotated[
    str,
    Path(min_length=1, description="Any text, percent-encoded; `/` as `%2F`.", examples=["b1946ac9"]),
    AfterValidator(unescape_segment),
]
_KEY = "[a-z][a-z0-9_]{0,31}"
_SCOPE_TEXT_SCHEMA: dict[str, Any] = {
    "type": "string",
    "pattern": f"^{_KEY}=[^/]+(/{_KEY}=[^/]+)*(/\\*)?$",
    "examples": ["user=anna/session=s1", "agent=cook/*"],
}
_SCOPE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        _SCOPE_TEXT_SCHEMA,
        {
            "type": "object",
            "propertyNames": {"pattern": f"^{_KEY}$"},
            "additionalProperties": {"type": ["string", "integer"], "minLength": 1},
            "minProperties": 1,
        },
    ],
    "examples": ["user=anna/session=s1", {"user": "anna"}],
}
ScopeText = Annotated[str, WithJsonSchema(_SCOPE_TEXT_SCHEMA)]
ScopeField = Annotated[Any, WithJsonSchema(_SCOPE_SCHEMA)]
"""A scope as its text or as an object. The memory checks it, as it does for every caller."""
ScopesField = Annotated[Any, WithJsonSchema({"anyOf": [_SCOPE_SCHEMA, {"type": "array", "items": _SCOPE_SCHEMA}]})]
"""One scope or several."""
TimeField = Annotated[
    str | int | float,
    WithJsonSchema({"type": ["string", "number"], "examples": ["2024-05-07T18:30:00Z", 1715106600]}),
]
"""ISO 8601, or seconds since 1970."""


ModelField = Annotated[
    str | None,
    Field(
        pattern="^(none|eunoe|static|minilm|openai:.+)$",
        description="Another model; without one only missing vectors are made.",
        examples=["static"],
    ),
]
"""What makes vectors. No folder of the server: which of its files are read is not for a caller to choose."""


MessageField = Annotated[
    str | dict[str, Any],
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {
                        "content": {"type": ["string", "array"], "items": {}},
                        "role": {"type": "string", "maxLength": 1024},
                        "speaker": {"type": "string", "maxLength": 1024},
                        "id": {"type": "string", "maxLength": 1024},
                        "session": {"type": "string", "maxLength": 1024},
                        "time": {"type": ["string", "number", "null"]},
                        "caption": {"type": "string"},
                        "metadata": {"type": "object"},
                    },
                    "required": ["content"],
                },
            ]
        }
    ),
]
"""A text, or an object in the usual chat shapes. What has no field of its own is kept in its metadata."""


class Fields(BaseModel):
    """A field that is not known is refused: a typing error must not be taken for a default."""

    model_config = ConfigDict(extra="forbid")

    def given(self, *without: str) -> dict[str, Any]:
        """The fields that the request has, as a verb takes them."""
        return {name: getattr(self, name) for name in self.model_fields_set if name not in without}


class Body(Fields):
    """What a request sends. Nothing counts as yes or no but true and false: the text "no" would mean yes."""

    model_config = ConfigDict(strict=True)


class ScopeQuery(Fields):
    """Whose memory a reading request asks for."""

    scope: ScopeText


class ExactField(Fields):
    """How far a scope reaches that is read or forgotten."""

    exact: bool = Field(False, description="The one scope that is named, where a user's means everything within.")


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value of the memory as JSON."""
    return Response(to_json(json_value(value)), status, headers, media_type="application/json")
