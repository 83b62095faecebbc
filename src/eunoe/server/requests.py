"""Requests: who asks, what their fields are, JSON read strictly and within limits, and the work of one done once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from math import isfinite
from typing import Annotated, Any, Final, NoReturn, TypeVar

from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from eunoe.errors import InputError
from eunoe.memory import repeatable
from eunoe.model.json import json_value
from eunoe.server.access import Caller
from eunoe.server.config import ServerConfig
from eunoe.server.idempotency import Attempt, Idempotency, InProgressError
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


_MAX_DEPTH: Final = 64
_MAX_FIELDS: Final = 100
_SHORT_BYTES: Final = 64 * 1024
"""A longer body is read beside the event loop, which answers others meanwhile."""
_MAX_QUERY_DIGITS: Final = 18


class JsonRequest(Request):
    """A request whose JSON means one thing only."""

    async def json(self) -> Any:
        body, config = await self.body(), self.app.state.services.config
        if len(body) > _SHORT_BYTES:
            return await asyncio.to_thread(_read, body, config)
        return _read(body, config)


class JsonRoute(APIRoute):
    """A route that reads its JSON strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            _check_page(request)
            return await handle(JsonRequest(request.scope, request.receive))

        return handle_strictly


def _read(body: bytes, config: ServerConfig) -> Any:
    try:
        value = read_json(body)
    except InputError as error:
        raise HTTPException(400, str(error)) from None
    try:
        check_limits(value, config)
    except InputError as error:
        raise HTTPException(422, str(error)) from None
    return value


def json_router(tag: str) -> APIRouter:
    return APIRouter(tags=[tag], route_class=JsonRoute)


def read_json(body: bytes) -> Any:
    """Read JSON that every reader understands alike: no key twice, no NaN, no half characters, no endless depth."""
    try:
        value = json.loads(body, object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise InputError(f"the body is not JSON: {error.msg} at character {error.pos}") from None
    except UnicodeDecodeError:
        raise InputError("the body is not UTF-8 text") from None
    except RecursionError:
        raise InputError(_TOO_DEEP) from None
    except InputError:
        raise
    except ValueError:
        raise InputError("the body holds a number with too many digits") from None
    if body.count(b"[") + body.count(b"{") > _MAX_DEPTH:
        _check_depth(value, _MAX_DEPTH)
    if b"\\u" in body:
        _check_characters(value)
    return value


def check_limits(value: Any, config: ServerConfig) -> None:
    """Refuse a text, a list or a page that is larger than the server takes."""
    if not isinstance(value, dict):
        return
    if len(value) > _MAX_FIELDS:  # each that is not known would be an error to tell of
        raise InputError(f"the body has {len(value):,} fields: no request has more than {_MAX_FIELDS}")
    limit = value.get("limit")
    if isinstance(limit, int) and limit > config.max_page:
        raise InputError(f"limit is {limit:,}: at most {config.max_page:,} are given at once")
    for name, field in value.items():
        if isinstance(field, list) and name != "vector":
            if len(field) > config.max_batch:
                raise InputError(f"{name} has {len(field):,} entries: at most {config.max_batch:,} fit in one request")
            for each in field:
                _check_texts(name, each, config.max_text_characters)
        else:
            _check_texts(name, field, config.max_text_characters)


def _check_texts(name: str, value: Any, most: int) -> None:
    for each in value.values() if isinstance(value, dict) else (value,):
        if isinstance(each, str) and len(each) > most:
            raise InputError(f"{name} holds a text of {len(each):,} characters: at most {most:,} fit; split it")


def _check_page(request: Request) -> None:
    limit, most = request.query_params.get("limit", ""), request.app.state.services.config.max_page
    if limit.isdecimal() and int(limit[:_MAX_QUERY_DIGITS]) > most:
        raise InputError(f"limit is more than {most:,}, the most that are given at once")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise InputError("the body names a key twice")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InputError(f"the body holds {name}, which is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise InputError("the body holds a number that is too large")
    return number


def _check_depth(value: Any, left: int) -> None:
    if not left:
        raise InputError(_TOO_DEEP)
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(each, left - 1)


def _check_characters(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("the body holds half of a surrogate pair, which no encoding can store") from None


_TOO_DEEP: Final = f"the body is nested deeper than {_MAX_DEPTH} levels"


_POLL_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 5.0
"""Beyond a lease: long enough to take over from a request that died."""


class Once:
    """Does the work of one request, unless it was done before."""

    def __init__(self, idempotency: Idempotency, caller: str, key: bytes, request: bytes) -> None:
        self._idempotency = idempotency
        self._caller = caller
        self._key = key
        self._request = request

    async def __call__(self, work: Callable[[], Awaitable[Any]]) -> Response:
        if not self._key:
            return reply(await work())
        attempt = await self._begin()
        if attempt.reply is not None:
            headers = {"Idempotency-Replayed": "true"}
            return Response(attempt.reply, headers=headers, media_type="application/json")
        renewal = asyncio.create_task(self._renew(attempt))
        try:
            with repeatable(self._caller.encode() + self._key, attempt.created):
                result = to_json(json_value(await work())).decode()
            await asyncio.to_thread(self._idempotency.finish, attempt, result)
        except Exception:  # not if it is cancelled: nobody knows then what it did, and its lease ends soon
            await asyncio.to_thread(self._idempotency.give_up, attempt)
            raise
        finally:
            renewal.cancel()
        return Response(result, media_type="application/json")

    async def _begin(self) -> Attempt:
        """Wait for a twin, but not for ever."""
        end = asyncio.get_running_loop().time() + self._idempotency.lease_seconds + _PATIENCE_SECONDS
        while True:
            try:
                return await asyncio.to_thread(self._idempotency.begin, self._caller, self._key, self._request)
            except InProgressError:
                if asyncio.get_running_loop().time() > end:
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    async def _renew(self, attempt: Attempt) -> None:
        while True:
            await asyncio.sleep(self._idempotency.lease_seconds / 3)
            await asyncio.to_thread(self._idempotency.renew, attempt)


async def _find_once(
    request: Request,
    caller: CallerParam,
    services: ServicesParam,
    key: Annotated[
        str,
        Header(
            alias="Idempotency-Key",
            max_length=255,
            description="A text of your own. The same request with the same key has the same reply for a day.",
            examples=["5f0c6b1e-2a52-4d39-a2f2-6f3e1f6f4f5e"],
        ),
    ] = "",
) -> Once:
    secret = services.owner_token.encode()
    line = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    fingerprint = hmac.digest(secret, line + await request.body(), hashlib.sha256) if key else b""
    name = hmac.digest(secret, key.encode(errors="replace"), hashlib.sha256) if key else b""
    return Once(services.idempotency, caller.key.id, name, fingerprint)


OnceParam = Annotated[Once, Depends(_find_once)]
