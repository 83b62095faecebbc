"""Whose memory an assistant works on where nobody says so."""

import getpass
import os
from typing import Final

from eunoe.model.scope import Scope

SCOPE_VARIABLE: Final = "EUNOE_SCOPE"


def default_scope() -> Scope:
    """The scope that the environment names, else the one of who is logged in."""
    if text := os.environ.get(SCOPE_VARIABLE):
        return Scope.parse(text)
    return Scope(user=getpass.getuser())
