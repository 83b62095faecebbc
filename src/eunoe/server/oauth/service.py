"""The parts of OAuth, put together for one server."""

from __future__ import annotations

from eunoe.server.keys import Keys
from eunoe.server.limits import RateLimit
from eunoe.server.oauth.clients import Clients
from eunoe.server.oauth.grants import Grants
from eunoe.server.oauth.requests import RequestSeal
from eunoe.server.oauth.resources import Resources
from eunoe.server.state import ServerState

_REGISTRATIONS_PER_MINUTE = 10


class OAuth:
    """What the routes of OAuth work with."""

    def __init__(self, state: ServerState, keys: Keys, owner_token: str, public_url: str) -> None:
        self.issuer = public_url
        self.resources = Resources(public_url)
        self.clients = Clients(state)
        self.grants = Grants(state, keys, self.resources, owner_token)
        self.seal = RequestSeal(owner_token)
        self.registrations = RateLimit(_REGISTRATIONS_PER_MINUTE, burst=_REGISTRATIONS_PER_MINUTE)
