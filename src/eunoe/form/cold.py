"""To be written."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: F401
from typing import Any  # noqa: F401

from eunoe.form.kit import Kit
from eunoe.model.scope import Scope  # noqa: F401
from eunoe.model.stream import FormReport, Revision, TidyReport  # noqa: F401


def form_cold(kit: Kit, idle: float, minimum: int, limit: int, concurrency: int) -> FormReport:
    raise NotImplementedError
