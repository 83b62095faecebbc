"""To be written."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: F401
from typing import Any  # noqa: F401

from eunoe.form.kit import Kit
from eunoe.model.scope import Scope
from eunoe.model.stream import FormReport, Revision, TidyReport  # noqa: F401


def consolidate(kit: Kit, scope: Scope, force: bool) -> Revision | None:
    raise NotImplementedError
