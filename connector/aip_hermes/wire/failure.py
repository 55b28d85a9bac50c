"""Errors as they travel.

Source: wire model §7 "ProtocolError", "ErrorBody".
"""

from __future__ import annotations

from aip_hermes.errors import AipError, ErrorCategory
from aip_hermes.wire.model import U64, Bool, Json, Wire

__all__ = ["ErrorBody", "ProtocolError", "protocol_error"]


class ProtocolError(Wire):
    """code: dotted, lower case. retryable: absent means unknown. source: by habit `{"component": …}`."""

    code: str
    message: str
    category: ErrorCategory
    retryable: Bool | None = None
    retry_after_ms: U64 | None = None
    details: Json | None = None
    source: Json | None = None


class ErrorBody(Wire):
    """The value of the body key `error`, which nests the error once more."""

    error: ProtocolError


def protocol_error(exc: AipError) -> ProtocolError:
    """Write an error of the tree; `details.uncertain_outcome` is true where the effect may have happened."""
    details = dict(exc.details)
    if exc.uncertain:
        details["uncertain_outcome"] = True
    return ProtocolError(
        code=exc.code,
        message=exc.message,
        category=exc.category,
        retryable=exc.retryable,
        retry_after_ms=exc.retry_after_ms,
        details=details or None,
        source={"component": exc.component},
    )
