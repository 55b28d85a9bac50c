"""What the HTTP edge refuses by itself, and the one table from an error to a status number.

Nothing below this floor knows a status number; a class answers its category, and the category has a status.
Source: AIP HTTP surface, "Category → status"; design D21.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from aip_hermes.errors import AipError, ErrorCategory, RequestRefused

__all__ = [
    "STATUS_OF_CATEGORY",
    "STATUS_OF_CODE",
    "BearerRefused",
    "BodyUnsupported",
    "ContentTypeUnsupported",
    "DeliveryNotFound",
    "EnvelopeInvalid",
    "EnvelopeTooLarge",
    "EnvelopeUndecodable",
    "GatewayFailed",
    "MethodNotAllowed",
    "QueryInvalid",
    "RouteUnknown",
    "ServerStopping",
    "SessionNotFound",
    "StorageUnavailable",
    "TransactionNotFound",
    "status_of",
]

COMPONENT: Final = "aip.server.http"


class EnvelopeTooLarge(RequestRefused, code="envelope.too_large", component=COMPONENT):
    """The body exceeds the advertised size (design D21)."""


class EnvelopeUndecodable(RequestRefused, code="envelope.decode.invalid", component=COMPONENT):
    """The bytes are no JSON text that means one thing, or the object passes the schema but does not decode."""


class EnvelopeInvalid(RequestRefused, code="schema.envelope.invalid", component=COMPONENT):
    """The JSON value breaks the envelope schema; violations are in the message."""


class ContentTypeUnsupported(RequestRefused, code="envelope.content_type.unsupported", component=COMPONENT):
    """The body is announced as something other than plain JSON."""


class BearerRefused(RequestRefused, code="auth.native_http_unauthorized", category="auth", component=COMPONENT):
    """The bearer token is missing, unknown, expired or malformed."""


class BodyUnsupported(RequestRefused, code="capability.unsupported", component="aip-gateway"):
    """A known kind of message that this server does not serve."""


class QueryInvalid(RequestRefused, code="query.invalid", component=COMPONENT):
    """A path or query parameter can't be read."""


class SessionNotFound(RequestRefused, code="session.not_found"):
    """No such AIP session. A Hermes transcript is none."""


class TransactionNotFound(RequestRefused, code="transaction.not_found"):
    """No such transaction."""


class DeliveryNotFound(RequestRefused, code="callback.delivery_not_found"):
    """No such delivery of a callback."""


class RouteUnknown(RequestRefused, code="route.not_found", component=COMPONENT):
    """No such route."""


class MethodNotAllowed(RequestRefused, code="route.method_not_allowed", component=COMPONENT):
    """The route exists, for other methods."""


class StorageUnavailable(
    RequestRefused, code="storage.unavailable", category="temporary", retryable=True, component="aip-gateway"
):
    """The store can't answer now."""


class ServerStopping(RequestRefused, code="gateway.stopping", category="temporary", component="aip-gateway"):
    """The server ends before the answer was there; of a posted message it is not known what it did."""


class GatewayFailed(RequestRefused, code="gateway.error", component="aip-gateway"):
    """A fault of ours. The log has the place; the answer has no detail."""


STATUS_OF_CATEGORY: Final[Mapping[ErrorCategory, int]] = MappingProxyType(
    {
        "auth": 401,
        "policy": 403,
        "economic": 402,
        "temporary": 503,
        "transport": 503,
        "connector": 502,
        "permanent": 400,
    }
)

STATUS_OF_CODE: Final[Mapping[str, int]] = MappingProxyType(
    {
        EnvelopeTooLarge.code: 413,
        ContentTypeUnsupported.code: 415,
        RouteUnknown.code: 404,
        MethodNotAllowed.code: 405,
        # Not the client's fault, so not a 4xx: a client that believes 400 would drop an action whose end is unknown.
        GatewayFailed.code: 500,
    }
)
"""Where the edge speaks HTTP rather than AIP; every other code follows its category."""


def status_of(error: AipError) -> int:
    """Return the HTTP status of an error envelope."""
    return STATUS_OF_CODE.get(error.code, STATUS_OF_CATEGORY[error.category])
