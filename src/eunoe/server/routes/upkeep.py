"""Looking after the store as a whole."""

import re
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field
from starlette.responses import Response

from eunoe.errors import EmbedderError, InputError
from eunoe.model.arguments import utc_now
from eunoe.model.result import BackupReport, CheckReport
from eunoe.server.problems import NoEmbedderError
from eunoe.server.requests import json_router
from eunoe.server.routes.common import Body, CallerParam, ModelField, ScopesBody, ServicesParam, reply
from eunoe.server.routes.schemas import answers, model_of

router = json_router("upkeep")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class BackupBody(Body):
    name: str = Field("", description="A file name; made from the time if none is given.", examples=["weekly.db"])


class ReembedBody(Body):
    model: ModelField = None


class Counted(BaseModel):
    """How many there were."""

    count: int


@router.post("/backup", summary="Copy the whole store", responses=answers(model_of(BackupReport), 507))
async def backup(body: BackupBody, caller: CallerParam, services: ServicesParam) -> Response:
    """Into the folder `backups` beside the store, while it is in use; then the copy is read. `eunoe restore` brings it
    back."""
    name = body.name or f"memory-{utc_now():%Y%m%d-%H%M%S-%f}.db"
    if not _NAME.fullmatch(name):
        raise InputError("name must be a file name of letters, digits and . _ - only, without a folder")
    caller.memory.guard.allow_store("admin")
    folder = Path(services.files.state).parent / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    return reply(await caller.async_memory.admin.backup(folder / name))


@router.post("/reembed", summary="Make vectors anew", responses=answers(Counted, 409, 502))
async def reembed(body: ReembedBody, caller: CallerParam) -> Response:
    """With another model, or those still missing. Can be stopped and called again."""
    try:
        return reply({"count": await caller.async_memory.admin.reembed(body.model)})
    except EmbedderError as error:
        if body.model is None and caller.memory.embedder is None:
            raise NoEmbedderError(str(error)) from None
        raise


@router.post("/check", summary="Read the whole store and say what is damaged", responses=answers(model_of(CheckReport)))
async def check(caller: CallerParam) -> Response:
    """Damage and losses, each with its place. Nothing is changed."""
    return reply(await caller.async_memory.admin.check())


@router.post("/reindex", summary="Build indexes anew", responses=answers(Counted))
async def reindex(body: ScopesBody, caller: CallerParam) -> Response:
    """Drops those of these scopes and builds them from the records."""
    return reply({"count": await caller.async_memory.admin.reindex(body.owners)})
