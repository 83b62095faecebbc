"""What keeps the libraries beneath Eunoe from reporting to their makers."""

import os
from collections.abc import Mapping
from typing import Final

_SWITCHES: Final[Mapping[str, str]] = {"ORT_DISABLE_TELEMETRY": "1"}
"""What onnxruntime reads while it is loaded. Its `disable_telemetry_events()` comes after it has written a device id
and started to report. Any other value, such as "0", leaves it on."""


def turn_telemetry_off() -> None:
    """Set what turns telemetry off, for libraries that are loaded from here on and for processes that are started."""
    for name, value in _SWITCHES.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
