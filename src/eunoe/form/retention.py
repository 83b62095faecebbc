"""To be written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eunoe.form.kit import Kit
from eunoe.model.scope import Scope
from eunoe.model.stream import FormReport, Revision, TidyReport  # noqa: F401


def tidy(kit: Kit, scope: Scope, policy: Mapping[str, Any], dry_run: bool) -> TidyReport:
    raise NotImplementedError
