"""The order in which a request passes everything that stands before the routes."""

from __future__ import annotations

from fastapi import FastAPI

from eunoe.server.middleware.addresses import AddressMiddleware
from eunoe.server.middleware.audit import AuditMiddleware
from eunoe.server.middleware.authentication import AuthenticationMiddleware
from eunoe.server.middleware.body_limit import BodyLimitMiddleware
from eunoe.server.middleware.fault import FaultMiddleware
from eunoe.server.middleware.observation import ObservationMiddleware
from eunoe.server.middleware.path_segments import PathSegmentsMiddleware
from eunoe.server.middleware.rate_limit import RateLimitMiddleware
from eunoe.server.middleware.request_id import RequestIdMiddleware
from eunoe.server.middleware.security_headers import SecurityHeadersMiddleware
from eunoe.server.services import Services


def add_middleware(app: FastAPI, services: Services) -> None:
    """From the innermost to the outermost, which sees a request first."""
    config, addresses = services.config, services.addresses
    app.add_middleware(AuditMiddleware)
    app.add_middleware(RateLimitMiddleware, per_minute=config.requests_per_minute)
    app.add_middleware(AuthenticationMiddleware, services=services)
    app.add_middleware(
        BodyLimitMiddleware,
        max_bytes=config.max_body_bytes,
        max_import_bytes=config.max_import_bytes,
    )
    app.add_middleware(PathSegmentsMiddleware)
    app.add_middleware(AddressMiddleware, addresses=addresses)
    app.add_middleware(FaultMiddleware)
    app.add_middleware(SecurityHeadersMiddleware, addresses=addresses)
    app.add_middleware(ObservationMiddleware, metrics=services.metrics, tracing=services.tracing)
    app.add_middleware(RequestIdMiddleware)
