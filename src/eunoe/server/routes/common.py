"""What all routes share: the caller, bodies, replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import to_json
from starlette.responses import Response

from eunoe.errors import InputError
from eunoe.model.arguments import show
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
                        "time": {"type": ["string", "number"]},
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


class _Fields(BaseModel):
    """A field that is not known is refused: a typing error must not be taken for a default."""

    model_config = ConfigDict(extra="forbid")

    def given(self, *without: str) -> dict[str, Any]:
        """The fields that the request has, as a verb takes them."""
        return {name: getattr(self, name) for name in self.model_fields_set if name not in without}


class Body(_Fields):
    """What a request sends. Nothing counts as yes or no but true and false: the text "no" would mean yes."""

    model_config = ConfigDict(strict=True)


class ScopeQuery(_Fields):
    """Whose memory a reading request asks for."""

    scope: ScopeText


class ExactField(_Fields):
    """How far a scope reaches that is read or forgotten."""

    exact: bool = Field(False, description="The one scope that is named, where a user's means everything within.")


class PageFields(_Fields):
    """How much of a list is wanted, and from where."""

    limit: int | None = Field(None, ge=1, description="At most so many.")
    after: str = Field("", description="The `next` of the page before.")


class KeysQuery(PageFields):
    """Keys that scopes are to have, such as `?user=anna`."""

    model_config = ConfigDict(extra="allow")

    @property
    def keys(self) -> dict[str, Any]:
        return self.model_extra or {}


class ScopeBody(Body):
    """Whose memory a request is about, and nothing more."""

    scope: ScopeField


class ScopesBody(Body):
    """One scope or several, under either name."""

    scope: ScopesField | None = None
    scopes: ScopesField | None = None

    @property
    def owners(self) -> Any:
        return one_of(self, "scope", "scopes")


def one_of(body: Body, *names: str) -> Any:
    """The value of the one field that is given, of those that exclude each other."""
    given = [name for name in names if getattr(body, name) is not None]
    if len(given) != 1:
        raise InputError(f"give {' or '.join(names)}" + (", not both" if given else ""))
    return getattr(body, given[0])


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value of the memory as JSON."""
    return Response(to_json(json_value(value)), status, headers, media_type="application/json")


def page_of(name: str, items: Sequence[T], page: PageFields, cursor: Callable[[T], str]) -> dict[str, Any]:
    """A part of a list that is at hand as a whole. The cursor is what tells an item apart from the others."""
    start = 0
    if page.after:
        places = (place for place, item in enumerate(items, 1) if cursor(item) == page.after)
        if not (start := next(places, 0)):
            raise InputError(f"cannot read on after {show(page.after)}: it is not there any more, start anew")
    end = len(items) if page.limit is None else start + page.limit
    shown = items[start:end]
    return {name: shown, "next": cursor(shown[-1]) if shown and end < len(items) else ""}
