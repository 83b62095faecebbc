"""The server's log: one line for each request and each fault, as text or JSON. It never holds memories or keys."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any, Final, Literal

LogFormat = Literal["text", "json"]
LOG_FORMATS: Final[tuple[LogFormat, ...]] = ("text", "json")
LOG_LEVELS: Final = ("info", "debug", "warning", "error")
REQUEST_LOGGER: Final = "eunoe.server.requests"
FIELDS: Final = "fields"
"""The attribute of a record that holds what is logged beside its message."""


class _QuietFormatter(logging.Formatter):
    """Shows where an error was raised, not what it says: that may repeat memories."""

    def formatException(self, ei: Any) -> str:
        kind, _, trace = ei
        return "".join([*traceback.format_tb(trace), kind.__name__])


class TextFormatter(_QuietFormatter):
    """Time, level, message, then the fields as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{name}={value}" for name, value in getattr(record, FIELDS, {}).items())
        line = f"{_time(record)} {record.levelname.lower()} {_one_line(record.getMessage())} {fields}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(_QuietFormatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)


def configure_logs(format: LogFormat, level: str) -> None:
    """Write what this package logs to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    logger = logging.getLogger("eunoe")
    for known in list(logger.handlers):  # the command line's own
        logger.removeHandler(known)
    logger.addHandler(handler)
    logger.setLevel(level.upper())


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _one_line(text: str) -> str:
    return " ".join(text.split())
