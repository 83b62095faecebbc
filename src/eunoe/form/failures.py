"""How failures are told in reports and in the store."""

import logging

from eunoe.errors import EunoeError

_log = logging.getLogger("eunoe")


def describe_failure(what: str, error: Exception) -> str:
    """Describe a failure in one line. Of one that nobody foresaw only the type is told, since its text may repeat what
    was said; the log has the rest."""
    if isinstance(error, EunoeError):
        return f"{what}: {error}"
    _log.error("forming failed: %s", what, exc_info=error)
    return f"{what}: {type(error).__name__}"
